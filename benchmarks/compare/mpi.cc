// SPDX-License-Identifier: Apache-2.0
// An MPI library: mpirun -np N mpi NAME [SECONDS]. MPI has no bfloat16.
#include <mpi.h>

#include "method.h"

namespace {

using compare::Kind;
using compare::Type;

class Mpi final : public compare::Library {
 public:
  Mpi() {
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
  bool Has(Kind, Type type) const override { return type == compare::kFloat32; }
  bool BroadcastsInPlace() const override { return true; }
  void Run(Kind kind, Type, const void* in, void* out, size_t count,
           int root) override {
    const int n = static_cast<int>(count), part = n / ranks_;
    switch (kind) {
      case compare::kAllReduce:
        MPI_Allreduce(in, out, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
      case compare::kAllGather:
        MPI_Allgather(in, part, MPI_FLOAT, out, part, MPI_FLOAT,
                      MPI_COMM_WORLD);
        break;
      case compare::kReduceScatter:
        MPI_Reduce_scatter_block(in, out, part, MPI_FLOAT, MPI_SUM,
                                 MPI_COMM_WORLD);
        break;
      case compare::kAlltoAll:
        MPI_Alltoall(in, part, MPI_FLOAT, out, part, MPI_FLOAT, MPI_COMM_WORLD);
        break;
      case compare::kBroadcast:
        MPI_Bcast(const_cast<void*>(in), n, MPI_FLOAT, root, MPI_COMM_WORLD);
        break;
      default:
        MPI_Barrier(MPI_COMM_WORLD);
    }
  }

 private:
  int rank_ = 0, ranks_ = 1;
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    Mpi mpi;
    compare::Measurement(mpi, compare::ReadOptions(argc, argv)).All();
  }
  MPI_Finalize();
}
