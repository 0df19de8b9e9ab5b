// SPDX-License-Identifier: Apache-2.0
// Times and checks one collective at one size, as nccl-tests does. One per
// rank, element type, operator and root; collective over the ranks; used by the
// rank's thread.
#pragma once

#include <cstdint>
#include <vector>

#include "perf/options.h"
#include "perf/pattern.h"
#include "perf/program.h"
#include "perf/rank.h"

namespace axon::perf {

// One of the two halves of a row: out of place or in place.
struct Timing {
  bool supported = true;  // false: the call is refused in place
  double usec = 0;        // a call
  double alg_bw = 0;      // GB/s
  double bus_bw = 0;
  int64_t wrong = 0;            // elements, over all ranks
  std::vector<double> samples;  // usec of each timed call, with -I
};

class Measurement {
 public:
  Measurement(const Options& options, const Program& program, const Type& type,
              const Operator& op, int root, Rank* rank, const Buffer& send,
              const Buffer& recv);
  ~Measurement();
  Measurement(const Measurement&) = delete;
  Measurement& operator=(const Measurement&) = delete;

  // Calls that are neither timed nor checked.
  void WarmUp(size_t bytes);
  Timing Run(size_t size, bool in_place);
  // Of the last run: of the larger buffer, and the argument of the call.
  size_t bytes() const;
  size_t count() const { return shape_.count; }
  // Wrong elements of this rank so far.
  int64_t wrong_here() const { return wrong_here_; }

 private:
  void SetUp(size_t bytes, bool in_place);
  void FillInput();
  void Start(int calls);  // in one group, if there are several
  double TimeTogether();
  double TimeEach(std::vector<double>* samples);
  void Touch();
  int64_t Check();

  const Options& options_;
  const Program& program_;
  const Type& type_;
  const Operator op_;
  Rank& rank_;
  std::byte* const send_;
  std::byte* const recv_;
  Pattern pattern_;
  Shape shape_{};  // of the present size
  bool in_place_ = false;
  Call call_{};
  std::byte* input_ = nullptr;  // = call_.send
  int64_t wrong_here_ = 0;
};

}  // namespace axon::perf
