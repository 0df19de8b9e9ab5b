// SPDX-License-Identifier: Apache-2.0
// The floor: what the machine allows. Ranks share one mapping from before they
// were forked, know each other's buffers, check nothing and serve one call at a
// time. A probe of the limit, not a design. floor NAME SECONDS float32 RANKS
// VARIANT. Variants: "push" writes a reduced part to every rank's output,
// "pull" lets each rank fetch what others reduced; both copy others' data
// straight from their inputs.
#include <immintrin.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>

#include "method.h"

namespace {

using compare::Kind;
using compare::Type;

constexpr int kMostRanks = 8;
constexpr size_t kSmall = 1024;  // bytes that go through slots, two by parity
// From here on stores go past the caches: the vectors no longer fit.
constexpr size_t kStreamFrom = size_t{16} << 20;

struct alignas(128) Slot {
  std::atomic<uint64_t> number;
  char data[kSmall];  // the first 56 bytes share the number's line
};
struct Shared {
  struct alignas(128) Rank {
    std::atomic<uint64_t> arrived;
  } ranks[kMostRanks];
  Slot slots[2][kMostRanks];
  std::atomic<double> numbers[kMostRanks];
};

char* MapShared(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) std::exit(1);
  return static_cast<char*>(memory);
}

// to[i] = sum of from[r][i], to every destination.
void Sum(char* const* to, int destinations, const char* const* from, int ranks,
         size_t bytes, bool stream) {
  size_t at = 0;
  for (; at + 32 <= bytes; at += 32) {
    __m256 sum = _mm256_loadu_ps(reinterpret_cast<const float*>(from[0] + at));
    for (int r = 1; r < ranks; ++r) {
      sum = _mm256_add_ps(
          sum, _mm256_loadu_ps(reinterpret_cast<const float*>(from[r] + at)));
    }
    for (int d = 0; d < destinations; ++d) {
      auto* out = reinterpret_cast<float*>(to[d] + at);
      if (stream) {
        _mm256_stream_ps(out, sum);
      } else {
        _mm256_storeu_ps(out, sum);
      }
    }
  }
  for (; at < bytes; at += 4) {
    float sum = 0;
    for (int r = 0; r < ranks; ++r) {
      sum += *reinterpret_cast<const float*>(from[r] + at);
    }
    for (int d = 0; d < destinations; ++d) {
      *reinterpret_cast<float*>(to[d] + at) = sum;
    }
  }
  if (stream) _mm_sfence();
}

void Copy(char* to, const char* from, size_t bytes, bool stream) {
  if (!stream) {
    std::memcpy(to, from, bytes);
    return;
  }
  for (size_t at = 0; at < bytes; at += 32) {
    _mm256_stream_ps(
        reinterpret_cast<float*>(to + at),
        _mm256_loadu_ps(reinterpret_cast<const float*>(from + at)));
  }
  _mm_sfence();
}

class Floor final : public compare::Library {
 public:
  Floor(int ranks, bool push)
      : ranks_(ranks),
        push_(push),
        yields_(ranks > sysconf(_SC_NPROCESSORS_ONLN)),
        shared_(reinterpret_cast<Shared*>(MapShared(sizeof(Shared)))) {
    for (int r = 0; r < ranks; ++r) {
      in_[r] = MapShared(compare::Measurement::kMost);
      out_[r] = MapShared(compare::Measurement::kMost);
    }
  }
  void Become(int rank) {
    rank_ = rank;
    if (yields_) return;
    cpu_set_t cpu;
    CPU_ZERO(&cpu);
    CPU_SET(rank, &cpu);
    sched_setaffinity(0, sizeof(cpu), &cpu);
  }
  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  void* Allocate(size_t) override {
    return allocated_++ == 0 ? in_[rank_] : out_[rank_];
  }
  bool Has(Kind, Type type) const override { return type == compare::kFloat32; }
  bool BroadcastsInPlace() const override { return true; }
  void Barrier() override {
    ++arrived_;
    shared_->ranks[rank_].arrived.store(arrived_, std::memory_order_release);
    for (int q = 0; q < ranks_; ++q) Await(shared_->ranks[q].arrived, arrived_);
  }
  void Max(std::vector<double>* numbers) override {
    for (double& number : *numbers) {
      Barrier();
      shared_->numbers[rank_] = number;
      Barrier();
      for (int q = 0; q < ranks_; ++q) {
        number = std::max(number, shared_->numbers[q].load());
      }
    }
    Barrier();
  }
  void Run(Kind kind, Type, const void*, void*, size_t count,
           int root) override {
    const size_t bytes = count * 4;
    if (kind == compare::kBarrier) {
      Barrier();
    } else if (bytes <= kSmall) {
      RunSmall(kind, bytes, root);
    } else {
      Barrier();
      RunLarge(kind, bytes, root);
      Barrier();
    }
  }

 private:
  void Await(const std::atomic<uint64_t>& word, uint64_t value) const {
    while (word.load(std::memory_order_acquire) < value) {
      if (yields_) {
        sched_yield();
      } else {
        _mm_pause();
      }
    }
  }

  // Everyone shows its input in a slot and reads what it needs of the others'.
  void RunSmall(Kind kind, size_t bytes, int root) {
    const size_t part = bytes / static_cast<size_t>(ranks_);
    Slot* slots = shared_->slots[++small_ % 2];
    const bool one_way = kind == compare::kBroadcast;
    if (!one_way || rank_ == root) {
      std::memcpy(slots[rank_].data, in_[rank_],
                  kind == compare::kAllGather ? part : bytes);
    }
    slots[rank_].number.store(small_, std::memory_order_release);
    // Also in a broadcast: two slots need to know that all have read.
    for (int q = 0; q < ranks_; ++q) Await(slots[q].number, small_);
    const char* from[kMostRanks];
    const bool mine = kind == compare::kReduceScatter;
    for (int q = 0; q < ranks_; ++q) {
      from[q] = slots[q].data + (mine ? static_cast<size_t>(rank_) * part : 0);
    }
    char* out = out_[rank_];
    switch (kind) {
      case compare::kAllReduce:
        return Sum(&out, 1, from, ranks_, bytes, false);
      case compare::kReduceScatter:
        return Sum(&out, 1, from, ranks_, part, false);
      case compare::kBroadcast:
        std::memcpy(in_[rank_], slots[root].data, bytes);
        return;
      default:
        for (int q = 0; q < ranks_; ++q) {
          const size_t at = kind == compare::kAlltoAll
                                ? static_cast<size_t>(rank_) * part
                                : 0;
          std::memcpy(out + static_cast<size_t>(q) * part, slots[q].data + at,
                      part);
        }
    }
  }

  void RunLarge(Kind kind, size_t bytes, int root) {
    const bool stream = bytes >= kStreamFrom;
    const size_t part = bytes / static_cast<size_t>(ranks_);
    const size_t mine = static_cast<size_t>(rank_) * part;
    const char* from[kMostRanks];
    char* to[kMostRanks];
    for (int q = 0; q < ranks_; ++q) {
      from[q] = in_[q] + mine;
      to[q] = out_[q] + mine;
    }
    char* out = out_[rank_];
    switch (kind) {
      case compare::kAllReduce:
        if (push_) return Sum(to, ranks_, from, ranks_, part, stream);
        Sum(&to[rank_], 1, from, ranks_, part, stream);
        Barrier();
        for (int q = 0; q < ranks_; ++q) {
          const size_t at = static_cast<size_t>(q) * part;
          if (q != rank_) Copy(out + at, out_[q] + at, part, stream);
        }
        return;
      case compare::kReduceScatter:
        return Sum(&out, 1, from, ranks_, part, stream);
      case compare::kBroadcast:
        if (rank_ != root) Copy(in_[rank_], in_[root], bytes, stream);
        return;
      default:
        for (int i = 0; i < ranks_; ++i) {
          const int q = (rank_ + i) % ranks_;
          const size_t at = kind == compare::kAlltoAll ? mine : 0;
          Copy(out + static_cast<size_t>(q) * part, in_[q] + at, part, stream);
        }
    }
  }

  const int ranks_;
  const bool push_, yields_;
  Shared* const shared_;
  char *in_[kMostRanks], *out_[kMostRanks];
  int rank_ = 0, allocated_ = 0;
  uint64_t arrived_ = 0, small_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6 || std::atoi(argv[4]) > kMostRanks) {
    std::fprintf(stderr, "usage: floor NAME SECONDS TYPE RANKS push|pull\n");
    return 2;
  }
  const int ranks = std::atoi(argv[4]);
  Floor floor(ranks, std::string(argv[5]) == "push");
  int rank = 0;
  for (int r = 1; r < ranks && rank == 0; ++r) {
    if (fork() == 0) rank = r;
  }
  if (rank != 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
  floor.Become(rank);
  compare::Measurement(floor, compare::ReadOptions(argc, argv)).All();
  if (rank == 0) {
    while (wait(nullptr) > 0) {
    }
  }
}
