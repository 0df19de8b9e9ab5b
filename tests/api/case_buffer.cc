// SPDX-License-Identifier: Apache-2.0
#include "tests/api/case_buffer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_format.h"
#include "tests/engine/kernels_reference.h"

namespace axon {

CaseBuffer::CaseBuffer(Memory memory, size_t bytes, size_t shift)
    : bytes_(bytes), shift_(shift) {
  const size_t all = bytes + shift + 2 * kGuard;
  if (memory == Memory::kMapped) {
    if (axonMemAlloc(&mapped_, all) != axonSuccess) std::abort();
    begin_ = static_cast<std::byte*>(mapped_);
    std::fill_n(begin_, all, kFill);
  } else {
    private_.resize(all, kFill);
    begin_ = private_.data();
  }
}

CaseBuffer::~CaseBuffer() {
  if (mapped_ != nullptr && axonMemFree(mapped_) != axonSuccess) std::abort();
}

bool CaseBuffer::intact() const {
  const auto filled = [](std::byte b) { return b == kFill; };
  const std::byte* data = begin_ + kGuard + shift_;
  return std::all_of<const std::byte*>(begin_, data, filled) &&
         std::all_of(data + bytes_, data + bytes_ + kGuard, filled);
}

uint64_t LoadBits(const std::byte* at, size_t element) {
  uint64_t bits = 0;
  std::memcpy(&bits, at, element);
  return bits;
}

void StoreBits(std::byte* at, size_t element, uint64_t bits) {
  std::memcpy(at, &bits, element);
}

namespace {

std::vector<std::byte> Bytes(DataType type, const std::vector<uint64_t>& period,
                             size_t phase) {
  const size_t element = ElementSize(type), n = period.size();
  std::vector<std::byte> bytes(n * element);
  for (size_t i = 0; i < n; ++i) {
    StoreBits(bytes.data() + i * element, element, period[(phase + i) % n]);
  }
  return bytes;
}

}  // namespace

void Repeat(DataType type, std::byte* to, size_t count,
            const std::vector<uint64_t>& period) {
  const std::vector<std::byte> bytes = Bytes(type, period, 0);
  size_t left = count * ElementSize(type);
  for (; left > 0; to += bytes.size()) {
    const size_t n = std::min(left, bytes.size());
    std::memcpy(to, bytes.data(), n);
    left -= n;
    if (left == 0) break;
  }
}

std::string Differs(DataType type, const std::byte* got, size_t count,
                    const std::vector<uint64_t>& period, size_t phase) {
  const std::vector<std::byte> bytes = Bytes(type, period, phase);
  const size_t element = ElementSize(type), n = period.size();
  for (size_t i = 0; i < count; i += n) {
    const size_t here = std::min(n, count - i);
    const std::byte* part = got + i * element;
    if (std::memcmp(part, bytes.data(), here * element) == 0) continue;
    for (size_t k = 0; k < here; ++k) {
      const uint64_t is = LoadBits(part + k * element, element);
      const uint64_t must = LoadBits(bytes.data() + k * element, element);
      if (is == must || (IsNanBits(type, is) && IsNanBits(type, must))) {
        continue;
      }
      return absl::StrFormat("element %u is %x, not %x", i + k, is, must);
    }
  }
  return "";
}

}  // namespace axon
