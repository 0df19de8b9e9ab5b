// SPDX-License-Identifier: Apache-2.0
// Axon, through axon.h alone: axon NAME [SECONDS [TYPE]], once a rank with
// AXON_COMM_ID, AXON_RANK and AXON_SIZE. A NAME that ends in "mapped" takes its
// buffers from axonMemAlloc.
#include <axon/axon.h>

#include "method.h"

namespace {

using compare::Kind;
using compare::Type;

void Require(axonResult_t result) {
  if (result == axonSuccess) return;
  std::fprintf(stderr, "axon: %s\n", axonGetLastError(nullptr));
  std::exit(1);
}

class Axon final : public compare::Library {
 public:
  explicit Axon(bool mapped) : mapped_(mapped) {
    Require(axonCommInitEnv(&comm_, nullptr));
    Require(axonCommUserRank(comm_, &rank_));
    Require(axonCommCount(comm_, &ranks_));
  }
  ~Axon() override { Require(axonCommDestroy(comm_)); }
  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  void Barrier() override { Require(axonBarrier(comm_, nullptr)); }
  void Max(std::vector<double>* numbers) override {
    Require(axonAllReduce(numbers->data(), numbers->data(), numbers->size(),
                          axonFloat64, axonMax, comm_, nullptr));
  }
  bool Has(Kind, Type) const override { return true; }
  bool BroadcastsInPlace() const override { return true; }
  void* Allocate(size_t bytes) override {
    if (!mapped_) return Library::Allocate(bytes);
    void* memory = nullptr;
    Require(axonMemAlloc(&memory, bytes));
    return memory;
  }
  void Run(Kind kind, Type type, const void* in, void* out, size_t count,
           int root) override {
    const auto of = type == compare::kFloat32 ? axonFloat32 : axonBfloat16;
    const size_t part = count / static_cast<size_t>(ranks_);
    switch (kind) {
      case compare::kAllReduce:
        return Require(
            axonAllReduce(in, out, count, of, axonSum, comm_, nullptr));
      case compare::kAllGather:
        return Require(axonAllGather(in, out, part, of, comm_, nullptr));
      case compare::kReduceScatter:
        return Require(
            axonReduceScatter(in, out, part, of, axonSum, comm_, nullptr));
      case compare::kAlltoAll:
        return Require(axonAlltoAll(in, out, part, of, comm_, nullptr));
      case compare::kBroadcast:
        return Require(
            axonBcast(const_cast<void*>(in), count, of, root, comm_, nullptr));
      default:
        return Require(axonBarrier(comm_, nullptr));
    }
  }

 private:
  const bool mapped_;
  axonComm_t comm_ = nullptr;
  int rank_ = 0, ranks_ = 1;
};

}  // namespace

int main(int argc, char** argv) {
  const compare::Options options = compare::ReadOptions(argc, argv);
  const std::string name = options.name;
  Axon axon(name.size() > 6 && name.substr(name.size() - 6) == "mapped");
  compare::Measurement(axon, options).All();
}
