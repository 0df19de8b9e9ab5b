// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/meeting.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "bootstrap/host_identity.h"

namespace axon {
namespace {

constexpr int64_t kMaxRanks = 32767;
constexpr size_t kMaxListed = 32;

std::string WhoText(int64_t rank, absl::string_view host, int64_t pid) {
  return absl::StrFormat("rank %d (host %s, pid %d)", rank, host, pid);
}

std::string WhoIs(const Hello& hello) {
  return WhoText(hello.rank, hello.host, hello.pid);
}

Deadline Earlier(const Deadline& a, const Deadline& b) {
  constexpr int64_t kLong = int64_t{1} << 40;
  return b.LeftMs(kLong) < a.LeftMs(kLong) ? b : a;
}

std::string VersionText(int64_t code) {
  return absl::StrFormat("%d.%d.%d", code / 10000, code / 100 % 100,
                         code % 100);
}

// The words of `a` that are not among those of `b`.
std::string OnlyIn(const std::string& a, const std::string& b) {
  const std::vector<std::string> mine = absl::StrSplit(a, ' ');
  const std::vector<std::string> theirs = absl::StrSplit(b, ' ');
  std::vector<std::string> words;
  for (const std::string& word : mine) {
    if (std::find(theirs.begin(), theirs.end(), word) == theirs.end()) {
      words.push_back(word);
    }
  }
  return absl::StrJoin(words, " ");
}

}  // namespace

std::string Meeting::Who(size_t rank) const {
  return WhoText(static_cast<int64_t>(rank), members_[rank].host,
                 members_[rank].pid);
}

template <typename Predicate>
size_t Meeting::IndexOf(Predicate predicate) const {
  const auto it = std::find_if(members_.begin(), members_.end(), predicate);
  return static_cast<size_t>(it - members_.begin());
}

absl::Status Meeting::Check(const Hello& hello) const {
  if (hello.version != first_.version) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s runs Axon %s, %s runs %s; use one version on all ranks",
        WhoIs(hello), VersionText(hello.version), WhoIs(first_),
        VersionText(first_.version)));
  }
  if (hello.nranks < 1 || hello.nranks > kMaxRanks || hello.rank < 0 ||
      hello.rank >= hello.nranks) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s claims to be one of %d ranks; ranks count from 0 and there may be "
        "%d",
        WhoIs(hello), hello.nranks, kMaxRanks));
  }
  if (hello.nranks != first_.nranks) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s expects %d ranks, %s expects %d; give all ranks the same number",
        WhoIs(hello), hello.nranks, WhoIs(first_), first_.nranks));
  }
  if (hello.digest != first_.digest) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "settings differ: %s has %s, %s has %s; set them alike on all ranks",
        WhoIs(hello), OnlyIn(hello.digest, first_.digest), WhoIs(first_),
        OnlyIn(first_.digest, hello.digest)));
  }
  const Member& member = members_[static_cast<size_t>(hello.rank)];
  if (member.came) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "two processes or threads claim rank %d of %d: host %s, pid %d and "
        "host %s, pid %d",
        hello.rank, hello.nranks, member.host, member.pid, hello.host,
        hello.pid));
  }
  return absl::OkStatus();
}

absl::Status Meeting::Verdict() const {
  if (failed() && !complete_) return status_;
  return absl::FailedPreconditionError(
      "this id has already been used for a communicator; make a new one with "
      "axonGetUniqueId for each");
}

absl::Status Meeting::Admit(const Hello& hello, Connection* connection) {
  if (failed() || complete_) return Verdict();
  if (arrived_ == 0) {
    first_ = hello;
    members_.resize(
        static_cast<size_t>(std::clamp<int64_t>(hello.nranks, 1, kMaxRanks)));
  }
  if (absl::Status status = Check(hello); !status.ok()) {
    Fail(status);
    return status;
  }
  Member& member = members_[static_cast<size_t>(hello.rank)];
  member.connection = connection;
  member.came = true;
  member.pid = hello.pid;
  member.host = hello.host;
  ++arrived_;
  ++present_;
  deadline_ = Earlier(deadline_, Deadline::In(hello.timeout_ms));
  connection->Send(PackFrame(FrameKind::kWelcome,
                             Packer().Int(getpid()).Text(HostName()).Take()));
  if (arrived_ == members_.size()) Complete();
  return absl::OkStatus();
}

void Meeting::Complete() {
  complete_ = true;
  deadline_ = Deadline();
  Packer table;
  for (const Member& member : members_) table.Int(member.pid).Text(member.host);
  Broadcast(PackFrame(FrameKind::kAllHere, table.Take()));
}

void Meeting::Broadcast(const std::string& bytes) {
  for (Member& member : members_) {
    if (member.connection != nullptr) member.connection->Send(bytes);
  }
  FlushOthers();
}

// A rank of this process may end it, and so the meeting, as soon as it knows:
// the others know first.
void Meeting::FlushOthers() {
  for (Member& member : members_) {
    if (member.connection == nullptr || member.pid == getpid()) continue;
    // A broken connection shows when it is flushed again.
    (void)member.connection->Flush();
  }
}

void Meeting::OnFrame(int rank, const Frame& frame) {
  if (failed()) return;  // the member has been told already
  const size_t r = static_cast<size_t>(rank);
  if (frame.kind == FrameKind::kFail) {
    const absl::Status status = UnpackError(frame.body);
    Fail(absl::Status(status.code(),
                      absl::StrCat(Who(r), ": ", status.message())));
  } else if (frame.kind == FrameKind::kContribute && complete_) {
    Contribute(rank, frame.body);
  } else {
    Fail(absl::InternalError(
        absl::StrFormat("%s sent the unexpected frame %d to the rendezvous",
                        Who(r), static_cast<uint32_t>(frame.kind))));
  }
}

void Meeting::Contribute(int rank, absl::string_view body) {
  const size_t r = static_cast<size_t>(rank);
  Unpacker in(body);
  const int64_t timeout_ms = in.Int();
  Member& member = members_[r];
  if (!in.ok() || member.part.has_value()) {
    Fail(absl::InternalError(absl::StrFormat(
        "%s contributed twice to all-gather %d of set-up", Who(r), round_)));
    return;
  }
  member.part = std::string(in.rest());
  ++parts_;
  deadline_ = Earlier(deadline_, Deadline::In(timeout_ms));
  if (present_ < members_.size()) {
    FailForLeft(IndexOf([](const Member& m) { return !m.connection; }));
  } else if (parts_ == members_.size()) {
    Distribute();
  }
}

void Meeting::FailForLeft(size_t rank) {
  Fail(absl::FailedPreconditionError(absl::StrFormat(
      "%s has left the set-up of the communicator while %s takes part in "
      "all-gather %d; all ranks must make the same calls",
      Who(rank),
      Who(IndexOf([](const Member& m) { return m.part.has_value(); })),
      round_)));
}

void Meeting::Distribute() {
  Packer packer;
  for (Member& member : members_) {
    packer.Text(*member.part);
    member.part.reset();
  }
  const std::string parts = packer.Take();
  if (parts.size() > kMaxFrame) {
    Fail(absl::InvalidArgumentError(absl::StrFormat(
        "all-gather %d of the communicator's set-up has %d bytes; at most %d "
        "are allowed",
        round_, parts.size(), kMaxFrame)));
    return;
  }
  // Nobody borrows the answer before: who contributes has read it.
  gathered_ = PackFrame(FrameKind::kGathered, parts);
  for (Member& member : members_) {
    if (member.connection) member.connection->SendBorrowed(gathered_);
  }
  FlushOthers();
  parts_ = 0;
  ++round_;
  deadline_ = Deadline();
}

void Meeting::OnClosed(int rank, bool left) {
  const size_t r = static_cast<size_t>(rank);
  if (members_[r].connection == nullptr) return;
  members_[r].connection = nullptr;
  --present_;
  if (failed()) return;
  if (!left || !complete_) {
    Fail(absl::UnavailableError(absl::StrFormat(
        "%s has closed its connection: it was killed, has exited or has given "
        "up%s",
        Who(r), complete_ ? "" : " before all ranks had come together")));
  } else if (parts_ > 0) {
    FailForLeft(r);
  }
}

template <typename Predicate>
std::string Meeting::MissingText(Predicate here) const {
  std::vector<std::string> missing, present;
  for (size_t i = 0; i < members_.size(); ++i) {
    auto& list = here(members_[i]) ? present : missing;
    list.push_back(members_[i].came ? Who(i) : absl::StrCat("rank ", i));
  }
  const auto join = [](std::vector<std::string>& list) {
    const size_t more = list.size() - std::min(list.size(), kMaxListed);
    list.resize(list.size() - more);
    std::string text = absl::StrJoin(list, ", ");
    if (more > 0) absl::StrAppend(&text, " and ", more, " more");
    return text.empty() ? std::string("none") : text;
  };
  return absl::StrFormat("missing: %s; present: %s", join(missing),
                         join(present));
}

void Meeting::OnTime(absl::string_view trouble) {
  if (failed() || !deadline_.passed()) return;
  std::string text;
  if (!complete_) {
    text = absl::StrFormat("only %d of %d ranks came together in time; %s",
                           arrived_, members_.size(),
                           MissingText([](const Member& m) { return m.came; }));
    if (!trouble.empty()) {
      absl::StrAppend(&text, "; connections could not be accepted: ", trouble);
    }
  } else {
    text = absl::StrFormat(
        "all-gather %d of the communicator's set-up did not end in time; %s",
        round_,
        MissingText([](const Member& m) { return m.part.has_value(); }));
  }
  Fail(absl::DeadlineExceededError(text));
}

void Meeting::Fail(const absl::Status& status) {
  if (failed()) return;
  status_ = status;
  deadline_ = Deadline();
  Broadcast(PackError(FrameKind::kError, status));
}

}  // namespace axon
