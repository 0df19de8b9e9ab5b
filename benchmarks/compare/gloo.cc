// SPDX-License-Identifier: Apache-2.0
// Gloo over TCP on the loopback interface: gloo NAME SECONDS float32 RANK SIZE
// DIRECTORY, once a rank, with an empty directory to meet in. It has no
// reduce-scatter in its present interface, and no bfloat16.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <memory>

#include "method.h"

namespace {

using compare::Kind;
using compare::Type;

void Sum(void* to, const void* a, const void* b, size_t n) {
  gloo::sum<float>(static_cast<float*>(to), static_cast<const float*>(a),
                   static_cast<const float*>(b), n);
}
void Larger(void* to, const void* a, const void* b, size_t n) {
  gloo::max<double>(static_cast<double*>(to), static_cast<const double*>(a),
                    static_cast<const double*>(b), n);
}

class Gloo final : public compare::Library {
 public:
  Gloo(int rank, int ranks, const char* directory)
      : context_(std::make_shared<gloo::rendezvous::Context>(rank, ranks)) {
    gloo::transport::tcp::attr attributes;
    attributes.iface = "lo";
    gloo::rendezvous::FileStore store(directory);
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    context_->connectFullMesh(store, device);
  }
  int rank() const override { return context_->rank; }
  int ranks() const override { return context_->size; }
  void Barrier() override {
    gloo::BarrierOptions options(context_);
    options.setTag(1);
    gloo::barrier(options);
  }
  void Max(std::vector<double>* numbers) override {
    gloo::AllreduceOptions options(context_);
    std::vector<double> in = *numbers;
    options.setInput(in.data(), in.size());
    options.setOutput(numbers->data(), numbers->size());
    options.setReduceFunction(Larger);
    options.setTag(2);
    gloo::allreduce(options);
  }
  bool Has(Kind kind, Type type) const override {
    return kind != compare::kReduceScatter && type == compare::kFloat32;
  }
  bool BroadcastsInPlace() const override { return true; }
  void Run(Kind kind, Type, const void* from, void* to, size_t count,
           int root) override {
    auto* in = static_cast<float*>(const_cast<void*>(from));
    auto* out = static_cast<float*>(to);
    switch (kind) {
      case compare::kAllReduce: {
        gloo::AllreduceOptions options(context_);
        options.setInput(in, count);
        options.setOutput(out, count);
        options.setReduceFunction(Sum);
        options.setTag(3);
        return gloo::allreduce(options);
      }
      case compare::kAllGather: {
        gloo::AllgatherOptions options(context_);
        options.setInput(in, count / static_cast<size_t>(ranks()));
        options.setOutput(out, count);
        options.setTag(4);
        return gloo::allgather(options);
      }
      case compare::kAlltoAll: {
        gloo::AlltoallOptions options(context_);
        options.setInput(in, count);
        options.setOutput(out, count);
        options.setTag(5);
        return gloo::alltoall(options);
      }
      case compare::kBroadcast: {
        gloo::BroadcastOptions options(context_);
        options.setOutput(in, count);
        options.setRoot(root);
        options.setTag(6);
        return gloo::broadcast(options);
      }
      default:
        return Barrier();
    }
  }

 private:
  std::shared_ptr<gloo::rendezvous::Context> context_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) {
    std::fprintf(stderr, "usage: gloo NAME SECONDS TYPE RANK SIZE DIRECTORY\n");
    return 2;
  }
  Gloo gloo(std::atoi(argv[4]), std::atoi(argv[5]), argv[6]);
  compare::Measurement(gloo, compare::ReadOptions(argc, argv)).All();
  gloo.Barrier();
}
