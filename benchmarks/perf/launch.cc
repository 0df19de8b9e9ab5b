// SPDX-License-Identifier: Apache-2.0
#include "perf/launch.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "perf/failure.h"
#include "perf/meet.h"

namespace axon::perf {

namespace {

constexpr int kMeetSeconds = 60;
// After one process has failed, the others get its error from the library.
constexpr int kGraceSeconds = 10;

std::optional<int> Number(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return std::nullopt;
  char* end;
  errno = 0;
  const long value = std::strtol(text, &end, 10);
  if (*end != '\0' || errno != 0 || value < 0 || value > 1 << 30) {
    throw Failure(std::string(variable) + "='" + text + "' is not a number");
  }
  return static_cast<int>(value);
}

struct Launcher {
  const char* rank;
  const char* size;
  const char* here;   // ranks on this machine; null: unknown
  const char* nodes;  // machines; null: unknown
};

// In the order in which axonCommInitEnv looks.
constexpr Launcher kLaunchers[] = {
    {"AXON_RANK", "AXON_SIZE", nullptr, nullptr},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_SIZE", nullptr},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", nullptr},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", nullptr, "SLURM_STEP_NUM_NODES"},
    {"RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", nullptr},
};

void RequireOneMachine(const Launcher& launcher, int size) {
  const int here = launcher.here ? Number(launcher.here).value_or(size) : size;
  const int nodes = launcher.nodes ? Number(launcher.nodes).value_or(1) : 1;
  if (here == size && nodes == 1) return;
  const char* variable = here == size ? launcher.nodes : launcher.here;
  throw Failure("the " + std::to_string(size) +
                " ranks are on several machines (" + variable + "=" +
                std::getenv(variable) +
                "): set AXON_COMM_ID=host:port, with rank 0's host and a free "
                "port there, on all ranks");
}

void MakeUniqueId(World* world) {
  Require(axonGetUniqueId(&world->id), nullptr, "axonGetUniqueId");
}

// The world that a launcher's variables describe; one process without any.
World LauncherWorld(const Options& options) {
  World world;
  for (const Launcher& launcher : kLaunchers) {
    const std::optional<int> rank = Number(launcher.rank);
    const std::optional<int> size = Number(launcher.size);
    if (!rank || !size) continue;
    world.process = *rank;
    world.processes = *size;
    world.from_environment =
        std::getenv("AXON_COMM_ID") != nullptr ||
        (std::getenv("MASTER_ADDR") && std::getenv("MASTER_PORT"));
    if (world.from_environment && options.threads > 1) {
      throw Failure(
          "-t above 1 needs --ranks, or a launcher on one machine "
          "without AXON_COMM_ID and MASTER_ADDR");
    }
    if (world.from_environment) return world;
    RequireOneMachine(launcher, *size);
    if (world.process == 0) MakeUniqueId(&world);
    ShareUniqueId(JobKey(), world.process, world.processes, kMeetSeconds,
                  &world.id);
    return world;
  }
  MakeUniqueId(&world);
  if (options.threads == 1) {
    std::fputs("# One rank. Use --ranks N, -t N or a launcher for more.\n",
               stderr);
  }
  return world;
}

// Rank 0's process makes the id and writes a copy for each of the others into
// one pipe. Reads of a pipe are whole, as its writes are; if rank 0 dies first,
// they see the end of the file.
void ShareByPipe(const int pipe_fds[2], World* world) {
  if (world->process == 0) {
    close(pipe_fds[0]);
    MakeUniqueId(world);
    for (int i = 1; i < world->processes; ++i) {
      if (write(pipe_fds[1], &world->id, sizeof(world->id)) !=
          sizeof(world->id)) {
        throw Failure(std::string("write to pipe: ") + std::strerror(errno));
      }
    }
    close(pipe_fds[1]);
    return;
  }
  close(pipe_fds[1]);
  if (read(pipe_fds[0], &world->id, sizeof(world->id)) != sizeof(world->id)) {
    throw Failure("rank 0 ended before it made a unique id");
  }
  close(pipe_fds[0]);
}

[[noreturn]] void RunChild(const Options& options,
                           const std::function<int(const World&)>& body,
                           const int pipe_fds[2], World world, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) std::_Exit(1);  // it died before the line above
  int code = 1;
  try {
    // Threads that the library starts inherit the place.
    if (world.pin && options.threads == 1) PinTo(world.process);
    ShareByPipe(pipe_fds, &world);
    code = body(world);
  } catch (const Failure& failure) {
    std::fprintf(stderr, "# process %d: %s\n", world.process, failure.what());
  }
  std::exit(code);
}

// "ended with code 1", "was ended by signal 11 (Segmentation fault)"
std::string Ending(int status) {
  if (WIFEXITED(status)) {
    return "ended with code " + std::to_string(WEXITSTATUS(status));
  }
  return "was ended by signal " + std::to_string(WTERMSIG(status)) + " (" +
         strsignal(WTERMSIG(status)) + ")";
}

// Waits for all children; ends those that outlive a failed one for long.
int Supervise(const std::vector<pid_t>& children) {
  sigset_t child_ended;
  sigemptyset(&child_ended);
  sigaddset(&child_ended, SIGCHLD);
  int code = 0;
  std::vector<pid_t> running = children;
  int grace_left = kGraceSeconds;
  while (!running.empty()) {
    int status;
    const pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid > 0) {
      std::erase(running, pid);
      if (status != 0 && code == 0) {
        code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
        for (size_t i = 0; i < children.size(); ++i) {
          if (children[i] != pid) continue;
          std::fprintf(stderr, "# process %zu %s\n", i, Ending(status).c_str());
        }
      }
      continue;
    }
    const timespec second{1, 0};
    if (sigtimedwait(&child_ended, nullptr, &second) >= 0) continue;
    if (code == 0 || --grace_left > 0) continue;
    for (const pid_t child : running) kill(child, SIGKILL);
  }
  return code;
}

int StartProcesses(const Options& options,
                   const std::function<int(const World&)>& body) {
  int pipe_fds[2];
  if (pipe(pipe_fds) != 0) {
    throw Failure(std::string("pipe: ") + std::strerror(errno));
  }
  sigset_t child_ended, before;
  sigemptyset(&child_ended);
  sigaddset(&child_ended, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child_ended, &before);
  const pid_t parent = getpid();
  std::vector<pid_t> children;
  for (int i = 0; i < options.ranks; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      sigprocmask(SIG_SETMASK, &before, nullptr);
      World world{.process = i, .processes = options.ranks};
      world.pin = options.pin;
      RunChild(options, body, pipe_fds, world, parent);
    }
    if (pid < 0) {
      const std::string reason = std::strerror(errno);
      for (const pid_t child : children) kill(child, SIGKILL);
      throw Failure("fork of process " + std::to_string(i) + ": " + reason);
    }
    children.push_back(pid);
  }
  close(pipe_fds[0]);
  close(pipe_fds[1]);
  return Supervise(children);
}

}  // namespace

int Launch(const Options& options,
           const std::function<int(const World&)>& body) {
  try {
    if (options.ranks > 0) return StartProcesses(options, body);
    return body(LauncherWorld(options));
  } catch (const Failure& failure) {
    std::fprintf(stderr, "# %s\n", failure.what());
    return 1;
  }
}

int PinTo(int i) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return -1;
  int skip = i % CPU_COUNT(&allowed);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || skip-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    return sched_setaffinity(0, sizeof(one), &one) == 0 ? cpu : -1;
  }
  return -1;
}

}  // namespace axon::perf
