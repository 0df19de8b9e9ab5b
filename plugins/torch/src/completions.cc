// SPDX-License-Identifier: Apache-2.0
#include "completions.h"

#include <c10/util/Logging.h>

#include <exception>
#include <thread>
#include <utility>

namespace torch_axon {
namespace {

// How long a thread waits for work before it ends.
constexpr std::chrono::seconds kIdle{10};

}  // namespace

Completions& Completions::Get() {
  static Completions* const pool = new Completions;
  return *pool;
}

void Completions::Add(std::function<void()> task) {
  std::lock_guard lock(mutex_);
  if (stopped_) return;
  tasks_.push_back(std::move(task));
  if (static_cast<int>(tasks_.size()) > free_) {
    ++threads_;
    std::thread([this] { Serve(); }).detach();
  }
  changed_.notify_one();
}

void Completions::Serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++free_;
    const bool woken = changed_.wait_for(
        lock, kIdle, [this] { return stopped_ || !tasks_.empty(); });
    --free_;
    if (tasks_.empty() && (stopped_ || !woken)) break;
    auto task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    try {
      task();
    } catch (const std::exception& error) {
      LOG(ERROR) << "axon: a future's callback failed: " << error.what();
    }
    task = nullptr;  // may free Python objects: not under the lock
    lock.lock();
  }
  --threads_;
  changed_.notify_all();
}

bool Completions::Stop(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
  return changed_.wait_for(lock, limit, [this] { return threads_ == 0; });
}

}  // namespace torch_axon
