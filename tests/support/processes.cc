// SPDX-License-Identifier: Apache-2.0
#include "tests/support/processes.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/fd.h"

namespace axon {
namespace {

struct Child {
  pid_t pid;
  Fd out;
};

struct Pipe {
  Fd out, in;
};

Pipe MakePipe() {
  int ends[2];
  if (pipe(ends) != 0) abort();
  return {Fd(ends[0]), Fd(ends[1])};
}

bool OthersSleep() {
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == std::to_string(gettid())) continue;
    std::ifstream stat(task.path() / "stat");
    std::string text;
    std::getline(stat, text);
    const size_t name_ends = text.rfind(") ");
    if (name_ends != std::string::npos && text[name_ends + 2] == 'R') {
      return false;
    }
  }
  return true;
}

// A fork beside a thread that holds a lock of AddressSanitizer's allocator
// makes a child that waits for it for ever.
void LetOthersSleep() {
  const Deadline deadline = Deadline::In(1000);
  while (!OthersSleep() && !deadline.passed()) usleep(1000);
}

// All begin together, when `gate` is closed: what the first ones do would keep
// threads of this process busy.
Child Fork(int rank, const RankFunction& function, Pipe& gate) {
  auto [out, in] = MakePipe();
  const pid_t pid = fork();
  if (pid == 0) {
    out.Close();
    gate.in.Close();
    char none = 0;
    if (read(gate.out.get(), &none, 1) != 0) _exit(98);
    gate.out.Close();
    const std::string text = function(rank);
    const bool ok = write(in.get(), text.data(), text.size()) ==
                    static_cast<ssize_t>(text.size());
    _exit(ok ? 0 : 99);
  }
  return {pid, std::move(out)};
}

std::string Collect(Child* child, const Deadline& deadline) {
  std::string text;
  char buffer[4096];
  while (true) {
    pollfd waiting{child->out.get(), POLLIN, 0};
    if (poll(&waiting, 1, static_cast<int>(deadline.LeftMs(60000))) == 0) {
      kill(child->pid, SIGKILL);
      text = "timeout";
      break;
    }
    const ssize_t n = read(child->out.get(), buffer, sizeof(buffer));
    if (n <= 0) break;
    text.append(buffer, static_cast<size_t>(n));
  }
  int status = 0;
  waitpid(child->pid, &status, 0);
  if (text == "timeout") return text;
  if (WIFSIGNALED(status)) return absl::StrCat("signal ", WTERMSIG(status));
  if (WEXITSTATUS(status) != 0) {
    return absl::StrCat("exit ", WEXITSTATUS(status));
  }
  return text;
}

}  // namespace

std::vector<std::string> RunProcesses(
    int count, int64_t limit_ms, const RankFunction& function,
    const std::function<void(const std::vector<pid_t>&)>& started) {
  const Deadline deadline = Deadline::In(limit_ms);
  std::vector<Child> children;
  std::vector<pid_t> pids;
  {
    Pipe gate = MakePipe();
    LetOthersSleep();
    for (int rank = 0; rank < count; ++rank) {
      children.push_back(Fork(rank, function, gate));
      pids.push_back(children.back().pid);
    }
  }
  if (started) started(pids);
  std::vector<std::string> texts;
  for (Child& child : children) texts.push_back(Collect(&child, deadline));
  return texts;
}

std::vector<std::string> RunThreads(int count, const RankFunction& function) {
  std::vector<std::string> texts(static_cast<size_t>(count));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < count; ++rank) {
    threads.emplace_back(
        [&, rank] { texts[static_cast<size_t>(rank)] = function(rank); });
  }
  for (std::thread& thread : threads) thread.join();
  return texts;
}

namespace {

int CountEntries(const char* path) {
  const std::filesystem::directory_iterator entries(path);
  return static_cast<int>(std::distance(begin(entries), end(entries)));
}

}  // namespace

int CountFds() { return CountEntries("/proc/self/fd"); }
int CountThreads() { return CountEntries("/proc/self/task"); }

}  // namespace axon
