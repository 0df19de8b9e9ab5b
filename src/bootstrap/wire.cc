// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/wire.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "bootstrap/random.h"

namespace axon {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr char kHelloMagic[8] = {'A', 'X', 'O', 'N', 'M', 'E', 'E', 'T'};

void AppendU32(std::string* bytes, uint32_t value) {
  bytes->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

uint32_t U32At(absl::string_view bytes, size_t at) {
  uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

}  // namespace

Packer& Packer::Int(int64_t value) {
  bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  return *this;
}

Packer& Packer::Text(absl::string_view text) {
  Int(static_cast<int64_t>(text.size()));
  bytes_.append(text.data(), text.size());
  return *this;
}

int64_t Unpacker::Int() {
  int64_t value = 0;
  if (left_.size() < sizeof(value)) {
    ok_ = false;
    left_ = {};
    return 0;
  }
  std::memcpy(&value, left_.data(), sizeof(value));
  left_.remove_prefix(sizeof(value));
  return value;
}

absl::string_view Unpacker::Text() {
  const int64_t size = Int();
  if (size < 0 || static_cast<uint64_t>(size) > left_.size()) {
    ok_ = false;
    left_ = {};
    return {};
  }
  const absl::string_view text = left_.substr(0, static_cast<size_t>(size));
  left_.remove_prefix(text.size());
  return text;
}

std::string PackHello(absl::string_view secret, const Hello& hello) {
  const std::string body = Packer()
                               .Int(hello.rank)
                               .Int(hello.nranks)
                               .Int(hello.version)
                               .Int(hello.pid)
                               .Int(hello.timeout_ms)
                               .Text(hello.host)
                               .Text(hello.digest)
                               .Take();
  std::string bytes(kHelloMagic, sizeof(kHelloMagic));
  AppendU32(&bytes, kProtocol);
  AppendU32(&bytes, static_cast<uint32_t>(body.size()));
  bytes.append(secret.data(), secret.size());
  return bytes + body;
}

Poll FindHello(absl::string_view bytes, HelloView* hello) {
  const size_t known = std::min(bytes.size(), sizeof(kHelloMagic));
  if (std::memcmp(bytes.data(), kHelloMagic, known) != 0) return Poll::kFailed;
  if (bytes.size() < kHelloPrefix) return Poll::kPending;
  hello->protocol = U32At(bytes, 8);
  const uint32_t length = U32At(bytes, 12);
  hello->secret = bytes.substr(16, kSecretSize);
  if (length > kMaxHello) return Poll::kFailed;
  hello->size = kHelloPrefix + length;
  if (bytes.size() < hello->size) return Poll::kPending;
  hello->body = bytes.substr(kHelloPrefix, length);
  return Poll::kReady;
}

bool UnpackHello(absl::string_view body, Hello* hello) {
  Unpacker in(body);
  hello->rank = in.Int();
  hello->nranks = in.Int();
  hello->version = in.Int();
  hello->pid = in.Int();
  hello->timeout_ms = in.Int();
  hello->host = std::string(in.Text());
  hello->digest = std::string(in.Text());
  return in.ok() && in.rest().empty();
}

std::string PackFrame(FrameKind kind, absl::string_view body) {
  std::string bytes;
  bytes.reserve(kFrameHeader + body.size());
  AppendU32(&bytes, static_cast<uint32_t>(kind));
  AppendU32(&bytes, static_cast<uint32_t>(body.size()));
  bytes.append(body.data(), body.size());
  return bytes;
}

std::string PackError(FrameKind kind, const absl::Status& status) {
  return PackFrame(kind, Packer()
                             .Int(static_cast<int64_t>(status.code()))
                             .Text(status.message())
                             .Take());
}

absl::Status UnpackError(absl::string_view body) {
  Unpacker in(body);
  const int64_t code = in.Int();
  const absl::string_view text = in.Text();
  // Codes from 1 to 16 are those of absl; anything else is not an error.
  if (!in.ok() || code < 1 || code > 16) {
    return absl::InternalError("the rendezvous sent an error without a code");
  }
  return absl::Status(static_cast<absl::StatusCode>(code), text);
}

}  // namespace axon
