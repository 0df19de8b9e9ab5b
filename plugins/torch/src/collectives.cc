// SPDX-License-Identifier: Apache-2.0
// ProcessGroupAxon: collectives on one block per rank. Each checks, stages what
// is not dense, and names the library's call.
#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include "process_group.h"

#include <torch/csrc/distributed/c10d/Utils.hpp>

namespace torch_axon {
namespace {

using c10d::OpType;
using Tensors = ProcessGroupAxon::Tensors;

// Where `rank`'s part lies in `block`, of which `part` is as large as each.
void* PartOf(const at::Tensor& block, const at::Tensor& part, int rank) {
  return static_cast<char*>(block.mutable_data_ptr()) + rank * part.nbytes();
}

// `whole` holds a part as large as `part` for each rank.
void CheckParts(const char* op, const at::Tensor& whole, const at::Tensor& part,
                int size) {
  CheckTensor(op, whole);
  CheckTensor(op, part);
  CheckSameType(op, whole, part);
  TORCH_CHECK_VALUE(whole.numel() == part.numel() * size, "axon ", op,
                    ": the larger tensor has ", whole.numel(),
                    " elements; it must have ", part.numel() * size, ", ",
                    part.numel(), " for each of ", size, " ranks");
}

void CheckPairs(const char* op, const Tensors& a, const Tensors& b) {
  TORCH_CHECK_VALUE(!a.empty() && a.size() == b.size(), "axon ", op, ": got ",
                    a.size(), " inputs or outputs for ", b.size(),
                    "; needs as many of both, and one at least");
}

// One all-gather of a coalesced call, staged.
struct Gathered {
  at::Tensor from, to;
  Wire wire;

  Gathered(Call* call, const char* op, const at::Tensor& output,
           const at::Tensor& input, int rank, int size)
      : wire(MoveWire(input.scalar_type())) {
    CheckParts(op, output, input, size);
    to = call->Out(output);
    from =
        call->InApart(input, input.scalar_type(), to, PartOf(to, input, rank));
    call->outputs.push_back(output);
  }

  axonResult_t operator()(axonComm_t comm, axonStream_t stream) const {
    return axonAllGather(from.const_data_ptr(), to.mutable_data_ptr(),
                         wire.Count(from.numel()), wire.type, comm, stream);
  }
};

// One reduce-scatter of a coalesced call, staged.
struct Scattered {
  at::Tensor from, to;
  Reduction reduction;

  Scattered(Call* call, const char* op, const at::Tensor& output,
            const at::Tensor& input, const c10d::ReduceOp& reduce_op, int rank,
            int size)
      : reduction(MakeReduction(input.scalar_type(), reduce_op)) {
    CheckParts(op, input, output, size);
    to = call->Out(output, reduction.dtype);
    from = call->In(input, reduction.dtype);
    if (to.const_data_ptr() != PartOf(from, to, rank)) {
      from = call->InApart(from, reduction.dtype, to, nullptr);
    }
    call->outputs.push_back(output);
  }

  axonResult_t operator()(axonComm_t comm, axonStream_t stream) const {
    const ScopedOp op(reduction, comm);
    if (op.result() != axonSuccess) return op.result();
    return axonReduceScatter(from.const_data_ptr(), to.mutable_data_ptr(),
                             reduction.wire.Count(to.numel()),
                             reduction.wire.type, op.get(), comm, stream);
  }
};

// One all-reduce, staged.
struct Reduced {
  at::Tensor block;
  Reduction reduction;

  Reduced(Call* call, const char* op, const at::Tensor& tensor,
          const c10d::ReduceOp& reduce_op)
      : reduction((CheckTensor(op, tensor),
                   MakeReduction(tensor.scalar_type(), reduce_op))) {
    block = call->InOut(tensor, reduction.dtype);
    call->outputs.push_back(tensor);
  }

  axonResult_t operator()(axonComm_t comm, axonStream_t stream) const {
    const ScopedOp op(reduction, comm);
    if (op.result() != axonSuccess) return op.result();
    void* data = block.mutable_data_ptr();
    return axonAllReduce(data, data, reduction.wire.Count(block.numel()),
                         reduction.wire.type, op.get(), comm, stream);
  }
};

// A Body that makes each of `calls` with the limit of `call`.
template <typename Calls>
auto Each(const Calls& calls, std::chrono::milliseconds timeout) {
  return [&calls, timeout](axonComm_t comm, axonStream_t stream) {
    for (const auto& one : calls) {
      ArmTimeout(timeout);
      const axonResult_t result = one(comm, stream);
      if (result != axonSuccess) return result;
    }
    return axonSuccess;
  };
}

}  // namespace

ProcessGroupAxon::WorkPtr ProcessGroupAxon::broadcast(
    Tensors& tensors, const c10d::BroadcastOptions& opts) {
  Call call("broadcast", OpType::BROADCAST, opts.timeout, opts.asyncOp);
  const at::Tensor& tensor = Single(call.name, tensors);
  const int root = CheckRoot(call.name, opts.rootRank);
  const at::Tensor block = rank_ == root ? call.In(tensor) : call.Out(tensor);
  const Wire wire = MoveWire(tensor.scalar_type());
  call.outputs.push_back(tensor);
  return Launch(std::move(call), [&](axonComm_t comm, axonStream_t stream) {
    ArmTimeout(opts.timeout);
    return axonBcast(block.mutable_data_ptr(), wire.Count(block.numel()),
                     wire.type, root, comm, stream);
  });
}

ProcessGroupAxon::WorkPtr ProcessGroupAxon::allreduce(
    Tensors& tensors, const c10d::AllreduceOptions& opts) {
  Call call("all_reduce", OpType::ALLREDUCE, opts.timeout, opts.asyncOp);
  const Reduced reduced(&call, call.name, Single(call.name, tensors),
                        opts.reduceOp);
  return Launch(std::move(call), [&](axonComm_t comm, axonStream_t stream) {
    ArmTimeout(opts.timeout);
    return reduced(comm, stream);
  });
}

ProcessGroupAxon::WorkPtr ProcessGroupAxon::allreduce_coalesced(
    Tensors& tensors, const c10d::AllreduceCoalescedOptions& opts) {
  Call call("all_reduce_coalesced", OpType::ALLREDUCE_COALESCED, opts.timeout,
            opts.asyncOp);
  std::vector<Reduced> calls;
  for (const at::Tensor& tensor : tensors) {
    calls.emplace_back(&call, call.name, tensor, opts.reduceOp);
  }
  return Launch(std::move(call), Each(calls, opts.timeout));
}

ProcessGroupAxon::WorkPtr ProcessGroupAxon::reduce(
    Tensors& tensors, const c10d::ReduceOptions& opts) {
  Call call("reduce", OpType::REDUCE, opts.timeout, opts.asyncOp);
  const at::Tensor& tensor = Single(call.name, tensors);
  const int root = CheckRoot(call.name, opts.rootRank);
  const Reduction reduction =
      MakeReduction(tensor.scalar_type(), opts.reduceOp);
  const at::Tensor block = rank_ == root ? call.InOut(tensor, reduction.dtype)
                                         : call.In(tensor, reduction.dtype);
  call.outputs.push_back(tensor);
  return Launch(std::move(call), [&](axonComm_t comm, axonStream_t stream) {
    const ScopedOp op(reduction, comm);
    if (op.result() != axonSuccess) return op.result();
    ArmTimeout(opts.timeout);
    void* data = block.mutable_data_ptr();
    return axonReduce(data, rank_ == root ? data : nullptr,
                      reduction.wire.Count(block.numel()), reduction.wire.type,
                      op.get(), root, comm, stream);
  });
}

ProcessGroupAxon::WorkPtr ProcessGroupAxon::_allgather_base(
    at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& opts) {
  Call call("_all_gather_base", OpType::_ALLGATHER_BASE, opts.timeout,
            opts.asyncOp);
  const Gathered gathered(&call, call.name, output, input, rank_, size_);
  return Launch(std::move(call), [&](axonComm_t comm, axonStream_t stream) {
    ArmTimeout(opts.timeout);
    return gathered(comm, stream);
  });
}

ProcessGroupAxon::WorkPtr ProcessGroupAxon::allgather_into_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& opts) {
  Call call("all_gather_into_tensor_coalesced", OpType::ALLGATHER_COALESCED,
            opts.timeout, opts.asyncOp);
  CheckPairs(call.name, outputs, inputs);
  std::vector<Gathered> calls;
  for (size_t i = 0; i < inputs.size(); ++i) {
    calls.emplace_back(&call, call.name, outputs[i], inputs[i], rank_, size_);
  }
  return Launch(std::move(call), Each(calls, opts.timeout));
}

ProcessGroupAxon::WorkPtr ProcessGroupAxon::_reduce_scatter_base(
    at::Tensor& output, at::Tensor& input,
    const c10d::ReduceScatterOptions& opts) {
  Call call("_reduce_scatter_base", OpType::_REDUCE_SCATTER_BASE, opts.timeout,
            opts.asyncOp);
  const Scattered scattered(&call, call.name, output, input, opts.reduceOp,
                            rank_, size_);
  return Launch(std::move(call), [&](axonComm_t comm, axonStream_t stream) {
    ArmTimeout(opts.timeout);
    return scattered(comm, stream);
  });
}

ProcessGroupAxon::WorkPtr ProcessGroupAxon::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& opts) {
  Call call("reduce_scatter_tensor_coalesced",
            OpType::REDUCE_SCATTER_TENSOR_COALESCED, opts.timeout,
            opts.asyncOp);
  CheckPairs(call.name, outputs, inputs);
  std::vector<Scattered> calls;
  for (size_t i = 0; i < inputs.size(); ++i) {
    calls.emplace_back(&call, call.name, outputs[i], inputs[i], opts.reduceOp,
                       rank_, size_);
  }
  return Launch(std::move(call), Each(calls, opts.timeout));
}

ProcessGroupAxon::WorkPtr ProcessGroupAxon::alltoall_base(
    at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_splits,
    std::vector<int64_t>& input_splits, const c10d::AllToAllOptions& opts) {
  Call call("all_to_all", OpType::ALLTOALL_BASE, opts.timeout, opts.asyncOp);
  CheckTensor(call.name, output);
  CheckTensor(call.name, input);
  CheckSameType(call.name, output, input);
  TORCH_CHECK_VALUE(output.dim() > 0 && input.dim() > 0,
                    "axon all_to_all: a tensor without dimensions cannot be "
                    "split among the ranks");
  c10d::checkSplitSizes(output_splits, output, size_);
  c10d::checkSplitSizes(input_splits, input, size_);
  const at::Tensor to = call.Out(output);
  const at::Tensor from = call.InApart(input, input.scalar_type(), to, nullptr);
  const Wire wire = MoveWire(input.scalar_type());
  call.outputs.push_back(output);

  if (output_splits.empty() && input_splits.empty()) {
    TORCH_CHECK_VALUE(from.numel() == to.numel(), "axon all_to_all: input has ",
                      from.numel(), " elements and output ", to.numel(),
                      "; without split sizes they must be equal");
    return Launch(std::move(call), [&](axonComm_t comm, axonStream_t stream) {
      ArmTimeout(opts.timeout);
      return axonAlltoAll(from.const_data_ptr(), to.mutable_data_ptr(),
                          wire.Count(from.numel() / size_), wire.type, comm,
                          stream);
    });
  }
  std::vector<int64_t> send(size_), send_at(size_), recv(size_), recv_at(size_);
  c10d::computeLengthsAndOffsets(input_splits, input, &send, &send_at);
  c10d::computeLengthsAndOffsets(output_splits, output, &recv, &recv_at);
  for (auto* list : {&send, &send_at, &recv, &recv_at}) {
    for (int64_t& value : *list) value *= wire.width;
  }
  return Launch(std::move(call), [&](axonComm_t comm, axonStream_t stream) {
    ArmTimeout(opts.timeout);
    return axonAlltoAllV(from.const_data_ptr(), send.data(), send_at.data(),
                         to.mutable_data_ptr(), recv.data(), recv_at.data(),
                         wire.type, comm, stream);
  });
}

ProcessGroupAxon::WorkPtr ProcessGroupAxon::barrier(
    const c10d::BarrierOptions& opts) {
  return Launch(Call("barrier", OpType::BARRIER, opts.timeout, opts.asyncOp),
                [&](axonComm_t comm, axonStream_t stream) {
                  ArmTimeout(opts.timeout);
                  return axonBarrier(comm, stream);
                });
}

// The library's own texts name all ranks that are missing.
void ProcessGroupAxon::monitoredBarrier(const c10d::BarrierOptions& opts,
                                        bool /*wait_all_ranks*/) {
  c10d::BarrierOptions blocking = opts;
  blocking.asyncOp = false;
  barrier(blocking);
}

}  // namespace torch_axon
