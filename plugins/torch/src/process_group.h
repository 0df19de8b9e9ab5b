// SPDX-License-Identifier: Apache-2.0
// The backend that torch.distributed calls: turns each of torch's collectives
// into calls of the library. Owned by torch's ProcessGroup. Any thread may call
// it, with or without Python's lock; calls of one group take turns. A call with
// asyncOp false runs on the caller's thread and returns a completed Work;
// others are queued on a stream. The destructor does not wait.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "call.h"
#include "communicator.h"
#include "options.h"
#include "types.h"
#include "work.h"

namespace torch_axon {

class ProcessGroupAxon final : public c10d::Backend {
 public:
  using Tensors = std::vector<at::Tensor>;
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  // Collective over the group: meets the other ranks through `store`.
  ProcessGroupAxon(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                   int size, c10::intrusive_ptr<Options> options);
  ~ProcessGroupAxon() override;

  const c10::intrusive_ptr<Options>& options() const { return options_; }

  // process_group.cc: life and errors.
  const std::string getBackendName() const override;
  c10::intrusive_ptr<c10d::Backend::Options> getBackendOptions() override;
  void setTimeout(std::chrono::milliseconds timeout) override;
  void setSequenceNumberForGroup() override {}  // both start at 0
  uint64_t getSequenceNumberForGroup() override;
  c10d::ErrorType getError() override;
  void abort() override;
  void shutdown() override;
  bool supportsTensorAlloc(c10::DeviceIndex) override { return true; }
  at::Tensor allocateTensor(long size, at::TensorOptions options) override;

  // collectives.cc: the same tensor, or one tensor, on every rank.
  WorkPtr broadcast(Tensors& tensors,
                    const c10d::BroadcastOptions& opts) override;
  WorkPtr allreduce(Tensors& tensors,
                    const c10d::AllreduceOptions& opts) override;
  WorkPtr allreduce_coalesced(
      Tensors& tensors, const c10d::AllreduceCoalescedOptions& opts) override;
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& opts) override;
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input,
                          const c10d::AllgatherOptions& opts) override;
  WorkPtr allgather_into_tensor_coalesced(
      Tensors& outputs, Tensors& inputs,
      const c10d::AllgatherOptions& opts) override;
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& opts) override;
  WorkPtr reduce_scatter_tensor_coalesced(
      Tensors& outputs, Tensors& inputs,
      const c10d::ReduceScatterOptions& opts) override;
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input,
                        std::vector<int64_t>& output_splits,
                        std::vector<int64_t>& input_splits,
                        const c10d::AllToAllOptions& opts) override;
  WorkPtr barrier(const c10d::BarrierOptions& opts) override;
  void monitoredBarrier(const c10d::BarrierOptions& opts,
                        bool wait_all_ranks) override;

  // lists.cc: a tensor per rank, packed into one block.
  WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                    const c10d::AllgatherOptions& opts) override;
  WorkPtr allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                              const c10d::AllgatherOptions& opts) override;
  WorkPtr gather(std::vector<Tensors>& outputs, Tensors& inputs,
                 const c10d::GatherOptions& opts) override;
  WorkPtr scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                  const c10d::ScatterOptions& opts) override;
  WorkPtr reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                         const c10d::ReduceScatterOptions& opts) override;
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs,
                   const c10d::AllToAllOptions& opts) override;

  // messages.cc: send, receive, batches.
  bool supportsCoalescing() const override { return true; }
  void startCoalescing() override;
  WorkPtr endCoalescing() override;
  WorkPtr send(Tensors& tensors, int peer, int tag) override;
  WorkPtr recv(Tensors& tensors, int peer, int tag) override;
  WorkPtr recvAnysource(Tensors& tensors, int tag) override;

 private:
  // Queues a send or a receive, by itself or in the batch.
  WorkPtr Message(Communicator::Lane lane, Tensors& tensors, int peer, int tag);
  // Runs or queues a collective.
  WorkPtr Launch(Call call, Communicator::Body body);
  c10::intrusive_ptr<AxonWork> NewWork(Call call, uint64_t sequence);
  Origin MakeOrigin(const char* op, std::chrono::milliseconds timeout,
                    uint64_t sequence) const;
  int CheckRoot(const char* op, int64_t root) const;

  const c10::intrusive_ptr<Options> options_;
  std::shared_ptr<Communicator> comm_;

  std::mutex mutex_;          // guards all below
  uint64_t collectives_ = 0;  // calls made, the sequence number of the last
  uint64_t messages_ = 0;
  c10::intrusive_ptr<AxonWork> batch_;  // between start and endCoalescing
};

// Gives the next call of this thread its own limit, unless `timeout` is unset.
// Comes right before the call, in each Body.
void ArmTimeout(std::chrono::milliseconds timeout);

}  // namespace torch_axon
