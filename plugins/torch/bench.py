#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times torch.distributed over Axon next to Gloo, call by call in turn.

Two processes, one thread each, pinned to a CPU of their own, hold a group of
every backend and time the backends alternately, so that what the machine does
meanwhile meets all of them. From 4 KiB up inputs are rewritten and outputs read
between calls, untimed. Prints medians in microseconds and their ratios.

    python bench.py                            # 8 B to 64 MiB
    python bench.py --max 1M --json times.json
"""

import argparse
import datetime
import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

TOUCH = 4096  # bytes
COLLECTIVES = ("all_reduce", "reduce_scatter_tensor", "all_gather_into_tensor",
               "all_to_all_single")
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def size(text):
    if text[-1:].upper() in UNITS:
        return int(text[:-1]) * UNITS[text[-1].upper()]
    return int(text)


def named(count):
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= factor:
            return f"{count // factor} {unit}"
    return f"{count} B"


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backends", default="axon,gloo",
                        help="the first is compared with the others")
    parser.add_argument("--collectives", default=",".join(COLLECTIVES))
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--min", type=size, default=8, metavar="BYTES")
    parser.add_argument("--max", type=size, default=64 << 20, metavar="BYTES")
    parser.add_argument("--step", type=int, default=8, help="factor")
    parser.add_argument("--seconds", type=float, default=0.5,
                        help="at least this much time for each number")
    parser.add_argument("--json", metavar="FILE", help="also write all medians")
    return parser.parse_args()


def sizes(flags):
    """From --min by factors of --step; --max in any case."""
    count = flags.min
    while count < flags.max:
        yield count
        count *= flags.step
    yield flags.max


def make_call(name, group, count, dtype, world):
    """(call, input, output); `count` is the larger side's bytes."""
    elements = max(world, count // dtype.itemsize // world * world)
    part = elements // world
    x = torch.ones(part if name == "all_gather_into_tensor" else elements,
                   dtype=dtype)
    if name == "all_reduce":
        return lambda: dist.all_reduce(x, group=group), x, x
    y = torch.zeros(part if name == "reduce_scatter_tensor" else elements,
                    dtype=dtype)
    if name == "all_gather_into_tensor":
        gather = getattr(dist, "all_gather_single", dist.all_gather_into_tensor)
        return lambda: gather(y, x, group=group), x, y
    if name == "reduce_scatter_tensor":
        scatter = getattr(dist, "reduce_scatter_single",
                          dist.reduce_scatter_tensor)
        return lambda: scatter(y, x, group=group), x, y
    return lambda: dist.all_to_all_single(y, x, group=group), x, y


def timed(call, source, result, count):
    if count >= TOUCH:
        source.fill_(1)
        result.sum()
    began = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - began) / 1000


def measure(flags, groups, name, count):
    """The median of each backend, the same number of calls for all."""
    dtype = getattr(torch, flags.dtype)
    calls = {b: make_call(name, g, count, dtype, flags.ranks)
             for b, g in groups.items()}
    samples = {b: [] for b in calls}
    slowest = max(timed(*c, count) for c in calls.values() for _ in range(3))
    rounds = torch.tensor([flags.seconds * 1e6 / len(calls) / slowest])
    dist.all_reduce(rounds, dist.ReduceOp.MAX)
    burst = 10 if count < TOUCH else 1  # calls in a row, as programs make them
    for _ in range(max(5, min(2000, int(rounds[0]))) // burst + 1):
        for backend, call in calls.items():
            timed(*call, count)  # after the other backend's: not counted
            samples[backend] += [timed(*call, count) for _ in range(burst)]
    medians = torch.tensor([statistics.median(s) for s in samples.values()],
                           dtype=torch.float64)
    dist.all_reduce(medians, dist.ReduceOp.MAX)  # the slower rank counts
    return dict(zip(calls, medians.tolist()))


def report(flags, rows):
    backends = flags.backends.split(",")
    ours, rivals = backends[0], backends[1:]
    print(f"{flags.ranks} ranks, {flags.dtype}, torch {torch.__version__}; "
          "median microseconds\n")
    head = ["collective", "size"] + backends + [f"{r} / {ours}" for r in rivals]
    print("| " + " | ".join(head) + " |")
    print("| --- " + "| --: " * (len(head) - 1) + "|")
    for row in rows:
        cells = [row["collective"], named(row["bytes"])]
        cells += [f"{row[b]:.1f}" for b in backends]
        cells += [f"{row[r] / row[ours]:.1f}" for r in rivals]
        print("| " + " | ".join(cells) + " |", flush=True)


def rank_main(rank, flags, path):
    torch.set_num_threads(1)
    cpus = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cpus[rank % len(cpus)]})
    names = flags.backends.split(",")
    limit = datetime.timedelta(seconds=120)
    dist.init_process_group(names[0], init_method=f"file://{path}", rank=rank,
                            world_size=flags.ranks, timeout=limit)
    groups = {name: dist.new_group(backend=name, timeout=limit)
              for name in names}
    rows = []
    for name in flags.collectives.split(","):
        for count in sizes(flags):
            rows.append({"collective": name, "bytes": count,
                         **measure(flags, groups, name, count)})
    if rank == 0:
        report(flags, rows)
        if flags.json:
            with open(flags.json, "w", encoding="utf-8") as out:
                json.dump({"ranks": flags.ranks, "dtype": flags.dtype,
                           "torch": torch.__version__, "rows": rows}, out,
                          indent=1)
    dist.destroy_process_group()


def main():
    flags = parse()
    unknown = set(flags.collectives.split(",")) - set(COLLECTIVES)
    if unknown:
        sys.exit(f"unknown collective {', '.join(unknown)}; "
                 f"there are {', '.join(COLLECTIVES)}")
    path = f"/tmp/axon-bench-{os.getpid()}"
    try:
        mp.spawn(rank_main, (flags, path), flags.ranks)
    finally:
        if os.path.exists(path):
            os.unlink(path)


if __name__ == "__main__":
    main()
