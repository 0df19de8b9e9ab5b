// SPDX-License-Identifier: Apache-2.0
#include "communicator.h"

#include <algorithm>
#include <climits>
#include <set>
#include <thread>

#include "errors.h"

namespace torch_axon {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kAbortLimit{5000};
// Longer than the way from `calling_ = true` into the library can take.
constexpr milliseconds kEnterLimit{10};

constexpr char kClosed[] = "the group was aborted or shut down";

// All open communicators. Never destroyed: threads of the library may outlive
// static objects.
struct OpenList {
  std::mutex mutex;
  std::set<std::shared_ptr<Communicator>> all;
};
OpenList& Open() {
  static OpenList* const list = new OpenList;
  return *list;
}

// From now to `end`, 0 if that has passed.
milliseconds Left(std::chrono::steady_clock::time_point end) {
  return std::max(milliseconds(0), std::chrono::duration_cast<milliseconds>(
                                       end - std::chrono::steady_clock::now()));
}

int TimeoutMs(milliseconds timeout) {
  return static_cast<int>(std::clamp<int64_t>(timeout.count(), 1, INT_MAX));
}

}  // namespace

Communicator::Communicator(int size, milliseconds timeout)
    : timeout_ms_(timeout.count()), streams_(1 + 2 * size, nullptr) {}

Communicator::~Communicator() = default;

std::shared_ptr<Communicator> Communicator::Create(const axonUniqueId& id,
                                                   int rank, int size,
                                                   const std::string& name,
                                                   milliseconds timeout) {
  std::vector<std::shared_ptr<Communicator>> leftovers;
  {
    std::lock_guard lock(Open().mutex);
    for (const auto& open : Open().all) {
      if (open->released_ && open->Idle()) leftovers.push_back(open);
    }
  }
  for (const auto& open : leftovers) open->Release();

  std::shared_ptr<Communicator> made(new Communicator(size, timeout));
  axonConfig_t config = AXON_CONFIG_INITIALIZER;
  config.timeoutMs = TimeoutMs(timeout);
  config.commName = name.c_str();
  axonComm_t comm = nullptr;
  const axonResult_t result =
      axonCommInitRankConfig(&comm, size, id, rank, &config);
  Check(result, {"init", name, rank, size, 0, timeout});
  made->comm_.store(comm);
  std::lock_guard lock(Open().mutex);
  Open().all.insert(made);
  return made;
}

// The caller holds call_mutex_.
axonResult_t Communicator::Enter(Body body, axonStream_t stream,
                                 std::string* detail) {
  calling_.store(true);
  const axonComm_t comm = comm_.load();
  axonResult_t result = axonInvalidUsage;
  if (comm == nullptr) {
    *detail = kClosed;
  } else {
    result = body(comm, stream);
    if (result != axonSuccess) *detail = axonGetLastError(nullptr);
  }
  calling_.store(false);
  return result;
}

axonResult_t Communicator::Run(Body body, std::string* detail) {
  std::lock_guard lock(call_mutex_);
  return Enter(body, nullptr, detail);
}

axonResult_t Communicator::Queue(Lane lane, int peer, Body body,
                                 axonStreamCallback_t done, void* arg,
                                 std::string* detail) {
  std::lock_guard lock(call_mutex_);
  Started(lane);
  axonStream_t stream = nullptr;
  axonResult_t result = StreamFor(lane, peer, &stream);
  if (result != axonSuccess) {
    *detail = axonGetLastError(nullptr);
    done(result, arg);
    return result;
  }
  result = Enter(body, stream, detail);
  const axonResult_t added = axonStreamAddCallback(stream, done, arg);
  if (added != axonSuccess) {
    if (result == axonSuccess) *detail = axonGetLastError(nullptr);
    axonStreamSynchronize(stream);
    done(added, arg);
  }
  return result != axonSuccess ? result : added;
}

void Communicator::Started(Lane lane) {
  std::lock_guard lock(pending_mutex_);
  ++(lane == Lane::kCollective ? pending_collectives_ : pending_messages_);
}

void Communicator::Finished(Lane lane) {
  std::lock_guard lock(pending_mutex_);
  --(lane == Lane::kCollective ? pending_collectives_ : pending_messages_);
  if (pending_collectives_ + pending_messages_ == 0) idle_.notify_all();
}

axonResult_t Communicator::StreamFor(Lane lane, int peer,
                                     axonStream_t* stream) {
  const size_t size = (streams_.size() - 1) / 2;
  const size_t index = lane == Lane::kCollective ? 0
                       : lane == Lane::kSend     ? 1 + peer
                                                 : 1 + size + peer;
  if (streams_[index] == nullptr) {
    const axonResult_t result = axonStreamCreate(&streams_[index]);
    if (result != axonSuccess) return result;
  }
  *stream = streams_[index];
  return axonSuccess;
}

bool Communicator::HasMessages() const {
  std::lock_guard lock(pending_mutex_);
  return pending_messages_ != 0;
}

bool Communicator::Idle() const {
  std::lock_guard lock(pending_mutex_);
  return pending_collectives_ + pending_messages_ == 0;
}

bool Communicator::WaitIdle(milliseconds limit) {
  std::unique_lock lock(pending_mutex_);
  return idle_.wait_for(lock, limit, [this] {
    return pending_collectives_ + pending_messages_ == 0;
  });
}

axonResult_t Communicator::SetTimeout(milliseconds timeout) {
  std::lock_guard lock(query_mutex_);
  timeout_ms_.store(timeout.count(), std::memory_order_relaxed);
  const axonComm_t comm = comm_.load();
  if (comm == nullptr) return axonSuccess;
  return axonCommSetTimeout(comm, TimeoutMs(timeout));
}

milliseconds Communicator::timeout() const {
  return milliseconds(timeout_ms_.load(std::memory_order_relaxed));
}

axonResult_t Communicator::AsyncError() {
  std::lock_guard lock(query_mutex_);
  const axonComm_t comm = comm_.load();
  if (comm == nullptr) return axonInvalidUsage;
  axonResult_t error = axonSuccess;
  const axonResult_t result = axonCommGetAsyncError(comm, &error);
  return result != axonSuccess ? result : error;
}

std::string Communicator::LastError() {
  std::lock_guard lock(query_mutex_);
  const axonComm_t comm = comm_.load();
  if (comm == nullptr) return kClosed;
  return axonGetLastError(comm);
}

bool Communicator::closed() const { return comm_.load() == nullptr; }

// Nothing is queued. False if a call was still running after `limit`.
bool Communicator::Close(milliseconds limit) {
  std::shared_ptr<Communicator> self;  // dies after the locks are free
  std::unique_lock calls(call_mutex_, limit);
  if (!calls.owns_lock()) return false;
  axonComm_t comm;
  {
    std::lock_guard queries(query_mutex_);
    comm = comm_.exchange(nullptr);
  }
  if (comm != nullptr) axonCommDestroy(comm);
  for (axonStream_t& stream : streams_) {
    if (stream != nullptr) axonStreamDestroy(stream);
    stream = nullptr;
  }
  calls.unlock();
  std::lock_guard lock(Open().mutex);
  for (auto it = Open().all.begin(); it != Open().all.end(); ++it) {
    if (it->get() != this) continue;
    self = *it;
    Open().all.erase(it);
    break;
  }
  return true;
}

void Communicator::Shutdown(milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  if (WaitIdle(limit) && Close(Left(end))) return;
  Abort();
}

void Communicator::Abort() {
  axonComm_t comm;
  {
    std::lock_guard lock(query_mutex_);
    comm = comm_.exchange(nullptr);
  }
  if (comm != nullptr) {
    // A caller that still saw the communicator gets time to enter the library,
    // which then ends its call.
    if (calling_.load()) std::this_thread::sleep_for(kEnterLimit);
    axonCommAbort(comm);
  }
  // If something is stuck even so, its stream is left to the end of the
  // process.
  if (WaitIdle(kAbortLimit)) Close(kAbortLimit);
}

void Communicator::Release() {
  {
    std::lock_guard lock(Open().mutex);
    released_ = true;
  }
  if (!closed() && Idle()) Close(milliseconds(0));
}

void Communicator::ShutdownAll(milliseconds limit) {
  std::vector<std::shared_ptr<Communicator>> all;
  {
    std::lock_guard lock(Open().mutex);
    all.assign(Open().all.begin(), Open().all.end());
  }
  const auto end = std::chrono::steady_clock::now() + limit;
  for (const auto& open : all) open->Shutdown(Left(end));
}

}  // namespace torch_axon
