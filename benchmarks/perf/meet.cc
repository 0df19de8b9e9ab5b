// SPDX-License-Identifier: Apache-2.0
#include "perf/meet.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <thread>

#include "perf/failure.h"

namespace axon::perf {

namespace {

using Clock = std::chrono::steady_clock;

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const { return fd_; }

 private:
  const int fd_;
};

[[noreturn]] void Fail(const std::string& what) {
  throw Failure(what + ": " + std::strerror(errno) +
                "; set AXON_COMM_ID=host:port on all ranks to meet there");
}

// A line of /proc/<pid>/stat: the name, and the fields that follow it.
struct Process {
  std::string name;
  pid_t parent = 0;
  std::string start;  // in ticks since boot; tells reused numbers apart
};

Process ReadProcess(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const size_t open = text.find('('), close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos) return {};
  Process process;
  process.name = text.substr(open + 1, close - open - 1);
  std::istringstream fields(text.substr(close + 1));
  std::string field;
  for (int number = 3; number <= 22 && fields >> field; ++number) {
    if (number == 4) process.parent = std::atoi(field.c_str());
    if (number == 22) process.start = field;
  }
  return process;
}

// The process that started all of the job on this machine: MPICH's proxy, which
// tells its children no name of the job, else the parent.
pid_t Starter() {
  for (pid_t pid = getppid(); pid > 1;) {
    const Process process = ReadProcess(pid);
    if (process.name.rfind("hydra_pmi_prox", 0) == 0) return pid;
    pid = process.parent;
  }
  return getppid();
}

sockaddr_un Address(const std::string& job_key, socklen_t* length) {
  const std::string name =
      "axon-perf-" + std::to_string(getuid()) + "-" + job_key;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // sun_path[0] stays 0: the abstract namespace.
  const size_t size = std::min(name.size(), sizeof(address.sun_path) - 1);
  std::memcpy(address.sun_path + 1, name.data(), size);
  *length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
  return address;
}

// Anyone may take a name in the abstract namespace.
bool SameUser(int fd) {
  ucred peer{};
  socklen_t length = sizeof(peer);
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
         peer.uid == getuid();
}

bool WaitReadable(int fd, Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - Clock::now());
  pollfd waiting{fd, POLLIN, 0};
  return left.count() > 0 &&
         poll(&waiting, 1, static_cast<int>(left.count())) > 0;
}

// The number that a process sends when it asks, or -1.
int Asker(const Socket& peer) {
  int32_t process = -1;
  const auto patience = Clock::now() + std::chrono::seconds(1);
  if (!SameUser(peer.fd()) || !WaitReadable(peer.fd(), patience) ||
      recv(peer.fd(), &process, sizeof(process), 0) != sizeof(process)) {
    return -1;
  }
  return process;
}

// Each process once: one that asks again is ahead, in the job's next program,
// and is left to find that one's process 0.
void Give(const Socket& listener, int processes, Clock::time_point deadline,
          const axonUniqueId& id) {
  std::set<int> given;
  while (static_cast<int>(given.size()) < processes - 1) {
    if (!WaitReadable(listener.fd(), deadline)) {
      throw Failure("only " + std::to_string(given.size()) + " of " +
                    std::to_string(processes - 1) +
                    " other processes asked for the unique id in time; set "
                    "AXON_COMM_ID=host:port on all ranks if they do not run "
                    "on this machine");
    }
    const Socket peer(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC));
    if (peer.fd() < 0) continue;
    const int process = Asker(peer);
    if (process < 1 || process >= processes || given.count(process) > 0) {
      continue;
    }
    if (send(peer.fd(), &id, sizeof(id), MSG_NOSIGNAL) == sizeof(id)) {
      given.insert(process);
    }
  }
}

bool Take(const sockaddr_un& address, socklen_t length, int32_t process,
          Clock::time_point deadline, axonUniqueId* id) {
  const Socket peer(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (peer.fd() < 0) Fail("socket");
  return connect(peer.fd(), reinterpret_cast<const sockaddr*>(&address),
                 length) == 0 &&
         SameUser(peer.fd()) &&
         send(peer.fd(), &process, sizeof(process), MSG_NOSIGNAL) ==
             sizeof(process) &&
         WaitReadable(peer.fd(), deadline) &&
         recv(peer.fd(), id, sizeof(*id), MSG_WAITALL) == sizeof(*id);
}

}  // namespace

std::string JobKey() {
  for (const char* name : {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}) {
    if (const char* value = std::getenv(name)) return value;
  }
  const char* job = std::getenv("SLURM_JOB_ID");
  const char* step = std::getenv("SLURM_STEP_ID");
  if (job && step) return std::string("slurm-") + job + "." + step;
  const pid_t starter = Starter();
  return "process-" + std::to_string(starter) + "-" +
         ReadProcess(starter).start;
}

void ShareUniqueId(const std::string& job_key, int process, int processes,
                   int seconds, axonUniqueId* id) {
  const Clock::time_point deadline =
      Clock::now() + std::chrono::seconds(seconds);
  socklen_t length;
  const sockaddr_un address = Address(job_key, &length);
  if (process == 0) {
    const Socket listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (listener.fd() < 0) Fail("socket");
    if (bind(listener.fd(), reinterpret_cast<const sockaddr*>(&address),
             length) != 0) {
      Fail("bind to the abstract socket of job " + job_key);
    }
    if (listen(listener.fd(), processes) != 0) Fail("listen");
    Give(listener, processes, deadline, *id);
    return;
  }
  while (!Take(address, length, process, deadline, id)) {
    if (Clock::now() >= deadline) {
      throw Failure("process " + std::to_string(process) +
                    " found no process 0 of job " + job_key +
                    " on this machine in time; set AXON_COMM_ID=host:port on "
                    "all ranks to meet there");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace axon::perf
