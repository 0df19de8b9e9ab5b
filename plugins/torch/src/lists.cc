// SPDX-License-Identifier: Apache-2.0
// ProcessGroupAxon: collectives that take a list with one tensor per rank. The
// list is packed into one block, which the library gets, and unpacked after.
#include <c10/util/Exception.h>

#include <algorithm>
#include <numeric>

#include "process_group.h"

namespace torch_axon {
namespace {

using c10d::OpType;
using Tensors = ProcessGroupAxon::Tensors;

// How a list with one tensor per rank lies in one block, in elements.
struct Packing {
  std::vector<int64_t> counts;
  std::vector<int64_t> offsets;
  int64_t total = 0;
  bool equal = true;

  explicit Packing(const Tensors& tensors) {
    for (const at::Tensor& tensor : tensors) {
      counts.push_back(tensor.numel());
      offsets.push_back(total);
      total += tensor.numel();
      equal = equal && tensor.numel() == counts[0];
    }
  }

  // The counts in elements of `wire`.
  std::vector<int64_t> On(const Wire& wire) const {
    std::vector<int64_t> scaled = counts;
    for (int64_t& count : scaled) count *= wire.width;
    return scaled;
  }
};

// The only list of a list of lists; it has one tensor of one type per rank.
Tensors& PerRank(const char* op, std::vector<Tensors>& lists, int size) {
  TORCH_CHECK_VALUE(lists.size() == 1, "axon ", op,
                    ": takes one list with a tensor per rank, not ",
                    lists.size());
  return lists[0];
}

void CheckList(const char* op, const Tensors& list, const at::Tensor& like,
               int size) {
  TORCH_CHECK_VALUE(list.size() == static_cast<size_t>(size), "axon ", op,
                    ": the list has ", list.size(), " tensors; it needs ", size,
                    ", one per rank");
  CheckTensors(op, list);
  for (const at::Tensor& tensor : list) CheckSameType(op, tensor, like);
}

void CheckEqual(const char* op, const Packing& packing,
                const at::Tensor& part) {
  TORCH_CHECK_VALUE(packing.equal && packing.counts[0] == part.numel(), "axon ",
                    op, ": the tensors differ in size; all must have ",
                    part.numel(), " elements");
}

at::Tensor Pack(Call* call, const Tensors& list, const Packing& packing,
                c10::ScalarType dtype) {
  at::Tensor block = call->Block(packing.total, dtype);
  for (size_t i = 0; i < list.size(); ++i) {
    Call::CopyIn(list[i], block, packing.offsets[i]);
  }
  return block;
}

at::Tensor Unpack(Call* call, const Tensors& list, const Packing& packing,
                  c10::ScalarType dtype) {
  at::Tensor block = call->Block(packing.total, dtype);
  for (size_t i = 0; i < list.size(); ++i) {
    call->CopyOut(block, packing.offsets[i], list[i]);
  }
  return block;
}

}  // namespace

ProcessGroupAxon::WorkPtr ProcessGroupAxon::allgather(
    std::vector<Tensors>& outputs, Tensors& inputs,
    const c10d::AllgatherOptions& opts) {
  Call call("all_gather", OpType::ALLGATHER, opts.timeout, opts.asyncOp);
  const at::Tensor& input = Single(call.name, inputs);
  const Tensors& list = PerRank(call.name, outputs, size_);
  CheckList(call.name, list, input, size_);
  const Packing packing(list);
  TORCH_CHECK_VALUE(packing.counts[rank_] == input.numel(),
                    "axon all_gather: input has ", input.numel(),
                    " elements and its place in the output ",
                    packing.counts[rank_]);
  const at::Tensor from = call.In(input);
  const at::Tensor to = Unpack(&call, list, packing, input.scalar_type());
  const Wire wire = MoveWire(input.scalar_type());
  const std::vector<int64_t> counts = packing.On(wire);
  call.outputs = list;
  return Launch(std::move(call), [&](axonComm_t comm, axonStream_t stream) {
    ArmTimeout(opts.timeout);
    const void* send = from.const_data_ptr();
    void* recv = to.mutable_data_ptr();
    if (packing.equal) {
      return axonAllGather(send, recv, counts[0], wire.type, comm, stream);
    }
    return axonAllGatherV(send, recv, counts.data(), nullptr, wire.type, comm,
                          stream);
  });
}

// outputs[r][i] is rank r's inputs[i]; each input is one all-gather.
ProcessGroupAxon::WorkPtr ProcessGroupAxon::allgather_coalesced(
    std::vector<Tensors>& outputs, Tensors& inputs,
    const c10d::AllgatherOptions& opts) {
  Call call("all_gather_coalesced", OpType::ALLGATHER_COALESCED, opts.timeout,
            opts.asyncOp);
  TORCH_CHECK_VALUE(outputs.size() == static_cast<size_t>(size_), "axon ",
                    call.name, ": got ", outputs.size(),
                    " lists of outputs for ", size_, " ranks");
  struct One {
    at::Tensor from, to;
    Wire wire;
  };
  std::vector<One> all;
  for (size_t i = 0; i < inputs.size(); ++i) {
    CheckTensor(call.name, inputs[i]);
    Tensors list;
    for (const Tensors& of_rank : outputs) {
      TORCH_CHECK_VALUE(of_rank.size() == inputs.size(), "axon ", call.name,
                        ": a list has ", of_rank.size(), " outputs for ",
                        inputs.size(), " inputs");
      list.push_back(of_rank[i]);
    }
    CheckList(call.name, list, inputs[i], size_);
    const Packing packing(list);
    CheckEqual(call.name, packing, inputs[i]);
    const c10::ScalarType dtype = inputs[i].scalar_type();
    all.push_back({call.In(inputs[i]), Unpack(&call, list, packing, dtype),
                   MoveWire(dtype)});
  }
  for (const Tensors& of_rank : outputs) {
    call.outputs.insert(call.outputs.end(), of_rank.begin(), of_rank.end());
  }
  return Launch(std::move(call), [&](axonComm_t comm, axonStream_t stream) {
    for (const One& one : all) {
      ArmTimeout(opts.timeout);
      const axonResult_t result = axonAllGather(
          one.from.const_data_ptr(), one.to.mutable_data_ptr(),
          one.wire.Count(one.from.numel()), one.wire.type, comm, stream);
      if (result != axonSuccess) return result;
    }
    return axonSuccess;
  });
}

ProcessGroupAxon::WorkPtr ProcessGroupAxon::gather(
    std::vector<Tensors>& outputs, Tensors& inputs,
    const c10d::GatherOptions& opts) {
  Call call("gather", OpType::GATHER, opts.timeout, opts.asyncOp);
  const at::Tensor& input = Single(call.name, inputs);
  const int root = CheckRoot(call.name, opts.rootRank);
  const at::Tensor from = call.In(input);
  const Wire wire = MoveWire(input.scalar_type());
  at::Tensor to;
  if (rank_ == root) {
    const Tensors& list = PerRank(call.name, outputs, size_);
    CheckList(call.name, list, input, size_);
    const Packing packing(list);
    CheckEqual(call.name, packing, input);
    to = Unpack(&call, list, packing, input.scalar_type());
    call.outputs = list;
  }
  return Launch(std::move(call), [&](axonComm_t comm, axonStream_t stream) {
    ArmTimeout(opts.timeout);
    return axonGather(from.const_data_ptr(),
                      to.defined() ? to.mutable_data_ptr() : nullptr,
                      wire.Count(from.numel()), wire.type, root, comm, stream);
  });
}

ProcessGroupAxon::WorkPtr ProcessGroupAxon::scatter(
    Tensors& outputs, std::vector<Tensors>& inputs,
    const c10d::ScatterOptions& opts) {
  Call call("scatter", OpType::SCATTER, opts.timeout, opts.asyncOp);
  const at::Tensor& output = Single(call.name, outputs);
  const int root = CheckRoot(call.name, opts.rootRank);
  const at::Tensor to = call.Out(output);
  const Wire wire = MoveWire(output.scalar_type());
  at::Tensor from;
  if (rank_ == root) {
    const Tensors& list = PerRank(call.name, inputs, size_);
    CheckList(call.name, list, output, size_);
    const Packing packing(list);
    CheckEqual(call.name, packing, output);
    from = Pack(&call, list, packing, output.scalar_type());
  }
  call.outputs.push_back(output);
  return Launch(std::move(call), [&](axonComm_t comm, axonStream_t stream) {
    ArmTimeout(opts.timeout);
    return axonScatter(from.defined() ? from.const_data_ptr() : nullptr,
                       to.mutable_data_ptr(), wire.Count(to.numel()), wire.type,
                       root, comm, stream);
  });
}

ProcessGroupAxon::WorkPtr ProcessGroupAxon::reduce_scatter(
    Tensors& outputs, std::vector<Tensors>& inputs,
    const c10d::ReduceScatterOptions& opts) {
  Call call("reduce_scatter", OpType::REDUCE_SCATTER, opts.timeout,
            opts.asyncOp);
  const at::Tensor& output = Single(call.name, outputs);
  const Tensors& list = PerRank(call.name, inputs, size_);
  CheckList(call.name, list, output, size_);
  const Packing packing(list);
  TORCH_CHECK_VALUE(packing.counts[rank_] == output.numel(),
                    "axon reduce_scatter: output has ", output.numel(),
                    " elements and its place in the input ",
                    packing.counts[rank_]);
  const Reduction reduction =
      MakeReduction(output.scalar_type(), opts.reduceOp);
  const at::Tensor from = Pack(&call, list, packing, reduction.dtype);
  const at::Tensor to = call.Out(output, reduction.dtype);
  const std::vector<int64_t> counts = packing.On(reduction.wire);
  call.outputs.push_back(output);
  return Launch(std::move(call), [&](axonComm_t comm, axonStream_t stream) {
    const ScopedOp op(reduction, comm);
    if (op.result() != axonSuccess) return op.result();
    ArmTimeout(opts.timeout);
    const void* send = from.const_data_ptr();
    void* recv = to.mutable_data_ptr();
    const axonDataType_t type = reduction.wire.type;
    if (packing.equal) {
      return axonReduceScatter(send, recv, counts[0], type, op.get(), comm,
                               stream);
    }
    return axonReduceScatterV(send, recv, counts.data(), nullptr, type,
                              op.get(), comm, stream);
  });
}

ProcessGroupAxon::WorkPtr ProcessGroupAxon::alltoall(
    Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& opts) {
  Call call("all_to_all", OpType::ALLTOALL, opts.timeout, opts.asyncOp);
  TORCH_CHECK_VALUE(!inputs.empty(), "axon all_to_all: the list is empty");
  CheckList(call.name, inputs, inputs[0], size_);
  CheckList(call.name, outputs, inputs[0], size_);
  const c10::ScalarType dtype = inputs[0].scalar_type();
  const Packing sent(inputs);
  const Packing received(outputs);
  const at::Tensor from = Pack(&call, inputs, sent, dtype);
  const at::Tensor to = Unpack(&call, outputs, received, dtype);
  const Wire wire = MoveWire(dtype);
  const std::vector<int64_t> send = sent.On(wire);
  const std::vector<int64_t> recv = received.On(wire);
  call.outputs = outputs;
  return Launch(std::move(call), [&](axonComm_t comm, axonStream_t stream) {
    ArmTimeout(opts.timeout);
    return axonAlltoAllV(from.const_data_ptr(), send.data(), nullptr,
                         to.mutable_data_ptr(), recv.data(), nullptr, wire.type,
                         comm, stream);
  });
}

}  // namespace torch_axon
