// SPDX-License-Identifier: Apache-2.0
// What schedules cost where nothing is sent: building one rank's list, proving
// all of them, predicting their time, and the way to text and back. Every row
// of the table, by number of ranks.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "schedule/algorithms.h"
#include "schedule/check.h"
#include "schedule/cost.h"
#include "schedule/text.h"

namespace axon {
namespace {

void Build(benchmark::State& state, const Algorithm& row, int ranks) {
  const Group group = Group::World(ranks, ranks / 2);
  size_t ops = 0;
  for (auto _ : state) {
    const Schedule schedule = row.generate(group);
    ops = schedule.ops.size();
    benchmark::DoNotOptimize(schedule.ops.data());
  }
  state.counters["ops"] = static_cast<double>(ops);
}

void Prove(benchmark::State& state, const Algorithm& row, int ranks) {
  const Call call = MakeCall(row, ranks, 0);
  for (auto _ : state) {
    if (const absl::Status status = Check(call, {}); !status.ok()) {
      state.SkipWithError(std::string(status.message()).c_str());
      break;
    }
  }
}

void Predict(benchmark::State& state, const Algorithm& row, int ranks) {
  const Call call = MakeCall(row, ranks, 0);
  const CostModel model{.links = {{.latency = 1e-6, .seconds_per_byte = 1e-10}},
                        .seconds_per_op = 1e-8};
  double seconds = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        seconds = PredictSeconds(call.schedules, 1 << 20, model));
  }
  state.counters["predicted_s"] = seconds;
}

void ToTextAndBack(benchmark::State& state, const Algorithm& row, int ranks) {
  const Call call = MakeCall(row, ranks, 0);
  size_t bytes = 0;
  for (auto _ : state) {
    const std::string text = SchedulesText(call.schedules);
    bytes = text.size();
    const auto read = ParseSchedules(text);
    if (!read.ok() || *read != call.schedules) {
      state.SkipWithError("text is not read back equal");
      break;
    }
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes));
}

void RegisterAll() {
  using Function = void (*)(benchmark::State&, const Algorithm&, int);
  const std::pair<const char*, Function> kFunctions[] = {
      {"build", Build},
      {"prove", Prove},
      {"predict", Predict},
      {"text", ToTextAndBack}};
  for (const auto& [what, function] : kFunctions) {
    for (const Algorithm& row : Algorithms()) {
      for (int ranks : {2, 16, 64}) {
        if (!Applies(row, ranks)) continue;
        benchmark::RegisterBenchmark(
            absl::StrCat(what, "/", Name(row.collective), "/", row.name, "/",
                         ranks)
                .c_str(),
            [function = function, &row, ranks](benchmark::State& state) {
              function(state, row, ranks);
            });
      }
    }
  }
}

}  // namespace
}  // namespace axon

int main(int argc, char** argv) {
  axon::RegisterAll();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
