# SPDX-License-Identifier: Apache-2.0
"""Runs the programs in turn, each as one burst on an idle machine.

A burst is labelled by the time of a cache line between the two processors
before and after it, since a virtual machine may move between processors that
share a cache ("near") and that do not ("far") at any time. The bursts of a
round and number of ranks are compared with each other: those at another
placement than most of them are run again.
"""

import collections
import itertools
import os
import signal
import socket
import subprocess
import tempfile
import time

IDLE_SHARE = 0.85
IDLE_SECONDS = 15
PLACEMENTS = ("near", "far")
# Times that the bursts that lie apart from most of their round are run again.
AGAIN = 3
Burst = collections.namedtuple("Burst", "entry rows label error")


def label(nanoseconds):
    if nanoseconds < 80:
        return "near"
    return "far" if nanoseconds > 120 else "mixed"


def processor_times():
    with open("/proc/stat", encoding="ascii") as file:
        times = [int(word) for word in file.readline().split()[1:9]]
    return sum(times), times[3] + times[4]


class Patience:
    """How long all bursts together may wait for an idle machine."""

    def __init__(self, seconds):
        self.seconds = seconds

    def await_idle(self):
        """Whether the machine became idle within some 15 s."""
        begin = time.monotonic()
        end = begin + min(IDLE_SECONDS, self.seconds)
        idle = looks_idle()
        while not idle and time.monotonic() < end:
            idle = looks_idle()
        self.seconds = max(0, self.seconds - (time.monotonic() - begin))
        return idle


def looks_idle():
    before = processor_times()
    time.sleep(0.5)
    after = processor_times()
    return after[1] - before[1] >= IDLE_SHARE * (after[0] - before[0])


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def line_nanoseconds(folder):
    return float(subprocess.run([folder / "line"], capture_output=True,
                                text=True, timeout=60, check=True).stdout)


def start(entry, directory, output, processes):
    """Adds the processes of one burst; their output is kept."""
    environment = dict(os.environ, OMP_NUM_THREADS="1", **dict(
        entry.environment))
    port = free_port()
    for rank, words in enumerate(entry.commands):
        if entry.axon:
            environment.update(AXON_COMM_ID=f"127.0.0.1:{port}",
                               AXON_RANK=str(rank), AXON_SIZE=str(entry.ranks))
        processes.append(subprocess.Popen(
            [word.replace("{directory}", directory) for word in words],
            env=environment, stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.PIPE, text=True, start_new_session=True))


def end(processes):
    """Ends what still runs of them, with all that they have started."""
    for process in processes:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()


def burst(folder, entry, patience):
    """One run of a program. A row is what the program printed: name,
    collective, type, ranks, bytes, median us, tenth us, calls."""
    quiet = patience.await_idle()
    before = label(line_nanoseconds(folder))
    error = ""
    with (tempfile.TemporaryDirectory() as directory,
          tempfile.TemporaryFile("w+") as output):
        processes = []
        deadline = time.monotonic() + entry.limit
        try:
            start(entry, directory, output, processes)
            for process in processes:
                _, text = process.communicate(
                    timeout=max(0.1, deadline - time.monotonic()))
                if process.returncode and not error:
                    error = (text.strip() or
                             f"ended with {process.returncode}")[-500:]
        except FileNotFoundError as missing:
            error = f"{missing.filename} is missing"
        except subprocess.TimeoutExpired:
            error = f"did not end within {entry.limit} s"
        finally:
            end(processes)
        output.seek(0)
        rows = [line.strip().split(",") for line in output]
    after = label(line_nanoseconds(folder))
    where = before if before == after else "mixed"
    if not quiet:
        where = "busy"
    return Burst(entry, [row for row in rows if len(row) == 8], where, error)


def placement(bursts):
    """Where most of the bursts ran, of equally many the last; None: nowhere."""
    labels = [one.label for one in bursts
              if not one.error and one.label in PLACEMENTS]
    return max(reversed(labels), key=labels.count, default=None)


def once(entries, run, late):
    """The bursts of `entries`, each by run(entry), until late()."""
    return [run(entry) for entry in itertools.takewhile(
        lambda _: not late(), entries)]


def alike(entries, run, late):
    """The bursts of `entries`, run again as far as that brings most of them to
    one placement; what does not come there is labelled as lying apart."""
    bursts = once(entries, run, late)
    where = placement(bursts)
    if where is None:
        return bursts
    for _ in range(AGAIN):
        for i, one in enumerate(bursts):
            if one.error or one.label == where or late():
                continue
            again = run(one.entry)
            if not again.error:
                bursts[i] = again
    return [one if one.label == where or one.label not in PLACEMENTS else
            one._replace(label=f"{one.label} apart") for one in bursts]


def one_round(entries, run, late):
    """The bursts of one round; fewer than entries if late() ended it."""
    return [one for _, group in itertools.groupby(
        entries, lambda entry: entry.ranks)
            for one in alike(list(group), run, late)]
