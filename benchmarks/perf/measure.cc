// SPDX-License-Identifier: Apache-2.0
#include "perf/measure.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>

namespace axon::perf {

namespace {

using Clock = std::chrono::steady_clock;

// Below this many bytes a real program's buffers stay in its caches.
constexpr size_t kTouchFrom = 4096;

double Usec(Clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

// Keeps reads of outputs from being optimised away.
void Consume(uint64_t value) { asm volatile("" : : "r"(value) : "memory"); }

}  // namespace

Measurement::Measurement(const Options& options, const Program& program,
                         const Type& type, const Operator& op, int root,
                         Rank* rank, const Buffer& send, const Buffer& recv)
    : options_(options),
      program_(program),
      type_(type),
      op_(op),
      rank_(*rank),
      send_(send.data() + options.first_element * type.size),
      recv_(recv.data() + options.first_element * type.size),
      pattern_(type, op, rank->size()) {
  call_.type = type.id;
  call_.place = {rank->rank(), rank->size(), std::max(root, 0)};
  call_.comm = rank->comm();
  call_.stream = rank->stream();
  if (op.kind == Operator::Kind::kMulSum) {
    uint64_t scalar = 0;
    Store(type, pattern_.Scalar(rank->rank()), &scalar);
    rank_.Require(axonRedOpCreatePreMulSum(&call_.op, &scalar, type.id,
                                           axonScalarHostImmediate, call_.comm),
                  "axonRedOpCreatePreMulSum");
  } else if (op.kind != Operator::Kind::kNone) {
    call_.op = Id(op);
  }
}

Measurement::~Measurement() {
  if (op_.kind == Operator::Kind::kMulSum) {
    axonRedOpDestroy(call_.op, call_.comm);
  }
}

size_t Measurement::bytes() const {
  return std::max(shape_.send, shape_.recv) * type_.size;
}

void Measurement::WarmUp(size_t bytes) {
  SetUp(bytes, /*in_place=*/false);
  for (int i = 0; i < options_.warmup; ++i) Start(options_.aggregated);
  rank_.Wait();
}

Timing Measurement::Run(size_t size, bool in_place) {
  Timing timing;
  timing.supported = !in_place || program_.in_place != Program::InPlace::kNo;
  if (!timing.supported) return timing;
  SetUp(size, in_place);
  Start(options_.aggregated);
  rank_.Wait();
  rank_.Barrier();
  const bool each =
      options_.statistics || (options_.touch && bytes() >= kTouchFrom);
  std::vector<double> usec = {each ? TimeEach(&timing.samples)
                                   : TimeTogether()};
  rank_.Combine(options_.average, &usec);
  if (options_.statistics) rank_.Combine(options_.average, &timing.samples);
  const double gigabytes = static_cast<double>(bytes()) / 1e9;
  timing.usec = usec[0];
  timing.alg_bw = usec[0] > 0 ? gigabytes / (usec[0] / 1e6) : 0;
  timing.bus_bw = timing.alg_bw * program_.bus_factor(rank_.size());
  for (int i = 0; i < options_.checks; ++i) timing.wrong += Check();
  return timing;
}

void Measurement::SetUp(size_t bytes, bool in_place) {
  shape_ = program_.shape(bytes / type_.size, type_.size, rank_.size());
  in_place_ = in_place;
  const size_t part = rank_.rank() * shape_.count * type_.size;
  input_ = in_place ? recv_ : send_;
  std::byte* output = recv_;
  if (in_place && program_.in_place == Program::InPlace::kSendIsPart) {
    input_ += part;
  }
  if (in_place && program_.in_place == Program::InPlace::kRecvIsPart) {
    output += part;
  }
  call_.send = input_;
  call_.recv = output;
  call_.count = shape_.count;
  FillInput();
}

void Measurement::FillInput() {
  pattern_.Fill(rank_.rank(), 0, shape_.send, input_);
}

void Measurement::Start(int calls) {
  if (calls > 1) rank_.Require(axonGroupStart(), "axonGroupStart");
  for (int i = 0; i < calls; ++i) {
    rank_.Require(program_.call(call_), program_.name);
  }
  if (calls > 1) rank_.Require(axonGroupEnd(), "axonGroupEnd");
}

// One clock for all iterations: the average has no cost of reading it.
double Measurement::TimeTogether() {
  using Blocking = Options::Blocking;
  const Blocking blocking = options_.blocking;
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < options_.iterations; ++i) {
    Start(options_.aggregated);
    if (blocking == Blocking::kBarrierEach || blocking == Blocking::kWaitEach) {
      rank_.Wait();
    }
    if (blocking == Blocking::kBarrierEach) rank_.Barrier();
  }
  const Clock::time_point queued = Clock::now();
  rank_.Wait();
  if (blocking == Blocking::kBarrierAfter) rank_.Barrier();
  const Clock::time_point end = options_.cpu_time ? queued : Clock::now();
  return Usec(end - start) / (options_.iterations * options_.aggregated);
}

// Each iteration by itself, behind a barrier.
double Measurement::TimeEach(std::vector<double>* samples) {
  double sum = 0;
  for (int i = 0; i < options_.iterations; ++i) {
    if (options_.touch) Touch();
    rank_.Barrier();
    const Clock::time_point start = Clock::now();
    Start(options_.aggregated);
    rank_.Wait();
    const double usec = Usec(Clock::now() - start) / options_.aggregated;
    sum += usec;
    if (options_.statistics) samples->push_back(usec);
  }
  return sum / options_.iterations;
}

// Imitates the caller's work: buffers that nobody touches stay in the caches
// that the last call left them in.
void Measurement::Touch() {
  constexpr size_t kLine = 64;
  const auto* output = static_cast<const std::byte*>(call_.recv);
  uint64_t sum = 0;
  for (size_t i = 0; i < shape_.recv * type_.size; i += kLine) {
    sum += std::to_integer<uint64_t>(output[i]);
  }
  Consume(sum);
  FillInput();
}

// One more call, from fresh inputs into garbage: wrong elements over all ranks.
int64_t Measurement::Check() {
  auto* output = static_cast<std::byte*>(call_.recv);
  std::memset(recv_, 0xa5, bytes());
  FillInput();
  Start(1);
  rank_.Wait();
  int64_t wrong = 0;
  for (const Part& part : program_.expect(call_.place, shape_.count)) {
    wrong += pattern_.Wrong(part.source, part.first, part.count,
                            output + part.at * type_.size);
  }
  if (!in_place_) {  // the library may not write into inputs
    wrong += pattern_.Wrong(rank_.rank(), 0, shape_.send, input_);
  }
  wrong_here_ += wrong;
  return rank_.Sum(wrong);
}

}  // namespace axon::perf
