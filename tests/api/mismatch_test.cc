// SPDX-License-Identifier: Apache-2.0
// Ranks that make different calls: an error on every rank that names both
// calls, before a result is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/api/stage.h"
#include "tests/support/processes.h"

namespace axon {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// What a rank may do with `n` elements a block.
struct Scene {
  axonComm_t comm;
  int rank, ranks;
  double* in;
  double* out;
  size_t n;

  // Elements of a block where there is one a rank.
  static size_t BlockOf(size_t n) { return std::max<size_t>(n / 8, 1); }
  size_t block() const { return BlockOf(n); }
  // Element i of the input of `from`.
  static double In(int from, size_t i) {
    return 1000.0 * from + static_cast<double>(i % 991);
  }
  // Whether `count` elements of the output are those of `from` from `at`.
  bool Holds(int from, size_t at, size_t count) const {
    for (size_t i = 0; i < count; ++i) {
      if (out[i] != In(from, at + i)) return false;
    }
    return true;
  }
};

// A call, its name in errors (%: the count; +1: the sum of unequal parts, the
// last of which has 1 element), and whether what it left is right
// where it returned: only calls that may return without having seen the others
// have something to check.
struct Move {
  std::string text;
  std::function<axonResult_t(const Scene&)> call;
  std::function<bool(const Scene&)> right = [](const Scene&) { return false; };
};

Move AllReduceOf(bool shorter, axonDataType_t type, axonRedOp_t op,
                 const std::string& text) {
  return {absl::StrCat("all_reduce of ", shorter ? "1" : "%", text),
          [=](const Scene& s) {
            return axonAllReduce(s.in, s.out, shorter ? 1 : s.n, type, op,
                                 s.comm, nullptr);
          }};
}

Move BroadcastFrom(int root) {
  return {absl::StrCat("broadcast of % float64, root ", root),
          [=](const Scene& s) {
            return axonBroadcast(s.in, s.out, s.n, axonFloat64, root, s.comm,
                                 nullptr);
          },
          [=](const Scene& s) { return s.Holds(root, 0, s.n); }};
}

Move ReduceTo(int root) {
  return {absl::StrCat("reduce of % float64, sum, root ", root),
          [=](const Scene& s) {
            return axonReduce(s.in, s.out, s.n, axonFloat64, axonSum, root,
                              s.comm, nullptr);
          },
          [=](const Scene& s) { return s.rank != root; }};
}

Move ScatterFrom(int root, size_t shorter = 0) {
  return {absl::StrCat("scatter of "),
          [=](const Scene& s) {
            return axonScatter(s.in, s.out, s.block() - shorter, axonFloat64,
                               root, s.comm, nullptr);
          },
          [=](const Scene& s) {
            const size_t n = s.block() - shorter;
            return s.Holds(root, n * static_cast<size_t>(s.rank), n);
          }};
}

Move GatherTo(int root) {
  return {"gather of ",
          [=](const Scene& s) {
            return axonGather(s.in, s.out, s.block(), axonFloat64, root, s.comm,
                              nullptr);
          },
          [=](const Scene& s) { return s.rank != root; }};
}

Move AllGather() {
  return {"all_gather of ", [](const Scene& s) {
            return axonAllGather(s.in, s.out, s.block(), axonFloat64, s.comm,
                                 nullptr);
          }};
}

Move AllGatherOfParts(int64_t last) {
  return {absl::StrCat("all_gather of unequal parts of +", last,
                       " float64 (counts"),
          [=](const Scene& s) {
            std::vector<int64_t> counts(static_cast<size_t>(s.ranks),
                                        static_cast<int64_t>(s.block()));
            counts.back() = last;
            return axonAllGatherV(s.in, s.out, counts.data(), nullptr,
                                  axonFloat64, s.comm, nullptr);
          }};
}

Move ReduceScatter() {
  return {"reduce_scatter of ", [](const Scene& s) {
            return axonReduceScatter(s.in, s.out, s.block(), axonFloat64,
                                     axonSum, s.comm, nullptr);
          }};
}

Move AlltoAll() {
  return {"all_to_all of ", [](const Scene& s) {
            return axonAlltoAll(s.in, s.out, s.block(), axonFloat64, s.comm,
                                nullptr);
          }};
}

Move Barrier() {
  return {"barrier",
          [](const Scene& s) { return axonBarrier(s.comm, nullptr); }};
}

Move Split() {
  return {"all_gather of a split", [](const Scene& s) {
            axonComm_t made = nullptr;
            return axonCommSplit(s.comm, 0, 0, &made, nullptr);
          }};
}

// What all ranks do, and what the odd one does instead.
struct Pair {
  Move all, odd;
};

std::vector<Pair> Pairs() {
  const Move sum = AllReduceOf(false, axonFloat64, axonSum, " float64, sum");
  return {
      {sum, AllReduceOf(true, axonFloat64, axonSum, " float64, sum")},
      {sum, AllReduceOf(false, axonFloat64, axonMax, " float64, max")},
      {sum, AllReduceOf(false, axonInt64, axonSum, " int64, sum")},
      {sum, AllReduceOf(false, axonFloat32, axonSum, " float32, sum")},
      {sum, AllGather()},
      {sum, Barrier()},
      {Barrier(), sum},
      {sum, ReduceTo(0)},
      {ReduceTo(0), sum},
      {BroadcastFrom(0), BroadcastFrom(1)},
      {BroadcastFrom(1), BroadcastFrom(0)},
      {BroadcastFrom(0), sum},
      {ReduceTo(0), ReduceTo(1)},
      {ReduceTo(1), ReduceTo(0)},
      {ScatterFrom(0), ScatterFrom(1)},
      {ScatterFrom(0), ScatterFrom(0, 1)},
      {GatherTo(0), GatherTo(1)},
      {GatherTo(0), AllGather()},
      {ReduceScatter(), AlltoAll()},
      {AlltoAll(), Barrier()},
      {AllGather(), Split()},
      {Split(), AllGather()},
      {sum, Split()},
      {AllGatherOfParts(1), AllGatherOfParts(2)},
      {AllGatherOfParts(1), AllGather()},
  };
}

struct Setting {
  int ranks;
  Path path;
};

class MismatchTest : public testing::TestWithParam<Setting> {
 protected:
  // One pair of moves by one rank, on a communicator of its own. A rank that
  // could not know goes on: it learns at its next call.
  static std::string Play(Stage& stage, int number, int rank, int ranks,
                          const Pair& pair, const Doubles& in,
                          const Doubles& out) {
    Member member(stage, rank, ranks, 20'000, number);
    if (std::string text = member.Barrier(); text != "ok") return text;
    const Scene scene{member.comm(), rank,       ranks,
                      in.data(),     out.data(), in.count()};
    for (size_t i = 0; i < in.count(); ++i) in.data()[i] = Scene::In(rank, i);
    std::fill_n(out.data(), out.count(), -1.0);
    // The odd one is each of the ranks once.
    const Move& mine = rank == number % ranks ? pair.odd : pair.all;
    const axonResult_t result = mine.call(scene);
    if (result != axonSuccess) return Outcome(result, member.comm());
    if (!mine.right(scene)) {
      return absl::StrCat("success of ", mine.text, " with wrong data");
    }
    return member.Barrier();
  }
};

INSTANTIATE_TEST_SUITE_P(
    , MismatchTest,
    testing::Values(Setting{2, Path::kLine}, Setting{2, Path::kStaged},
                    Setting{2, Path::kMapped}, Setting{3, Path::kLine},
                    Setting{3, Path::kStaged}, Setting{3, Path::kMapped},
                    Setting{5, Path::kLine}, Setting{5, Path::kStaged}),
    [](const auto& info) {
      return absl::StrCat(info.param.ranks, "_", PathName(info.param.path));
    });

TEST_P(MismatchTest, IsAnErrorOnEveryRankThatNamesBothCalls) {
  const int ranks = GetParam().ranks;
  // A line takes 6 doubles, also of 1/8 a rank.
  const size_t n = GetParam().path == Path::kLine ? 6 : size_t{1} << 17;
  const std::vector<Pair> pairs = Pairs();
  Stage stage;
  const auto texts = RunProcesses(ranks, 120'000, [&](int rank) {
    const Doubles in(GetParam().path, n), out(GetParam().path, n);
    std::string text;
    for (size_t i = 0; i < pairs.size(); ++i) {
      const int number = static_cast<int>(i);
      absl::StrAppend(
          &text, Play(stage, number, rank, ranks, pairs[i], in, out), "\n");
    }
    return text;
  });
  const auto expand = [&](const std::string& text) {
    std::string all = text;
    if (const size_t at = all.find('%'); at != std::string::npos) {
      all.replace(at, 1, absl::StrCat(n));
    }
    if (const size_t at = all.find('+'); at != std::string::npos) {
      const size_t last = static_cast<size_t>(all[at + 1] - '0');
      const size_t others = static_cast<size_t>(ranks - 1);
      all.replace(at, 2, absl::StrCat(others * Scene::BlockOf(n) + last));
    }
    return all;
  };
  for (const std::string& text : texts) {
    const std::vector<std::string> lines = absl::StrSplit(text, '\n');
    ASSERT_EQ(lines.size(), pairs.size() + 1) << text;
    for (size_t i = 0; i < pairs.size(); ++i) {
      EXPECT_THAT(lines[i],
                  AllOf(StartsWith("axonInvalidUsage: ranks disagree: rank "),
                        HasSubstr("made call 2, " + expand(pairs[i].all.text)),
                        HasSubstr("made call 2, " + expand(pairs[i].odd.text))))
          << pairs[i].all.text << " against " << pairs[i].odd.text;
    }
  }
}

}  // namespace
}  // namespace axon
