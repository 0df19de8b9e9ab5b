// SPDX-License-Identifier: Apache-2.0
#include "meeting.h"

#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>

#include <chrono>
#include <cstring>
#include <exception>
#include <vector>

namespace torch_axon {
namespace {

// One byte, 1 for an id and 0 for an error's text, then the id or the text.
constexpr char kIdKey[] = "axon_id";

// How much longer than rank 0 the others wait, to hear from it who is missing.
constexpr std::chrono::milliseconds kVerdict{1000};

// The text of torch's error without the stack.
std::string Text(const std::exception& error) {
  const auto* own = dynamic_cast<const c10::Error*>(&error);
  return own != nullptr ? own->what_without_backtrace() : error.what();
}

std::string HereKey(int rank) { return c10::str("axon_here_", rank); }

void Publish(c10d::Store& store, bool good, const std::string& text) {
  std::vector<uint8_t> value(1 + text.size());
  value[0] = good;
  std::memcpy(value.data() + 1, text.data(), text.size());
  store.set(kIdKey, value);
}

// "rank 1, rank 3": those of `keys` that are not in the store.
std::string Missing(c10d::Store& store, const std::vector<std::string>& keys) {
  std::string missing;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (store.check({keys[i]})) continue;
    missing += c10::str(missing.empty() ? "" : ", ", "rank ", i + 1);
  }
  return missing;
}

// Rank 0's part. The library has a limit of its own for starting a group, so it
// starts when all are there.
axonUniqueId Invite(c10d::Store& store, const Origin& origin) {
  std::vector<std::string> others;
  for (int rank = 1; rank < origin.size; ++rank) {
    others.push_back(HereKey(rank));
  }
  try {
    if (!others.empty()) store.wait(others, origin.timeout);
  } catch (const std::exception& error) {
    const std::string missing = Missing(store, others);
    const std::string text =
        missing.empty() ? Text(error) : "missing: " + missing;
    Publish(store, false, text);
    std::rethrow_exception(MakeError(axonTimeout, origin, text));
  }
  axonUniqueId id;
  const axonResult_t result = axonGetUniqueId(&id);
  if (result != axonSuccess) {
    const std::string text = axonGetLastError(nullptr);
    Publish(store, false, text);
    std::rethrow_exception(MakeError(result, origin, text));
  }
  Publish(store, true, std::string(id.internal, sizeof(id.internal)));
  return id;
}

}  // namespace

axonUniqueId Meet(c10d::Store& store, const Origin& origin) {
  if (origin.rank == 0) return Invite(store, origin);
  store.set(HereKey(origin.rank), std::vector<uint8_t>{1});
  try {
    store.wait({kIdKey}, origin.timeout + kVerdict);
  } catch (const std::exception& error) {
    std::rethrow_exception(
        MakeError(axonTimeout, origin,
                  "rank 0 has not invited this rank: " + Text(error)));
  }
  const std::vector<uint8_t> value = store.get(kIdKey);
  const std::string text(value.begin() + !value.empty(), value.end());
  axonUniqueId id;
  if (value.empty() || value[0] == 0 || text.size() != sizeof(id.internal)) {
    std::rethrow_exception(MakeError(
        axonRemoteError, origin, "rank 0 could not start the group: " + text));
  }
  std::memcpy(id.internal, text.data(), sizeof(id.internal));
  return id;
}

void Part(c10d::Store& store, const Origin& origin) {
  try {
    store.deleteKey(origin.rank == 0 ? kIdKey : HereKey(origin.rank));
  } catch (const std::exception&) {
    // Some stores cannot delete: only a second group of the same name needs it.
  }
}

}  // namespace torch_axon
