// SPDX-License-Identifier: Apache-2.0
#include "perf/options.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>

namespace axon::perf {

namespace {

// One of `known` by name, or all of them.
template <typename T>
std::vector<T> Chosen(const std::vector<T>& known, const std::string& flag,
                      const std::string& name) {
  if (name == "all") return known;
  std::string names = "all";
  for (const T& each : known) {
    if (name == each.name) return {each};
    names += std::string(", ") + each.name;
  }
  throw CLI::ValidationError(flag, "'" + name + "' is none of " + names);
}

CLI::Range AtLeast(int least) {
  return CLI::Range(least, std::numeric_limits<int>::max());
}

// A flag of nccl-tests that has one useful value here.
void AddFixed(CLI::App* app, const std::string& flag, int only,
              const std::string& reason) {
  app->add_option_function<int>(
         flag,
         [=](const int& value) {
           if (value != only) {
             throw CLI::ValidationError(
                 flag, "only " + std::to_string(only) + " here: " + reason);
           }
         },
         "only " + std::to_string(only) + ": " + reason)
      ->group("Of nccl-tests, without a meaning here");
}

void AddSizes(CLI::App* app, Options* o) {
  const CLI::AsSizeValue size(/*kb_is_1000=*/false);
  app->add_option("-b,--minbytes", o->min_bytes,
                  "smallest size; 8, 4K, 32M, 1G")
      ->transform(size);
  app->add_option("-e,--maxbytes", o->max_bytes, "largest size")
      ->transform(size);
  app->add_option("-i,--stepbytes", o->step_bytes, "added between sizes")
      ->transform(size);
  app->add_option("-f,--stepfactor", o->step_factor,
                  "multiplies between sizes, instead of -i")
      ->check(CLI::Range(1.0, 1e9));
}

void AddRuns(CLI::App* app, Options* o) {
  app->add_option("-n,--iters", o->iterations, "timed calls per row")
      ->check(AtLeast(1));
  app->add_option("-w,--warmup_iters", o->warmup, "untimed calls first")
      ->check(AtLeast(0));
  app->add_option("-m,--agg_iters", o->aggregated, "calls in one group")
      ->check(AtLeast(1));
  app->add_option("-N,--run_cycles", o->cycles,
                  "runs of the whole table; 0: for ever")
      ->check(AtLeast(0));
  app->add_option("-c,--check", o->checks,
                  "checked calls per row; 0: no checks")
      ->check(AtLeast(0));
  app->add_option("-z,--blocking", o->blocking,
                  "0: no waits between calls of a stream; 1: wait and barrier "
                  "after each; 2: wait after each; 3: wait and barrier after "
                  "the last")
      ->transform(
          CLI::CheckedTransformer(std::map<std::string, Options::Blocking>{
              {"0", Options::Blocking::kNone},
              {"1", Options::Blocking::kBarrierEach},
              {"2", Options::Blocking::kWaitEach},
              {"3", Options::Blocking::kBarrierAfter}}));
  app->add_option("-y,--stream_null", o->null_stream,
                  "1: NULL stream, calls run in the calling thread; 0: calls "
                  "are queued on a stream");
  app->add_option("-T,--timeout", o->timeout_seconds, "seconds for each call")
      ->check(CLI::Range(0, 1000000));
  app->add_flag("--touch", o->touch,
                "from 4 KiB up inputs are written and outputs read between "
                "timed calls, as a real program does");
}

void AddReports(CLI::App* app, Options* o) {
  app->add_option("-C,--report_cputime", o->cpu_time,
                  "1: time until a call is queued, not until it is done");
  app->add_option("-a,--average", o->average,
                  "times of 0: rank 0, 1: mean, 2: min, 3: max of the ranks")
      ->transform(
          CLI::CheckedTransformer(std::map<std::string, Options::Average>{
              {"0", Options::Average::kRankZero},
              {"1", Options::Average::kMean},
              {"2", Options::Average::kMin},
              {"3", Options::Average::kMax}}));
  app->add_option("-J,--output_file", o->json_file,
                  "results as JSON; the name must end in .json")
      ->check([](const std::string& name) {
        return std::filesystem::path(name).extension() == ".json"
                   ? std::string()
                   : "'" + name + "' does not end in .json";
      });
  app->add_flag("-I,--iteration_stats", o->statistics,
                "time each call; print minimum, median, p99 and maximum");
  app->add_option("-K,--skip_samples", o->leading_samples,
                  "leading calls left out of -I")
      ->check(AtLeast(0));
}

void AddBuffers(CLI::App* app, Options* o) {
  app->add_option_function<int>(
         "-R,--local_register",
         [o](const int& value) {
           o->register_buffers = value > 0;
           if (value == 2) o->mapped = true;
         },
         "1: axonCommRegister; 2: also --buffers mapped")
      ->check(CLI::Range(0, 2));
  app->add_option_function<std::string>(
         "--buffers",
         [o](const std::string& kind) { o->mapped |= kind == "mapped"; },
         "mapped: memory of axonMemAlloc, which peers read where it lies")
      ->check(CLI::IsMember({"private", "mapped"}));
  app->add_option("-u,--unalign", o->first_element,
                  "index of the first element used in each buffer");
}

void AddRanks(CLI::App* app, Options* o) {
  app->add_option("--ranks", o->ranks,
                  "start this many processes on this machine; without it a "
                  "launcher (mpirun, srun, torchrun) does, or there is one")
      ->check(CLI::Range(1, 4096));
  app->add_option("-t,--nthreads", o->threads, "ranks in each process")
      ->check(CLI::Range(1, 1024));
  app->add_flag("!--no-pin", o->pin,
                "with --ranks: leave it to the scheduler where ranks run");
  app->add_option("--algorithm", o->algorithm,
                  "algorithm of this collective (sets AXON_ALGO)");
  AddFixed(app, "-g,--ngpus", 1, "a thread drives one rank; use -t or --ranks");
  AddFixed(app, "-G,--cudagraph", 0, "host memory has no graphs");
  AddFixed(app, "-p,--parallel_init", 0, "ranks always start in parallel");
  AddFixed(app, "-x,--cta_policy", 0, "host memory has no CTAs");
  AddFixed(app, "-D,--device_implementation", 0, "there is no device code");
  AddFixed(app, "-V,--device_cta_count", 16, "there is no device code");
}

constexpr size_t kMostBytes = size_t{1} << 47;

void CheckTogether(const Options& o, const Program& program) {
  if (o.step_factor > 1 && o.min_bytes == 0 && o.max_bytes > 0) {
    throw CLI::ValidationError("-b", "0 bytes times -f never grow; use -i");
  }
  if (o.cycles == 0 && !o.json_file.empty()) {
    throw CLI::ValidationError("-J", "is written at the end; -N 0 has none");
  }
  // Negative numbers arrive as huge ones.
  if (o.min_bytes > kMostBytes || o.max_bytes > kMostBytes) {
    throw CLI::ValidationError(
        o.min_bytes > kMostBytes ? "-b" : "-e",
        "is negative or more than any memory: at most 128T");
  }
  if (o.max_bytes < o.min_bytes) {
    throw CLI::ValidationError("-e", "is smaller than -b");
  }
  if (o.cpu_time && (o.touch || o.statistics)) {
    throw CLI::ValidationError("-C", "not together with --touch or -I");
  }
  if (!program.rooted && o.root != 0) {
    throw CLI::ValidationError("-r",
                               std::string(program.name) + " has no root");
  }
  if (!program.has_algorithms && !o.algorithm.empty()) {
    throw CLI::ValidationError(
        "--algorithm", std::string(program.name) + " has none to choose from");
  }
  const bool floats_only = o.types.size() == 1 && o.types[0].is_float();
  if (floats_only && o.operators.size() == 1 && o.operators[0].bitwise()) {
    throw CLI::ValidationError("-o", std::string(o.operators[0].name) +
                                         " is for integers, not for " +
                                         o.types[0].name);
  }
}

}  // namespace

bool ParseOptions(int argc, char** argv, const Program& program,
                  Options* options, int* exit_code) {
  CLI::App app("Times and checks " + std::string(program.name) +
               ". Flags, table and JSON are those of nccl-tests.");
  app.option_defaults()->always_capture_default()->multi_option_policy(
      CLI::MultiOptionPolicy::TakeLast);
  std::string type = "float";
  std::string op = "sum";
  AddSizes(&app, options);
  AddRuns(&app, options);
  app.add_option("-d,--datatype", type, "element type, or all");
  app.add_option("-o,--op", op, "operator of reductions, or all");
  app.add_option("-r,--root", options->root, "root; -1: each rank in turn")
      ->check(AtLeast(-1));
  AddReports(&app, options);
  AddBuffers(&app, options);
  AddRanks(&app, options);
  try {
    app.parse(argc, argv);
    options->types = Chosen(Types(), "-d", type);
    options->operators = Chosen(Operators(), "-o", op);
    if (!program.reduces) options->operators = {kNoOperator};
    CheckTogether(*options, program);
  } catch (const CLI::ParseError& error) {
    *exit_code = app.exit(error) == 0 ? 0 : 2;
    return false;
  }
  options->arguments.assign(argv, argv + argc);
  return true;
}

std::vector<size_t> Sizes(const Options& options) {
  std::vector<size_t> sizes;
  size_t size = options.min_bytes;
  while (size <= options.max_bytes) {
    sizes.push_back(size);
    const double grown =
        std::floor(static_cast<double>(size) * options.step_factor);
    if (options.step_factor > 1 && grown > static_cast<double>(kMostBytes)) {
      break;
    }
    const size_t next = options.step_factor > 1
                            ? std::max(size + 1, static_cast<size_t>(grown))
                            : size + std::max<size_t>(options.step_bytes, 1);
    if (next < size) break;  // past the largest size there is
    size = next;
  }
  return sizes;
}

}  // namespace axon::perf
