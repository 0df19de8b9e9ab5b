// SPDX-License-Identifier: Apache-2.0
#include "perf/rank.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "perf/failure.h"

namespace axon::perf {

Rank::Rank(const Options& options, const World& world, int thread)
    : exceptions_(std::uncaught_exceptions()) {
  axonConfig_t config = AXON_CONFIG_INITIALIZER;
  if (options.timeout_seconds > 0) {
    config.timeoutMs = 1000 * options.timeout_seconds;
  }
  config.commName = "perf";
  if (world.from_environment) {
    Require(axonCommInitEnv(&comm_, &config), "axonCommInitEnv");
  } else {
    const int rank = world.process * options.threads + thread;
    if (world.pin && options.threads > 1) PinTo(rank);
    Require(axonCommInitRankConfig(&comm_, world.processes * options.threads,
                                   world.id, rank, &config),
            "axonCommInitRankConfig");
  }
  Require(axonCommUserRank(comm_, &rank_), "axonCommUserRank");
  Require(axonCommCount(comm_, &size_), "axonCommCount");
  if (!options.null_stream) {
    Require(axonStreamCreate(&stream_), "axonStreamCreate");
  }
}

Rank::~Rank() {
  if (std::uncaught_exceptions() > exceptions_) {
    axonCommAbort(comm_);
    if (stream_ != nullptr) axonStreamDestroy(stream_);
    return;
  }
  if (stream_ != nullptr) axonStreamDestroy(stream_);
  axonCommDestroy(comm_);
}

void Rank::Require(axonResult_t result, const std::string& what) const {
  perf::Require(result, comm_, what);
}

void Rank::Barrier() { Require(axonBarrier(comm_, nullptr), "axonBarrier"); }

void Rank::Wait() {
  if (stream_ == nullptr) return;
  Require(axonStreamSynchronize(stream_), "axonStreamSynchronize");
}

void Rank::Combine(Options::Average average, std::vector<double>* values) {
  if (average == Options::Average::kRankZero) return;
  const axonRedOp_t op = average == Options::Average::kMin   ? axonMin
                         : average == Options::Average::kMax ? axonMax
                                                             : axonAvg;
  Require(axonAllReduce(values->data(), values->data(), values->size(),
                        axonFloat64, op, comm_, nullptr),
          "axonAllReduce of times");
}

int64_t Rank::Sum(int64_t value) {
  Require(axonAllReduce(&value, &value, 1, axonInt64, axonSum, comm_, nullptr),
          "axonAllReduce of a sum");
  return value;
}

std::vector<std::string> Rank::Gather(const std::string& text) {
  constexpr size_t kBytes = 128;
  std::vector<char> mine(kBytes), all(kBytes * size_);
  std::memcpy(mine.data(), text.data(), std::min(text.size(), kBytes - 1));
  Require(
      axonAllGather(mine.data(), all.data(), kBytes, axonInt8, comm_, nullptr),
      "axonAllGather of descriptions");
  std::vector<std::string> texts;
  for (int i = 0; i < size_; ++i) texts.emplace_back(&all[i * kBytes]);
  return texts;
}

Buffer::Buffer(const Options& options, const Rank& rank, size_t bytes)
    : rank_(rank), mapped_(options.mapped) {
  constexpr size_t kPage = 4096;
  bytes = (std::max<size_t>(bytes, 1) + kPage - 1) / kPage * kPage;
  if (mapped_) {
    rank_.Require(axonMemAlloc(&data_, bytes),
                  "axonMemAlloc of " + std::to_string(bytes) + " bytes");
  } else if ((data_ = std::aligned_alloc(kPage, bytes)) == nullptr) {
    throw Failure("no memory for a buffer of " + std::to_string(bytes) +
                  " bytes; choose a smaller -e");
  }
  if (!options.register_buffers) return;
  rank_.Require(axonCommRegister(rank_.comm(), data_, bytes, &handle_),
                "axonCommRegister");
}

Buffer::~Buffer() {
  if (handle_ != nullptr) axonCommDeregister(rank_.comm(), handle_);
  if (mapped_) {
    axonMemFree(data_);
  } else {
    std::free(data_);
  }
}

}  // namespace axon::perf
