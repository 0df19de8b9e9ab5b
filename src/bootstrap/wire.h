// SPDX-License-Identifier: Apache-2.0
// What the members of a meeting and its server say to each other. A client
// opens with a hello: a prefix whose layout never changes, then a body. After
// that both sides send frames: kind (4 bytes), length (4), body. Numbers are
// little endian. Everything read is checked; plain values, thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/poll.h"

namespace axon {

// Appends numbers and texts to a body.
class Packer {
 public:
  Packer& Int(int64_t value);
  Packer& Text(absl::string_view text);
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads them back. After any read beyond the end `ok()` is false and the values
// are 0 and empty.
class Unpacker {
 public:
  explicit Unpacker(absl::string_view bytes) : left_(bytes) {}
  int64_t Int();
  absl::string_view Text();
  absl::string_view rest() const { return left_; }
  bool ok() const { return ok_; }

 private:
  absl::string_view left_;
  bool ok_ = true;
};

struct Hello {
  int64_t rank = 0;
  int64_t nranks = 0;
  int64_t version = 0;  // AXON_VERSION_CODE
  int64_t pid = 0;
  int64_t timeout_ms = 0;  // of meeting; 0: none
  std::string host;
  std::string digest;  // settings that must agree
};

constexpr size_t kHelloPrefix = 32;
constexpr uint32_t kMaxHello = 64 << 10;

std::string PackHello(absl::string_view secret, const Hello& hello);
constexpr uint32_t kProtocol = 1;

// A hello as it lies in a buffer.
struct HelloView {
  absl::string_view secret;  // empty: not here yet
  uint32_t protocol = 0;
  absl::string_view body;
  size_t size = 0;  // of all
};
// kPending while `bytes` may become a hello, kFailed when they cannot.
Poll FindHello(absl::string_view bytes, HelloView* hello);
bool UnpackHello(absl::string_view body, Hello* hello);

enum class FrameKind : uint32_t {
  kWelcome = 1,  // server: the hello was accepted; pid, host of the server
  kAllHere,      // server: every rank has come; pid and host of each
  kContribute,   // client: timeout in ms, then its part of an all-gather
  kGathered,     // server: the parts of all ranks
  kError,        // server: status code, text; the last frame of a meeting
  kFail,         // client: its status code and text, for all others
  kLeave,        // client: it needs the meeting no more
};

struct Frame {
  FrameKind kind;
  absl::string_view body;  // valid until the connection is read again
};

constexpr size_t kFrameHeader = 8;
constexpr uint32_t kMaxFrame = uint32_t{1} << 30;

std::string PackFrame(FrameKind kind, absl::string_view body);
std::string PackError(FrameKind kind, const absl::Status& status);
absl::Status UnpackError(absl::string_view body);

}  // namespace axon
