// SPDX-License-Identifier: Apache-2.0
#include "perf/report.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <sstream>

#include "perf/failure.h"

extern char** environ;

namespace axon::perf {

namespace {

using Json = nlohmann::ordered_json;

std::string Now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

std::string LibraryVersion() {
  int version = 0;
  axonGetVersion(&version);
  return std::to_string(version / 10000) + "." +
         std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

// The settings in force. The secret of a rendezvous is nobody else's business.
Json Environment() {
  Json environment = Json::object();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    if (name.rfind("AXON_", 0) != 0 || name == "AXON_COMM_SECRET") continue;
    environment[name] = text.substr(std::min(name.size() + 1, text.size()));
  }
  return environment;
}

Json Devices(const std::vector<std::string>& ranks) {
  Json devices = Json::array();
  for (size_t i = 0; i < ranks.size(); ++i) {
    std::istringstream words(ranks[i]);
    int pid = 0, cpu = -1;
    std::string host;
    words >> pid >> host >> cpu;
    devices.push_back(
        {{"rank", i}, {"pid", pid}, {"host", host}, {"cpu", cpu}});
  }
  return devices;
}

Json Config(const Options& o, const std::vector<std::string>& ranks) {
  return {{"nranks", ranks.size()},
          {"nthreads", o.threads},
          {"ngpus", 1},
          {"minimum_bytes", o.min_bytes},
          {"maximum_bytes", o.max_bytes},
          {"step_bytes", o.step_bytes},
          {"step_factor", o.step_factor},
          {"warmup_iterations", o.warmup},
          {"iterations", o.iterations},
          {"aggregated_iterations", o.aggregated},
          {"validation", o.checks},
          {"buffers", o.mapped ? "mapped" : "private"},
          {"registered", o.register_buffers},
          {"touch", o.touch},
          {"devices", Devices(ranks)}};
}

std::string Microseconds(double usec) {
  const int digits = usec >= 10000 ? 0 : usec >= 100 ? 1 : usec >= 10 ? 2 : 3;
  char text[32];
  std::snprintf(text, sizeof(text), "%.*f", digits, usec);
  return text;
}

void PrintTiming(const Options& options, const Timing& timing) {
  if (!timing.supported) {
    std::printf("  %7s  %6s  %6s  %5s", "N/A", "N/A", "N/A", "N/A");
    return;
  }
  const std::string wrong =
      options.checks > 0 ? std::to_string(timing.wrong) : "N/A";
  std::printf("  %7s  %6.2f  %6.2f  %5s", Microseconds(timing.usec).c_str(),
              timing.alg_bw, timing.bus_bw, wrong.c_str());
}

// Sorted, without the leading calls that the options leave out.
std::vector<double> Counted(const Options& options, const Timing& timing) {
  const size_t skip =
      std::min<size_t>(options.leading_samples, timing.samples.size());
  std::vector<double> samples(timing.samples.begin() + skip,
                              timing.samples.end());
  std::sort(samples.begin(), samples.end());
  return samples;
}

void PrintStatistics(const Options& options, const char* place,
                     const Timing& timing) {
  const std::vector<double> samples = Counted(options, timing);
  if (samples.empty()) return;
  const auto at = [&](double share) {
    const auto last = static_cast<double>(samples.size() - 1);
    return Microseconds(samples[static_cast<size_t>(share * last + 0.5)]);
  };
  std::printf("# %12s: min %s median %s p99 %s max %s us over %zu calls\n",
              place, at(0).c_str(), at(0.5).c_str(), at(0.99).c_str(),
              at(1).c_str(), samples.size());
}

Json TimingJson(const Options& options, const Timing& timing) {
  if (!timing.supported) return nullptr;
  Json json = {{"time", timing.usec},
               {"alg_bw", timing.alg_bw},
               {"bus_bw", timing.bus_bw}};
  json["nwrong"] = options.checks > 0 ? Json(timing.wrong) : Json(nullptr);
  if (options.statistics) json["iterations"] = timing.samples;
  return json;
}

}  // namespace

Report::Report(const Options& options, const Program& program,
               const std::vector<std::string>& ranks)
    : options_(options), program_(program) {
  json_["version"] = 3;
  json_["start_time"] = Now();
  json_["args"] = options.arguments;
  json_["env"] = Environment();
  json_["axon_version"] = LibraryVersion();
  json_["config"] = Config(options, ranks);
  json_["results"] = Json::array();
  PrintHeader(ranks);
}

void Report::PrintHeader(const std::vector<std::string>& ranks) const {
  const Options& o = options_;
  std::printf("# Collective test starting: %s_perf, axon %s\n", program_.name,
              LibraryVersion().c_str());
  std::printf("# nThread %d nGpus 1 minBytes %zu maxBytes %zu step: ",
              o.threads, o.min_bytes, o.max_bytes);
  if (o.step_factor > 1) {
    std::printf("%g(factor)", o.step_factor);
  } else {
    std::printf("%zu(bytes)", o.step_bytes);
  }
  std::printf(
      " warmup iters: %d iters: %d agg iters: %d validation: %d "
      "graph: 0\n# buffers: %s%s touch: %d\n#\n# Using devices\n",
      o.warmup, o.iterations, o.aggregated, o.checks,
      o.mapped ? "mapped" : "private", o.register_buffers ? ", registered" : "",
      o.touch);
  for (const Json& device : Devices(ranks)) {
    std::printf("#  Rank %2d Group  0 Pid %6d on %10s cpu %2d\n",
                device["rank"].get<int>(), device["pid"].get<int>(),
                device["host"].get<std::string>().c_str(),
                device["cpu"].get<int>());
  }
  std::printf("#\n#%60s  %-33s%-s\n", "", "out-of-place", "in-place");
  std::printf("# %10s  %12s  %8s  %6s  %6s", "size", "count", "type", "redop",
              "root");
  for (int i = 0; i < 2; ++i) {
    std::printf("  %7s  %6s  %6s %6s", "time", "algbw", "busbw", "#wrong");
  }
  std::printf("\n# %10s  %12s  %8s  %6s  %6s", "(B)", "(elements)", "", "", "");
  for (int i = 0; i < 2; ++i) {
    std::printf("  %7s  %6s  %6s %6s", "(us)", "(GB/s)", "(GB/s)", "");
  }
  std::printf("\n");
  std::fflush(stdout);
}

void Report::Add(const Row& row) {
  std::printf("%12zu  %12zu  %8s  %6s  %6d", row.bytes, row.count,
              row.type.c_str(), row.op.c_str(), row.root);
  PrintTiming(options_, row.out_of_place);
  PrintTiming(options_, row.in_place);
  std::printf("\n");
  PrintStatistics(options_, "out-of-place", row.out_of_place);
  PrintStatistics(options_, "in-place", row.in_place);
  std::fflush(stdout);
  for (const Timing* timing : {&row.out_of_place, &row.in_place}) {
    if (!timing->supported) continue;
    bus_bw_sum_ += timing->bus_bw;
    ++bus_bw_count_;
    wrong_ += timing->wrong;
  }
  if (!options_.json_file.empty()) json_["results"].push_back(Summary(row));
}

Json Report::Summary(const Row& row) const {
  return {{"size", row.bytes},
          {"count", row.count},
          {"type", row.type},
          {"redop", row.op},
          {"root", row.root},
          {"out_of_place", TimingJson(options_, row.out_of_place)},
          {"in_place", TimingJson(options_, row.in_place)},
          {"actual_iterations", options_.iterations}};
}

void Report::Finish(const std::string& error) {
  const double average = bus_bw_count_ > 0 ? bus_bw_sum_ / bus_bw_count_ : 0;
  const bool okay = wrong_ == 0 && error.empty();
  std::printf("# Out of bounds values : %lld %s\n",
              static_cast<long long>(wrong_), okay ? "OK" : "FAILED");
  std::printf("# Avg bus bandwidth    : %g\n#\n", average);
  std::printf("# Collective test concluded: %s_perf\n", program_.name);
  std::fflush(stdout);
  if (options_.json_file.empty()) return;
  json_["out_of_bounds"] = {{"count", wrong_}, {"okay", okay}};
  json_["average_bus_bandwidth"] = {{"bandwidth", average}, {"okay", true}};
  json_["errors"] = Json::array();
  if (!error.empty()) json_["errors"].push_back(error);
  json_["end_time"] = Now();
  std::ofstream file(options_.json_file);
  file << json_.dump(2) << '\n';
  if (!file.flush()) {
    throw Failure("cannot write " + options_.json_file +
                  "; choose another place with -J");
  }
}

}  // namespace axon::perf
