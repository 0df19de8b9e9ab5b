# SPDX-License-Identifier: Apache-2.0
"""Measures Axon on this machine and writes the result as Markdown.

Runs the perf programs and torch_collectives.py in rounds, one after the other,
so that a slow minute of the machine meets all of them, takes the median over
the rounds, and states the machine beside the numbers. Ratios compare; times
belong to the machine.

    python benchmarks/report.py --bin build/release/bin \
        --output docs/benchmarks.md
"""

import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

PROGRAMS = ("all_reduce", "reduce_scatter", "all_gather", "alltoall",
            "broadcast")
# Flags of the perf programs: small sizes need more calls than large ones.
SWEEPS = (("-b", "8", "-e", "32K", "-f", "8", "-n", "2000", "-w", "200"),
          ("-b", "256K", "-e", "64M", "-f", "16", "-n", "20", "-w", "3"))
BUFFERS = ("private", "mapped")
HERE = pathlib.Path(__file__).resolve().parent


def run(command, seconds):
    done = subprocess.run([str(word) for word in command], timeout=seconds,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} ended with "
                 f"{done.returncode}:\n{done.stdout}")


def perf_round(folder, ranks, json_file):
    """{(program, buffers, size): (usec, bus bandwidth)} of one round."""
    found = {}
    for program in PROGRAMS:
        for sweep in SWEEPS:
            for buffers in BUFFERS:
                run([folder / f"{program}_perf", "--ranks", ranks, *sweep,
                     "--buffers", buffers, "--touch", "-J", json_file], 300)
                for row in json.loads(json_file.read_text())["results"]:
                    timing = row["out_of_place"]
                    found[program, buffers, row["size"]] = (
                        timing["time"], timing["bus_bw"])
    return found


def torch_round(ranks, json_file):
    """{(collective, size, backend): usec} of one round."""
    run([sys.executable, HERE / "torch_collectives.py", "--ranks", ranks,
         "--backends", "neuron,gloo", "--json", json_file], 600)
    return {(row["collective"], row["size"], name): usec
            for row in json.loads(json_file.read_text())["rows"]
            for name, usec in row["usec"].items()}


def medians(rounds):
    """The median of each key's values; tuples by their first element."""
    return {key: sorted(found[key] for found in rounds)[len(rounds) // 2]
            for key in rounds[0]}


def size_text(size):
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size} {unit}"
        size //= 1024
    return f"{size} GiB"


def usec_text(usec):
    return f"{usec:,.0f}" if usec >= 100 else f"{usec:.3g}"


def table(head, rows):
    """A Markdown table: text to the left, numbers to the right."""
    lines = [head, ["---"] + ["--:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def perf_table(times, program):
    sizes = sorted({size for name, _, size in times if name == program})
    return table(
        ["size", "private µs", "GB/s", "mapped µs", "GB/s"],
        [[size_text(size)] + [
            text for buffers in BUFFERS
            for usec, bandwidth in [times[program, buffers, size]]
            for text in (usec_text(usec), f"{bandwidth:.2f}")]
         for size in sizes])


def torch_table(times, collective):
    sizes = sorted({size for name, size, _ in times if name == collective})
    rows = []
    for size in sizes:
        ours, gloo = (times[collective, size, name]
                      for name in ("neuron", "gloo"))
        rows.append([size_text(size), usec_text(ours), usec_text(gloo),
                     f"{gloo / ours:.1f}"])
    return table(["size", "neuron µs", "gloo µs", "gloo / neuron"], rows)


def machine():
    cpu = platform.machine()
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
            break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (f"{cpu}, {len(os.sched_getaffinity(0))} CPUs to use, "
            f"{memory:.0f} GiB, Linux {platform.release()}")


def document(perf, torch_times, ranks, rounds, where):
    parts = [
        "# Benchmarks",
        "Written by `./dev bench`; do not edit.",
        f"{where}. {ranks} ranks, one process each; medians of {rounds} "
        "interleaved rounds. Inputs are rewritten and outputs read between "
        "calls. Times are of this machine: compare the ratios.",
        "Axon next to MPI libraries, oneCCL and Gloo is measured by "
        "`./dev compare`, which writes pages of its own.",
        "## Through the C API",
        "Out of place, float32. *Private* buffers are ordinary memory; *mapped* "
        "ones come from `axonMemAlloc`. GB/s is the bus bandwidth as "
        "nccl-tests defines it."]
    for program in PROGRAMS:
        parts += [f"### {program}", perf_table(perf, program)]
    parts += ["## Through torch.distributed",
              "CPU tensors, float32, blocking calls, Gloo in the same "
              "processes in turn. Above 1 in the last column Axon is faster."]
    for collective in dict.fromkeys(name for name, _, _ in torch_times):
        parts += [f"### torch {collective}",
                  torch_table(torch_times, collective)]
    return "\n\n".join(parts) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    flags = parser.parse_args()
    perf, torch_times = [], []
    with tempfile.TemporaryDirectory() as folder:
        json_file = pathlib.Path(folder, "times.json")
        for number in range(flags.rounds):
            print(f"round {number + 1} of {flags.rounds}", flush=True)
            perf.append(perf_round(flags.bin, flags.ranks, json_file))
            torch_times.append(torch_round(flags.ranks, json_file))
    flags.output.write_text(
        document(medians(perf), medians(torch_times), flags.ranks,
                 flags.rounds, machine()), encoding="utf-8")
    print(f"wrote {flags.output}")


if __name__ == "__main__":
    main()
