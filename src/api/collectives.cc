// SPDX-License-Identifier: Apache-2.0
// The communication calls: arguments to values, checked, submitted.
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "api/group.h"
#include "api/result.h"
#include "axon/axon.h"
#include "base/scalar.h"
#include "base/status.h"
#include "comm/check_args.h"

namespace axon {
namespace {

absl::Status SetType(int type, CollectiveArgs* args) {
  if (type < 0 || type >= axonNumTypes) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "data type %d is not one of 0 to %d", type, axonNumTypes - 1));
  }
  args->type = static_cast<DataType>(type);
  return absl::OkStatus();
}

absl::Status SetOp(const axonComm& comm, int op, CollectiveArgs* args) {
  if (op >= 0 && op <= axonBitXor) {
    args->op = static_cast<ReduceOp>(op);
    return absl::OkStatus();
  }
  const auto made = comm.ops.find(op);
  if (made == comm.ops.end()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "operator %d is neither built in nor made by axonRedOpCreatePreMulSum "
        "for this communicator",
        op));
  }
  if (made->second.type != args->type) {
    return absl::InvalidArgumentError(
        absl::StrFormat("operator %d was made for %s, not for %s", op,
                        Name(made->second.type), Name(args->type)));
  }
  args->op = ReduceOp::kPreMulSum;
  args->factor = made->second.factor;
  args->factor_at = made->second.factor_at;
  return absl::OkStatus();
}

// Of collectives that combine nothing: as CollectiveArgs has it.
constexpr int kNoOp = axonSum;

// Fills in type and operator, checks, submits.
axonResult_t Call(CollectiveArgs args, int type, int op, axonComm_t comm,
                  axonStream_t stream) {
  absl::Status status = CheckHandle(comm);
  if (!status.ok()) return Refuse(status);
  Inside inside(*comm);
  if (stream != nullptr) status = CheckHandle(stream);
  if (status.ok()) status = SetType(type, &args);
  if (status.ok()) status = SetOp(*comm, op, &args);
  if (status.ok()) {
    status = CheckCollective(args, comm->comm->size(), comm->comm->rank());
  }
  if (!status.ok()) return Refuse(status, comm);
  return Submit(comm, std::move(args), stream);
}

CollectiveArgs Args(Collective collective, const void* in, void* out,
                    size_t count, int root = 0) {
  CollectiveArgs args;
  args.collective = collective;
  args.in = in;
  args.out = out;
  args.count = count;
  args.root = root;
  return args;
}

constexpr auto kNumPlainOps = static_cast<unsigned>(axonBitXor) + 1;

// The long way, kept apart from the few instructions of the short one.
[[gnu::noinline]] axonResult_t EvenCallElse(Collective collective,
                                            const void* in, void* out,
                                            size_t count, int type, int op,
                                            int root, axonComm_t comm,
                                            axonStream_t stream) {
  return Call(Args(collective, in, out, count, root), type, op, comm, stream);
}

// A blocking collective of equal parts whose numbers are in range: the short
// way if it is open, else the long one.
[[gnu::noinline]] axonResult_t EvenCallHere(axonComm& comm, CallShape shape,
                                            const void* in, void* out) {
  if (MayGoShortWay()) {
    Inside inside(comm);
    Communicator& c = *comm.comm;
    if (Recipe* const recipe = c.QuickRecipe(shape, in, out)) {
      const Poll poll = c.RunQuickly(*recipe, in, out);
      return poll == Poll::kReady ? axonSuccess
                                  : EndQuickly(comm, *recipe, poll);
    }
  }
  return EvenCallElse(
      shape.collective(), in, out, shape.count, static_cast<int>(shape.type()),
      static_cast<int>(shape.op()), shape.root(), &comm, nullptr);
}

// A collective of equal parts. Small, since every one has it.
axonResult_t EvenCall(Collective collective, const void* in, void* out,
                      size_t count, int type, int op, int root, axonComm_t comm,
                      axonStream_t stream) {
  if (stream == nullptr && IsHandle(comm) && !InForkedChild() &&
      static_cast<unsigned>(type) < axonNumTypes &&
      static_cast<unsigned>(op) < kNumPlainOps) {
    return EvenCallHere(*comm,
                        {collective, static_cast<DataType>(type),
                         static_cast<ReduceOp>(op), root, count},
                        in, out);
  }
  return EvenCallElse(collective, in, out, count, type, op, root, comm, stream);
}

uint64_t HashOf(const std::vector<int64_t>& numbers) {
  // FNV-1a over words.
  uint64_t hash = 0xcbf29ce484222325;
  for (int64_t n : numbers) {
    hash = (hash ^ static_cast<uint64_t>(n)) * 0x100000001b3;
  }
  return hash;
}

// counts and displacements, copied; displs NULL packs.
absl::Status SetParts(const int64_t* counts, const int64_t* displs, int ranks,
                      std::vector<int64_t>* lengths,
                      std::vector<int64_t>* offsets) {
  if (counts == nullptr) {
    return absl::InvalidArgumentError(
        "the array of counts is NULL; it has one entry a rank");
  }
  lengths->assign(counts, counts + ranks);
  if (displs == nullptr) {
    *offsets = PackedOffsets(*lengths);
  } else {
    offsets->assign(displs, displs + ranks);
  }
  return absl::OkStatus();
}

axonResult_t UnevenCall(CollectiveArgs args, const int64_t* counts,
                        const int64_t* displs, int type, int op,
                        axonComm_t comm, axonStream_t stream) {
  absl::Status status = CheckHandle(comm);
  if (!status.ok()) return Refuse(status);
  Inside inside(*comm);
  status = SetParts(counts, displs, comm->comm->size(), &args.lengths,
                    &args.offsets);
  if (!status.ok()) return Refuse(status, comm);
  args.variant = CallVariant::kUneven;
  args.extra = HashOf(args.lengths);
  for (int64_t length : args.lengths) {
    args.count += static_cast<size_t>(length);  // refused below if negative
  }
  return Call(std::move(args), type, op, comm, stream);
}

axonResult_t Message(bool send, void* buffer, size_t count, int type, int peer,
                     axonComm_t comm, axonStream_t stream) {
  absl::Status status = CheckHandle(comm);
  if (!status.ok()) return Refuse(status);
  Inside inside(*comm);
  if (stream != nullptr) status = CheckHandle(stream);
  CollectiveArgs typed;
  if (status.ok()) status = SetType(type, &typed);
  MessageArgs args{send, buffer, 0, peer};
  if (status.ok()) {
    status = CheckMessage(args, count, typed.type, comm->comm->size());
  }
  if (status.ok() && peer == comm->comm->rank() && !InGroup()) {
    status = absl::InvalidArgumentError(
        "a message to the own rank needs a group with its send and its "
        "receive");
  }
  if (!status.ok()) return Refuse(status, comm);
  args.bytes = count * ElementSize(typed.type);
  return Submit(comm, {&args, 1}, stream);
}

void AddMessages(bool send, const Parts& parts, size_t element,
                 std::vector<MessageArgs>* messages) {
  for (size_t r = 0; r < parts.lengths.size(); ++r) {
    auto* base = static_cast<std::byte*>(const_cast<void*>(parts.base));
    messages->push_back(
        {send,
         base == nullptr
             ? nullptr
             : base + static_cast<size_t>(parts.offsets[r]) * element,
         static_cast<size_t>(parts.lengths[r]) * element, static_cast<int>(r),
         kCallLane});
  }
}

// A number for an operator that no living one has.
absl::StatusOr<int> NewOpHandle(axonComm& comm) {
  constexpr int kMostOps = 0xfe00;
  if (comm.ops.size() >= kMostOps) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "communicator '%s' has %d operators of axonRedOpCreatePreMulSum; "
        "destroy those that are not needed by axonRedOpDestroy",
        comm.comm->name(), kMostOps));
  }
  // Handles of other communicators are told apart by their address bits.
  const auto base = static_cast<int>(
      (reinterpret_cast<uintptr_t>(&comm) >> 6 & 0x7fff) << 16 | 0x100);
  while (comm.ops.count(base + comm.next_op) != 0) {
    comm.next_op = (comm.next_op + 1) % kMostOps;
  }
  const int handle = base + comm.next_op;
  comm.next_op = (comm.next_op + 1) % kMostOps;
  return handle;
}

}  // namespace
}  // namespace axon

using axon::Args;
using axon::Collective;

axonResult_t axonAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                           axonDataType_t datatype, axonRedOp_t op,
                           axonComm_t comm, axonStream_t stream) noexcept {
  return axon::EvenCall(Collective::kAllReduce, sendbuff, recvbuff, count,
                        datatype, static_cast<int>(op), 0, comm, stream);
}

axonResult_t axonBroadcast(const void* sendbuff, void* recvbuff, size_t count,
                           axonDataType_t datatype, int root, axonComm_t comm,
                           axonStream_t stream) noexcept {
  return axon::EvenCall(Collective::kBroadcast, sendbuff, recvbuff, count,
                        datatype, axon::kNoOp, root, comm, stream);
}

axonResult_t axonBcast(void* buff, size_t count, axonDataType_t datatype,
                       int root, axonComm_t comm,
                       axonStream_t stream) noexcept {
  return axonBroadcast(buff, buff, count, datatype, root, comm, stream);
}

axonResult_t axonReduce(const void* sendbuff, void* recvbuff, size_t count,
                        axonDataType_t datatype, axonRedOp_t op, int root,
                        axonComm_t comm, axonStream_t stream) noexcept {
  return axon::EvenCall(Collective::kReduce, sendbuff, recvbuff, count,
                        datatype, static_cast<int>(op), root, comm, stream);
}

axonResult_t axonAllGather(const void* sendbuff, void* recvbuff,
                           size_t sendcount, axonDataType_t datatype,
                           axonComm_t comm, axonStream_t stream) noexcept {
  return axon::EvenCall(Collective::kAllGather, sendbuff, recvbuff, sendcount,
                        datatype, axon::kNoOp, 0, comm, stream);
}

axonResult_t axonReduceScatter(const void* sendbuff, void* recvbuff,
                               size_t recvcount, axonDataType_t datatype,
                               axonRedOp_t op, axonComm_t comm,
                               axonStream_t stream) noexcept {
  return axon::EvenCall(Collective::kReduceScatter, sendbuff, recvbuff,
                        recvcount, datatype, static_cast<int>(op), 0, comm,
                        stream);
}

axonResult_t axonAlltoAll(const void* sendbuff, void* recvbuff, size_t count,
                          axonDataType_t datatype, axonComm_t comm,
                          axonStream_t stream) noexcept {
  return axon::EvenCall(Collective::kAlltoAll, sendbuff, recvbuff, count,
                        datatype, axon::kNoOp, 0, comm, stream);
}

axonResult_t axonGather(const void* sendbuff, void* recvbuff, size_t count,
                        axonDataType_t datatype, int root, axonComm_t comm,
                        axonStream_t stream) noexcept {
  return axon::EvenCall(Collective::kGather, sendbuff, recvbuff, count,
                        datatype, axon::kNoOp, root, comm, stream);
}

axonResult_t axonScatter(const void* sendbuff, void* recvbuff, size_t count,
                         axonDataType_t datatype, int root, axonComm_t comm,
                         axonStream_t stream) noexcept {
  return axon::EvenCall(Collective::kScatter, sendbuff, recvbuff, count,
                        datatype, axon::kNoOp, root, comm, stream);
}

axonResult_t axonBarrier(axonComm_t comm, axonStream_t stream) noexcept {
  return axon::EvenCall(Collective::kBarrier, nullptr, nullptr, 0, axonUint8,
                        axon::kNoOp, 0, comm, stream);
}

axonResult_t axonAllGatherV(const void* sendbuff, void* recvbuff,
                            const int64_t* counts, const int64_t* displs,
                            axonDataType_t datatype, axonComm_t comm,
                            axonStream_t stream) noexcept {
  return axon::UnevenCall(Args(Collective::kAllGather, sendbuff, recvbuff, 0),
                          counts, displs, datatype, axon::kNoOp, comm, stream);
}

axonResult_t axonReduceScatterV(const void* sendbuff, void* recvbuff,
                                const int64_t* counts, const int64_t* displs,
                                axonDataType_t datatype, axonRedOp_t op,
                                axonComm_t comm, axonStream_t stream) noexcept {
  return axon::UnevenCall(
      Args(Collective::kReduceScatter, sendbuff, recvbuff, 0), counts, displs,
      datatype, static_cast<int>(op), comm, stream);
}

axonResult_t axonAlltoAllV(const void* sendbuff, const int64_t* sendcounts,
                           const int64_t* sdispls, void* recvbuff,
                           const int64_t* recvcounts, const int64_t* rdispls,
                           axonDataType_t datatype, axonComm_t comm,
                           axonStream_t stream) noexcept {
  absl::Status status = axon::CheckHandle(comm);
  if (!status.ok()) return axon::Refuse(status);
  axon::Inside inside(*comm);
  const int ranks = comm->comm->size();
  std::vector<int64_t> send_lengths, send_offsets, recv_lengths, recv_offsets;
  status =
      axon::SetParts(sendcounts, sdispls, ranks, &send_lengths, &send_offsets);
  if (status.ok()) {
    status = axon::SetParts(recvcounts, rdispls, ranks, &recv_lengths,
                            &recv_offsets);
  }
  axon::CollectiveArgs entry = Args(Collective::kAlltoAll, nullptr, nullptr, 0);
  if (status.ok()) status = axon::SetType(datatype, &entry);
  const axon::Parts send{"sendbuff", sendbuff, send_lengths, send_offsets};
  const axon::Parts recv{"recvbuff", recvbuff, recv_lengths, recv_offsets};
  if (status.ok()) status = axon::CheckAlltoAllV(send, recv, entry.type);
  if (!status.ok()) return axon::Refuse(status, comm);
  entry.variant = axon::CallVariant::kUneven;
  const size_t element = axon::ElementSize(entry.type);
  axon::AddMessages(false, recv, element, &entry.messages);
  axon::AddMessages(true, send, element, &entry.messages);
  return axon::Call(std::move(entry), datatype, axon::kNoOp, comm, stream);
}

axonResult_t axonSend(const void* sendbuff, size_t count,
                      axonDataType_t datatype, int peer, axonComm_t comm,
                      axonStream_t stream) noexcept {
  return axon::Message(true, const_cast<void*>(sendbuff), count, datatype, peer,
                       comm, stream);
}

axonResult_t axonRecv(void* recvbuff, size_t count, axonDataType_t datatype,
                      int peer, axonComm_t comm, axonStream_t stream) noexcept {
  return axon::Message(false, recvbuff, count, datatype, peer, comm, stream);
}

axonResult_t axonRedOpCreatePreMulSum(axonRedOp_t* op, void* scalar,
                                      axonDataType_t datatype,
                                      axonScalarResidence_t residence,
                                      axonComm_t comm) noexcept {
  absl::Status status = axon::CheckHandle(comm);
  if (!status.ok()) return axon::ToResult(status);
  axon::CollectiveArgs typed;
  status = axon::SetType(datatype, &typed);
  if (status.ok() && (op == nullptr || scalar == nullptr)) {
    status = absl::InvalidArgumentError("op and scalar must not be NULL");
  }
  if (status.ok() && residence != axonScalarDevice &&
      residence != axonScalarHostImmediate) {
    status = absl::InvalidArgumentError(absl::StrFormat(
        "residence %d is neither device (0) nor host immediate (1)",
        static_cast<int>(residence)));
  }
  if (!status.ok()) return axon::ToResult(status, comm);
  const absl::StatusOr<int> handle = axon::NewOpHandle(*comm);
  if (!handle.ok()) return axon::ToResult(handle.status(), comm);
  const bool later = residence == axonScalarDevice;
  comm->ops[*handle] = {typed.type,
                        later ? 1 : axon::ReadScalar(scalar, typed.type),
                        later ? scalar : nullptr};
  *op = static_cast<axonRedOp_t>(*handle);
  return axonSuccess;
}

axonResult_t axonRedOpDestroy(axonRedOp_t op, axonComm_t comm) noexcept {
  const absl::Status status = axon::CheckHandle(comm);
  if (!status.ok()) return axon::ToResult(status);
  if (comm->ops.erase(op) == 1) return axonSuccess;
  return axon::ToResult(
      absl::InvalidArgumentError(absl::StrFormat(
          "operator %d was not made for this communicator, or is destroyed",
          static_cast<int>(op))),
      comm);
}
