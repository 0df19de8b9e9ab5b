// SPDX-License-Identifier: Apache-2.0
// An MPI library: mpirun -np N mpi NAME [SECONDS [TYPE]]. MPI has no bfloat16;
// where a library has it as an extension that works, it is measured too, else
// nothing is printed of that type.
#include <mpi.h>

#include "method.h"

namespace {

using compare::Kind;
using compare::Type;

// The library's own bfloat16, or a null type if it has none or cannot add it.
MPI_Datatype Bfloat16() {
#ifdef MPIX_BFLOAT16
  const uint16_t one = 0x3f80;
  uint16_t sum = 0;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int result =
      MPI_Allreduce(&one, &sum, 1, MPIX_BFLOAT16, MPI_SUM, MPI_COMM_WORLD);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  if (result == MPI_SUCCESS && sum >= one) return MPIX_BFLOAT16;
#endif
  return MPI_DATATYPE_NULL;
}

class Mpi final : public compare::Library {
 public:
  explicit Mpi(Type type)
      : of_(type == compare::kFloat32 ? MPI_FLOAT : Bfloat16()) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  }
  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  void Barrier() override { MPI_Barrier(MPI_COMM_WORLD); }
  void Max(std::vector<double>* numbers) override {
    MPI_Allreduce(MPI_IN_PLACE, numbers->data(),
                  static_cast<int>(numbers->size()), MPI_DOUBLE, MPI_MAX,
                  MPI_COMM_WORLD);
  }
  bool Has(Kind, Type) const override { return of_ != MPI_DATATYPE_NULL; }
  bool BroadcastsInPlace() const override { return true; }
  void Run(Kind kind, Type, const void* in, void* out, size_t count,
           int root) override {
    const int n = static_cast<int>(count), part = n / ranks_;
    switch (kind) {
      case compare::kAllReduce:
        MPI_Allreduce(in, out, n, of_, MPI_SUM, MPI_COMM_WORLD);
        break;
      case compare::kAllGather:
        MPI_Allgather(in, part, of_, out, part, of_, MPI_COMM_WORLD);
        break;
      case compare::kReduceScatter:
        MPI_Reduce_scatter_block(in, out, part, of_, MPI_SUM, MPI_COMM_WORLD);
        break;
      case compare::kAlltoAll:
        MPI_Alltoall(in, part, of_, out, part, of_, MPI_COMM_WORLD);
        break;
      case compare::kBroadcast:
        MPI_Bcast(const_cast<void*>(in), n, of_, root, MPI_COMM_WORLD);
        break;
      default:
        MPI_Barrier(MPI_COMM_WORLD);
    }
  }

 private:
  const MPI_Datatype of_;
  int rank_ = 0, ranks_ = 1;
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    const compare::Options options = compare::ReadOptions(argc, argv);
    Mpi mpi(options.type);
    compare::Measurement(mpi, options).All();
  }
  MPI_Finalize();
}
