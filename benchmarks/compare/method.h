// SPDX-License-Identifier: Apache-2.0
// How every library is measured: the same program around each of them. Bytes
// are those of the larger side of one rank, as in nccl-tests. A sample is a
// barrier, then calls back to back (one, from 4 KiB up), divided by their
// number, the slowest rank's; a cell is the median of its samples. From 4 KiB
// up inputs are written anew and outputs read between samples, untimed: a
// buffer that nobody touches stays in the caches that the last call left it in.
// Before a cell is timed its results are checked, with another input on each
// rank and, of a broadcast, from each root.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace compare {

enum Kind {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAlltoAll,
  kBroadcast,
  kBarrier,
  kKinds
};
constexpr const char* kKindNames[kKinds] = {"all_reduce",     "all_gather",
                                            "reduce_scatter", "all_to_all",
                                            "broadcast",      "barrier"};

enum Type { kFloat32, kBfloat16 };
constexpr const char* kTypeNames[] = {"float32", "bfloat16"};
inline size_t SizeOf(Type type) { return type == kFloat32 ? 4 : 2; }

// A library as the measurement sees it: one rank of it.
class Library {
 public:
  virtual ~Library() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  virtual void Barrier() = 0;
  // The largest of the ranks' numbers, for each of them.
  virtual void Max(std::vector<double>* numbers) = 0;
  virtual bool Has(Kind kind, Type type) const = 0;
  // `count` elements on the larger side; `root` of a broadcast, which is from
  // `in` to `in` where the library knows only one buffer.
  virtual void Run(Kind kind, Type type, const void* in, void* out,
                   size_t count, int root) = 0;
  // Whether a broadcast leaves its result in `in`.
  virtual bool BroadcastsInPlace() const { return false; }
  virtual void* Allocate(size_t bytes) { return std::malloc(bytes); }
};

struct Options {
  const char* name = "";
  double seconds = 0.02;  // of a cell
  Type type = kFloat32;
};

inline double Now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

class Measurement {
 public:
  static constexpr size_t kMost = size_t{64} << 20;
  static constexpr size_t kTouchedFrom = 4096;

  Measurement(Library& library, const Options& options)
      : library_(library),
        options_(options),
        in_(static_cast<char*>(library.Allocate(kMost))),
        out_(static_cast<char*>(library.Allocate(kMost))) {
    Fill(in_, kMost, 1);
    std::memset(out_, 0, kMost);
  }

  void All() {
    for (int k = 0; k < kKinds; ++k) {
      const Kind kind = static_cast<Kind>(k);
      if (!library_.Has(kind, options_.type)) continue;
      if (kind == kBarrier) {
        Cell(kind, 0);
        continue;
      }
      for (size_t bytes = 8; bytes <= kMost; bytes *= bytes == 8 ? 2 : 4) {
        if (bytes >= SmallestOf(kind)) Cell(kind, bytes);
      }
    }
  }

 private:
  // A byte count below it cannot be cut into a part for each rank.
  size_t SmallestOf(Kind kind) const {
    const bool whole = kind == kAllReduce || kind == kBroadcast;
    return whole
               ? 0
               : SizeOf(options_.type) * static_cast<size_t>(library_.ranks());
  }

  // `value` is a small whole number, which bfloat16 holds too.
  void Fill(char* to, size_t bytes, float value) const {
    if (options_.type == kFloat32) {
      std::fill_n(reinterpret_cast<float*>(to), bytes / 4, value);
      return;
    }
    uint32_t bits = 0;
    std::memcpy(&bits, &value, 4);
    std::fill_n(reinterpret_cast<uint16_t*>(to), bytes / 2,
                static_cast<uint16_t>(bits >> 16));
  }

  const char* OutputOf(Kind kind) const {
    return kind == kBroadcast && library_.BroadcastsInPlace() ? in_ : out_;
  }

  void Touch(Kind kind, size_t bytes) {
    const auto p = static_cast<size_t>(library_.ranks());
    const char* out = OutputOf(kind);
    const size_t read = kind == kReduceScatter ? bytes / p : bytes;
    char sum = 0;
    for (size_t i = 0; i < read; i += 64) {
      sum = static_cast<char>(sum + out[i]);
    }
    sink_ = sum;
    Fill(in_, kind == kAllGather ? bytes / p : bytes, 1);
  }

  float At(const char* buffer, size_t i) const {
    uint32_t bits = 0;
    if (options_.type == kFloat32) {
      std::memcpy(&bits, buffer + 4 * i, 4);
    } else {
      uint16_t half = 0;
      std::memcpy(&half, buffer + 2 * i, 2);
      bits = uint32_t{half} << 16;
    }
    float value = 0;
    std::memcpy(&value, &bits, 4);
    return value;
  }

  // What element i of the result is if rank r's input is r + 1 throughout.
  float Expected(Kind kind, size_t count, size_t i, int root) const {
    const int p = library_.ranks();
    switch (kind) {
      case kAllReduce:
      case kReduceScatter:
        return static_cast<float>(p * (p + 1) / 2);
      case kBroadcast:
        return static_cast<float>(root + 1);
      default:
        return static_cast<float>(i / (count / static_cast<size_t>(p)) + 1);
    }
  }

  void CheckOnce(Kind kind, size_t count) {
    if (kind == kBarrier) return;
    const int p = library_.ranks();
    const size_t bytes = count * SizeOf(options_.type);
    const size_t results =
        kind == kReduceScatter ? count / static_cast<size_t>(p) : count;
    for (int root = 0; root < (kind == kBroadcast ? p : 1); ++root) {
      Fill(in_, bytes, static_cast<float>(library_.rank() + 1));
      Fill(out_, bytes, 0);
      library_.Barrier();
      library_.Run(kind, options_.type, in_, out_, count, root);
      library_.Barrier();
      for (size_t i = 0; i < results; ++i) {
        const float value = At(OutputOf(kind), i);
        if (value == Expected(kind, count, i, root)) continue;
        std::fprintf(stderr, "%s: %s of %zu elements, %d ranks: [%zu] is %g\n",
                     options_.name, kKindNames[kind], count, p, i,
                     static_cast<double>(value));
        std::exit(1);
      }
    }
  }

  double Timed(Kind kind, size_t count, int calls) {
    const double begin = Now();
    for (int i = 0; i < calls; ++i) {
      library_.Run(kind, options_.type, in_, out_, count,
                   turn_++ % library_.ranks());
    }
    return (Now() - begin) / calls;
  }

  void Cell(Kind kind, size_t bytes) {
    const auto p = static_cast<size_t>(library_.ranks());
    size_t count = bytes / SizeOf(options_.type);
    if (SmallestOf(kind) != 0) count = count / p * p;
    turn_ = 0;
    for (int i = 0; i < 4; ++i) Timed(kind, count, 1);
    library_.Barrier();
    std::vector<double> guess = {Timed(kind, count, 4)};
    library_.Max(&guess);
    const bool touched = kind != kBarrier && bytes >= kTouchedFrom;
    const int calls =
        touched || guess[0] > 1e-4
            ? 1
            : std::min(200, static_cast<int>(2e-4 / guess[0]) + 1);
    CheckOnce(kind, count);
    Fill(in_, count * SizeOf(options_.type), 1);
    const int samples = std::clamp(
        static_cast<int>(options_.seconds / (guess[0] * calls)), 7, 400);
    std::vector<double> times(static_cast<size_t>(samples));
    for (double& time : times) {
      if (touched) Touch(kind, bytes);
      library_.Barrier();
      time = Timed(kind, count, calls);
    }
    library_.Max(&times);
    std::sort(times.begin(), times.end());
    if (library_.rank() != 0) return;
    std::printf("%s,%s,%s,%d,%zu,%.4f,%.4f,%d\n", options_.name,
                kKindNames[kind], kTypeNames[options_.type], library_.ranks(),
                bytes, times[times.size() / 2] * 1e6,
                times[times.size() / 10] * 1e6, samples * calls);
    std::fflush(stdout);
  }

  Library& library_;
  const Options options_;
  char* const in_;
  char* const out_;
  int turn_ = 0;
  volatile char sink_ = 0;
};

// NAME [SECONDS [float32|bfloat16]]
inline Options ReadOptions(int argc, char** argv) {
  Options options;
  if (argc > 1) options.name = argv[1];
  if (argc > 2) options.seconds = std::atof(argv[2]);
  if (argc > 3 && std::string(argv[3]) == kTypeNames[kBfloat16]) {
    options.type = kBfloat16;
  }
  return options;
}

}  // namespace compare
