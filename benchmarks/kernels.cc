// SPDX-License-Identifier: Apache-2.0
// Speed of the reduction and copy kernels beside memcpy, on one core. Bytes
// count what is read and written, so that rows compare: a copy of n bytes moves
// 2n, a reduction of s sources into d destinations (s + d)n.
#include "engine/kernels.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/types.h"
#include "benchmark/benchmark.h"

namespace axon {
namespace {

// From the first-level cache to memory.
constexpr int64_t kSizes[] = {64, 4 << 10, 128 << 10, 4 << 20, 64 << 20};

std::vector<std::vector<uint8_t>> Buffers(int count, size_t bytes) {
  return std::vector<std::vector<uint8_t>>(count,
                                           std::vector<uint8_t>(bytes, 1));
}

void Memcpy(benchmark::State& state) {
  auto buffers = Buffers(2, state.range(0));
  for (auto _ : state) {
    std::memcpy(buffers[0].data(), buffers[1].data(), state.range(0));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * 2 * state.range(0));
}

void Copy(benchmark::State& state) {
  auto buffers = Buffers(2, state.range(0));
  for (auto _ : state) {
    CopyBytes(buffers[0].data(), buffers[1].data(), state.range(0));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * 2 * state.range(0));
}

void Reduce(benchmark::State& state, DataType type, ReduceOp op,
            int num_sources, int num_destinations) {
  const size_t bytes = state.range(0);
  auto buffers = Buffers(num_sources + num_destinations, bytes);
  std::vector<void*> addresses;
  for (auto& buffer : buffers) addresses.push_back(buffer.data());
  const std::vector<double> factors(num_sources, 0.5);
  const ReduceArgs args = {addresses.data(),
                           num_sources,
                           addresses.data() + num_sources,
                           num_destinations,
                           bytes / ElementSize(type),
                           factors.data(),
                           num_sources};
  const ReduceFn reduce = FindReduce(type, op);
  for (auto _ : state) {
    reduce(args);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * bytes * buffers.size());
}

void Register(DataType type, ReduceOp op, int sources, int destinations) {
  const std::string name = std::string(Name(type)) + "/" + Name(op) + "/" +
                           std::to_string(sources) + "to" +
                           std::to_string(destinations);
  auto* row =
      benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
        Reduce(state, type, op, sources, destinations);
      });
  for (int64_t size : kSizes) row->Arg(size);
}

void RegisterAll() {
  for (auto* row : {benchmark::RegisterBenchmark("memcpy", Memcpy),
                    benchmark::RegisterBenchmark("CopyBytes", Copy)}) {
    for (int64_t size : kSizes) row->Arg(size);
  }
  for (DataType type :
       {DataType::kFloat32, DataType::kBfloat16, DataType::kFloat16,
        DataType::kFloat8e4m3, DataType::kInt8, DataType::kInt32}) {
    for (int sources : {2, 4}) Register(type, ReduceOp::kSum, sources, 1);
  }
  Register(DataType::kFloat32, ReduceOp::kSum, 2, 2);
  Register(DataType::kFloat32, ReduceOp::kSum, 16, 1);
  for (ReduceOp op : {ReduceOp::kMax, ReduceOp::kAvg, ReduceOp::kPreMulSum}) {
    Register(DataType::kFloat32, op, 2, 1);
  }
  Register(DataType::kInt32, ReduceOp::kAvg, 2, 1);
}

}  // namespace
}  // namespace axon

int main(int argc, char** argv) {
  benchmark::AddCustomContext("instructions", axon::KernelTarget());
  axon::RegisterAll();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
