// SPDX-License-Identifier: Apache-2.0
#include "schedule/text.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"

namespace axon {
namespace {

// How an operation is written: which of its fields there are.
struct Form {
  const char* name;
  OpKind kind;
  bool peer;
  bool list;
  bool source;
  bool destination;
};
constexpr Form kForms[] = {
    {"send", OpKind::kSend, true, false, true, false},
    {"publish", OpKind::kPublish, false, true, true, false},
    {"recv", OpKind::kRecv, true, false, false, true},
    {"recv_reduce", OpKind::kRecvReduce, true, false, true, true},
    {"reduce_all", OpKind::kReduceAll, false, true, true, true},
    {"copy", OpKind::kCopy, false, false, true, true},
    {"reduce", OpKind::kReduce, false, false, true, true},
};
// Far more than any algorithm needs; every list is looked up among the others.
constexpr size_t kMaxLists = 4096;
constexpr const char* kBuffers[] = {"in", "out", "scratch"};

std::string SpanText(Span span) {
  return absl::StrCat(kBuffers[static_cast<int>(span.buffer)], "[", span.first,
                      ":", span.first + span.count, "]");
}

absl::StatusOr<int> ParseNumber(absl::string_view text, int max,
                                absl::string_view what) {
  int value = 0;
  if (!absl::SimpleAtoi(text, &value) || value < 0 || value > max) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " is '", text, "', not a number from 0 to ", max));
  }
  return value;
}

absl::StatusOr<Span> ParseSpan(absl::string_view text) {
  constexpr int kMax = std::numeric_limits<uint16_t>::max();
  for (int i = 0; i < 3; ++i) {
    absl::string_view range = text;
    if (!absl::ConsumePrefix(&range, kBuffers[i]) ||
        !absl::ConsumePrefix(&range, "[") ||
        !absl::ConsumeSuffix(&range, "]")) {
      continue;
    }
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(range, absl::MaxSplits(':', 1));
    ASSIGN_OR_RETURN(const int first,
                     ParseNumber(ends.first, kMax, "the first piece"));
    ASSIGN_OR_RETURN(const int end,
                     ParseNumber(ends.second, kMax, "the end of a span"));
    if (end < first) break;
    return Span{static_cast<Buffer>(i), static_cast<uint16_t>(first),
                static_cast<uint16_t>(end - first)};
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "'", text,
      "' is no span; write in[first:end], out[...] or scratch[...]"));
}

absl::StatusOr<std::vector<int>> ParseList(absl::string_view text) {
  absl::string_view inner = text;
  if (!absl::ConsumePrefix(&inner, "{") || !absl::ConsumeSuffix(&inner, "}")) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is no list of ranks; write {1,2,5}"));
  }
  std::vector<int> list;
  for (absl::string_view item : absl::StrSplit(inner, ',')) {
    ASSIGN_OR_RETURN(const int peer,
                     ParseNumber(item, std::numeric_limits<int16_t>::max(),
                                 "a rank of the list"));
    if (!list.empty() && peer <= list.back()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", text, "' does not ascend at ", peer));
    }
    list.push_back(peer);
  }
  return list;
}

// The words of one line, taken one after the other.
class Words {
 public:
  explicit Words(absl::string_view line)
      : words_(absl::StrSplit(line, absl::ByAnyChar(" \t\r"),
                              absl::SkipEmpty())) {}
  bool empty() const { return next_ == words_.size(); }
  absl::string_view Next() { return empty() ? "" : words_[next_++]; }
  bool Consume(absl::string_view word) {
    if (empty() || words_[next_] != word) return false;
    ++next_;
    return true;
  }

 private:
  std::vector<absl::string_view> words_;
  size_t next_ = 0;
};

absl::Status Expect(Words* words, absl::string_view word) {
  if (words->Consume(word)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", word, "' is missing before '", words->Next(), "'"));
}

absl::Status ParseHeader(Words* words, std::vector<Schedule>* schedules) {
  constexpr int kMax = std::numeric_limits<uint16_t>::max();
  Schedule schedule;
  ASSIGN_OR_RETURN(const int rank,
                   ParseNumber(words->Next(), kMax, "the rank"));
  if (rank != static_cast<int>(schedules->size())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rank ", rank, " stands where rank ", schedules->size(), " should"));
  }
  RETURN_IF_ERROR(Expect(words, "cuts"));
  ASSIGN_OR_RETURN(const int cuts, ParseNumber(words->Next(), kMax, "cuts"));
  if (cuts == 0) return absl::InvalidArgumentError("cuts is 0, not 1 or more");
  RETURN_IF_ERROR(Expect(words, "scratch"));
  ASSIGN_OR_RETURN(const int scratch,
                   ParseNumber(words->Next(), kMax, "scratch"));
  schedule.cuts = static_cast<uint16_t>(cuts);
  schedule.scratch_pieces = static_cast<uint16_t>(scratch);
  schedules->push_back(std::move(schedule));
  return absl::OkStatus();
}

// The fields of an operation, as its form has them.
struct Fields {
  int peer = -1;
  std::vector<int> list;
  Span source;
  Span destination;
  bool completes = false;
};

absl::StatusOr<Fields> ParseFields(const Form& form, Words* words) {
  constexpr int kMaxRank = std::numeric_limits<int16_t>::max();
  Fields fields;
  if (form.peer) {
    ASSIGN_OR_RETURN(fields.peer,
                     ParseNumber(words->Next(), kMaxRank, "the peer"));
  }
  if (form.list) {
    ASSIGN_OR_RETURN(fields.list, ParseList(words->Next()));
  }
  if (form.source) {
    ASSIGN_OR_RETURN(fields.source, ParseSpan(words->Next()));
  }
  if (form.destination) {
    RETURN_IF_ERROR(Expect(words, "->"));
    ASSIGN_OR_RETURN(fields.destination, ParseSpan(words->Next()));
  }
  fields.completes =
      form.source && form.destination && words->Consume("completes");
  return fields;
}

void Append(OpKind kind, const Fields& op, Schedule* schedule) {
  switch (kind) {
    case OpKind::kSend:
      return schedule->Send(op.peer, op.source);
    case OpKind::kPublish:
      return schedule->Publish(op.list, op.source);
    case OpKind::kRecv:
      return schedule->Recv(op.peer, op.destination);
    case OpKind::kRecvReduce:
      return schedule->RecvReduce(op.peer, op.source, op.destination,
                                  op.completes);
    case OpKind::kReduceAll:
      return schedule->ReduceAll(op.list, op.source, op.destination,
                                 op.completes);
    case OpKind::kCopy:
      return schedule->Copy(op.source, op.destination, op.completes);
    case OpKind::kReduce:
      return schedule->Reduce(op.source, op.destination, op.completes);
  }
}

absl::Status ParseOp(absl::string_view name, Words* words, Schedule* schedule) {
  const Form* form =
      std::find_if(std::begin(kForms), std::end(kForms),
                   [name](const Form& form) { return form.name == name; });
  if (form == std::end(kForms)) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no operation '", name, "'"));
  }
  ASSIGN_OR_RETURN(const Fields fields, ParseFields(*form, words));
  if (schedule->lists.size() == kMaxLists) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a rank has more different lists of ranks than ", kMaxLists));
  }
  Append(form->kind, fields, schedule);
  return absl::OkStatus();
}

absl::Status ParseLine(absl::string_view line,
                       std::vector<Schedule>* schedules) {
  Words words(line.substr(0, line.find('#')));
  if (words.empty()) return absl::OkStatus();
  const absl::string_view name = words.Next();
  if (name == "rank") {
    RETURN_IF_ERROR(ParseHeader(&words, schedules));
  } else if (schedules->empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", name, "' stands before any 'rank 0 cuts N scratch N'"));
  } else {
    RETURN_IF_ERROR(ParseOp(name, &words, &schedules->back()));
  }
  if (words.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", words.Next(), "' is one word too many"));
}

}  // namespace

std::string OpText(const Schedule& schedule, const Op& op) {
  const Form& form = kForms[static_cast<int>(op.kind)];
  std::string text = form.name;
  if (form.peer) absl::StrAppend(&text, " ", op.peer);
  if (form.list) {
    const bool exists =
        op.peer >= 0 && op.peer < static_cast<int>(schedule.lists.size());
    absl::StrAppend(
        &text, " {",
        exists ? absl::StrJoin(schedule.lists[op.peer], ",") : "no list", "}");
  }
  if (form.source) absl::StrAppend(&text, " ", SpanText(op.source));
  if (form.destination)
    absl::StrAppend(&text, " -> ", SpanText(op.destination));
  if (op.completes) absl::StrAppend(&text, " completes");
  return text;
}

std::string SchedulesText(absl::Span<const Schedule> schedules) {
  std::string text;
  for (size_t rank = 0; rank < schedules.size(); ++rank) {
    const Schedule& schedule = schedules[rank];
    absl::StrAppend(&text, "rank ", rank, " cuts ", schedule.cuts, " scratch ",
                    schedule.scratch_pieces, "\n");
    for (const Op& op : schedule.ops) {
      absl::StrAppend(&text, OpText(schedule, op), "\n");
    }
  }
  return text;
}

absl::StatusOr<std::vector<Schedule>> ParseSchedules(absl::string_view text) {
  std::vector<Schedule> schedules;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::Status status = ParseLine(line, &schedules);
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, ": ", status.message()));
    }
  }
  return schedules;
}

}  // namespace axon
