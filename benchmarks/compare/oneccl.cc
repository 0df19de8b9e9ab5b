// SPDX-License-Identifier: Apache-2.0
// oneCCL on buffers of the host, over Intel MPI: mpirun -np N oneccl NAME
// [SECONDS [TYPE]]. What it lacks or does by MPI itself is left out.
#include <mpi.h>

#include <memory>
#include <oneapi/ccl.hpp>

#include "method.h"

namespace {

using compare::Kind;
using compare::Type;

class OneCcl final : public compare::Library {
 public:
  OneCcl() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    ccl::init();
    ccl::kvs::address_type address;
    if (rank_ == 0) {
      kvs_ = ccl::create_main_kvs();
      address = kvs_->get_address();
    }
    MPI_Bcast(address.data(), static_cast<int>(address.size()), MPI_BYTE, 0,
              MPI_COMM_WORLD);
    if (rank_ != 0) kvs_ = ccl::create_kvs(address);
    comm_ = std::make_unique<ccl::communicator>(
        ccl::create_communicator(ranks_, rank_, kvs_));
  }
  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  void Barrier() override { MPI_Barrier(MPI_COMM_WORLD); }
  void Max(std::vector<double>* numbers) override {
    MPI_Allreduce(MPI_IN_PLACE, numbers->data(),
                  static_cast<int>(numbers->size()), MPI_DOUBLE, MPI_MAX,
                  MPI_COMM_WORLD);
  }
  bool Has(Kind kind, Type) const override {
    return kind == compare::kAllReduce || kind == compare::kAllGather;
  }
  void Run(Kind kind, Type type, const void* in, void* out, size_t count,
           int) override {
    const auto of = type == compare::kFloat32 ? ccl::datatype::float32
                                              : ccl::datatype::bfloat16;
    if (kind == compare::kAllReduce) {
      ccl::allreduce(in, out, count, of, ccl::reduction::sum, *comm_).wait();
      return;
    }
    const std::vector<size_t> parts(static_cast<size_t>(ranks_),
                                    count / static_cast<size_t>(ranks_));
    ccl::allgatherv(in, parts[0], out, parts, of, *comm_).wait();
  }

 private:
  int rank_ = 0, ranks_ = 1;
  ccl::shared_ptr_class<ccl::kvs> kvs_;
  std::unique_ptr<ccl::communicator> comm_;
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    OneCcl library;
    compare::Measurement(library, compare::ReadOptions(argc, argv)).All();
  }
  MPI_Finalize();
}
