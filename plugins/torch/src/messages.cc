// SPDX-License-Identifier: Apache-2.0
// ProcessGroupAxon: sends, receives and batches. Every peer and direction has a
// stream of its own, so that none waits for another and the messages of a batch
// progress together. The library matches the messages between two ranks in
// order; a tag travels ahead of its message and is compared when both are
// there.
#include <c10/util/Exception.h>

#include "process_group.h"

namespace torch_axon {
namespace {

using c10d::OpType;
using Lane = Communicator::Lane;

}  // namespace

void ProcessGroupAxon::startCoalescing() {
  std::lock_guard lock(mutex_);
  batch_ = NewWork(Call("coalesced", OpType::COALESCED, c10d::kUnsetTimeout,
                        /*async=*/true),
                   0);
}

ProcessGroupAxon::WorkPtr ProcessGroupAxon::endCoalescing() {
  c10::intrusive_ptr<AxonWork> batch;
  {
    std::lock_guard lock(mutex_);
    batch.swap(batch_);
  }
  TORCH_CHECK(batch != nullptr,
              "axon: endCoalescing without a startCoalescing before it");
  batch->Seal();
  return batch;
}

ProcessGroupAxon::WorkPtr ProcessGroupAxon::Message(Lane lane, Tensors& tensors,
                                                    int peer, int tag) {
  const bool sends = lane == Lane::kSend;
  Call call(sends ? "send" : "recv", sends ? OpType::SEND : OpType::RECV,
            c10d::kUnsetTimeout, /*async=*/true);
  const at::Tensor& tensor = Single(call.name, tensors);
  TORCH_CHECK_VALUE(0 <= peer && peer < size_ && peer != rank_, "axon ",
                    call.name, ": peer ", peer, " is not another rank of ",
                    "the group, which has ", size_, " and this is ", rank_);
  TORCH_CHECK_VALUE(tag >= 0, "axon ", call.name, ": tag ", tag,
                    " is negative");
  c10::intrusive_ptr<AxonWork> batch;
  uint64_t sequence;
  {
    std::lock_guard lock(mutex_);
    batch = batch_;
    sequence = ++messages_;
  }
  const at::Tensor block = sends ? call.In(tensor) : call.Out(tensor);
  if (!sends) call.outputs.push_back(tensor);
  const Wire wire = MoveWire(tensor.scalar_type());
  int64_t* header = tag == 0 ? nullptr : call.AddTag(tag, /*check=*/!sends);

  c10::intrusive_ptr<AxonWork> work =
      batch != nullptr ? batch : NewWork(Call(call), sequence);
  if (batch != nullptr) batch->call().Join(std::move(call));
  const auto body = [&](axonComm_t comm, axonStream_t stream) {
    if (header != nullptr) {
      const axonResult_t result =
          sends
              ? axonSend(header, Call::kTagWords, axonInt64, peer, comm, stream)
              : axonRecv(header, Call::kTagWords, axonInt64, peer, comm,
                         stream);
      if (result != axonSuccess) return result;
    }
    const size_t count = wire.Count(block.numel());
    return sends ? axonSend(block.const_data_ptr(), count, wire.type, peer,
                            comm, stream)
                 : axonRecv(block.mutable_data_ptr(), count, wire.type, peer,
                            comm, stream);
  };
  work->Queue(lane, peer, body);
  if (batch == nullptr) {
    work->Seal();
    return work;
  }
  // Only the batch's Work tells when this is done; this one is done already.
  auto placeholder = NewWork(
      Call("coalesced", OpType::COALESCED, c10d::kUnsetTimeout, true), 0);
  placeholder->Seal();
  return placeholder;
}

ProcessGroupAxon::WorkPtr ProcessGroupAxon::send(Tensors& tensors, int peer,
                                                 int tag) {
  return Message(Lane::kSend, tensors, peer, tag);
}

ProcessGroupAxon::WorkPtr ProcessGroupAxon::recv(Tensors& tensors, int peer,
                                                 int tag) {
  return Message(Lane::kRecv, tensors, peer, tag);
}

ProcessGroupAxon::WorkPtr ProcessGroupAxon::recvAnysource(Tensors&, int) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      false,
      "axon recv: receiving from any source is not supported; give the rank "
      "that sends as src");
}

}  // namespace torch_axon
