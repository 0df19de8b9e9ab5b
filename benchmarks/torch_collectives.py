# SPDX-License-Identifier: Apache-2.0
"""Times collectives of torch.distributed over several backends, in turn.

Starts its own processes on this machine. Each row is one collective at one
size; the backends take turns in blocks of calls, so that whatever else the
machine does meets all of them. Between timed calls the input is rewritten. A
wrong result ends the run. The time of a row is the median over its blocks of
the slowest rank's mean.

    python torch_collectives.py --backends neuron,gloo --json times.json
"""

import argparse
import datetime
import json
import os
import socket
import statistics
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

SIZES = [8, 64, 1 << 10, 8 << 10, 64 << 10, 512 << 10, 4 << 20, 32 << 20]
TIMEOUT = datetime.timedelta(seconds=60)


def calls_in_a_block(size):
    return max(3, min(200, (8 << 20) // (size + (16 << 10))))


class Call:
    """One collective at one size: buffers, the call, the right answer."""

    def __init__(self, name, size):
        rank, ranks = dist.get_rank(), dist.get_world_size()
        count = max(ranks, size // 4 // ranks * ranks)
        part = count // ranks
        total = ranks * (ranks + 1) / 2
        if name == "all_reduce":
            self.input = self.output = torch.empty(count)
            self.run = lambda group: dist.all_reduce(self.output, group=group)
            self.expected = torch.full((count,), total)
        elif name == "reduce_scatter":
            self.input, self.output = torch.empty(count), torch.empty(part)
            self.run = lambda group: dist.reduce_scatter_single(
                self.output, self.input, group=group)
            self.expected = torch.full((part,), total)
        else:
            self.input, self.output = torch.empty(part), torch.empty(count)
            self.run = lambda group: dist.all_gather_single(
                self.output, self.input, group=group)
            self.expected = torch.arange(1.0, ranks + 1).repeat_interleave(part)
        self.fill = rank + 1.0

    def block_seconds(self, group, calls):
        """The slowest rank's mean time of `calls` calls."""
        seconds = 0.0
        dist.barrier(group)
        for _ in range(calls):
            self.input.fill_(self.fill)
            start = time.perf_counter()
            self.run(group)
            seconds += time.perf_counter() - start
        if not torch.equal(self.output, self.expected):
            raise RuntimeError(f"rank {dist.get_rank()}: wrong result")
        slowest = torch.tensor([seconds / calls])
        dist.all_reduce(slowest, dist.ReduceOp.MAX, group=group)
        return slowest.item()


def measure(rank, flags, environment):
    os.environ.update(environment, RANK=str(rank), LOCAL_RANK=str(rank))
    torch.set_num_threads(1)
    names = flags.backends.split(",")
    dist.init_process_group(names[0], timeout=TIMEOUT)
    groups = [dist.group.WORLD] + [
        dist.new_group(backend=name, timeout=TIMEOUT) for name in names[1:]]
    rows = []
    for collective in ("all_reduce", "all_gather", "reduce_scatter"):
        for size in SIZES:
            call, calls = Call(collective, size), calls_in_a_block(size)
            times = [[call.block_seconds(group, calls) for group in groups]
                     for _ in range(flags.blocks + 1)][1:]  # one warms up
            usec = {name: 1e6 * statistics.median(column)
                    for name, column in zip(names, zip(*times))}
            rows.append({"collective": collective, "size": size, "usec": usec})
            if rank == 0:
                print(f"{collective:15}{size:>10} B", *(
                    f"{name} {value:10.1f} us" for name, value in usec.items()),
                    flush=True)
    if rank == 0 and flags.json:
        with open(flags.json, "w", encoding="utf-8") as file:
            json.dump({"torch": torch.__version__, "ranks": flags.ranks,
                       "rows": rows}, file, indent=1)
    dist.barrier()
    groups.clear()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backends", default="neuron,gloo")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--blocks", type=int, default=7,
                        help="blocks of calls that a time is the median of")
    parser.add_argument("--json", help="where to write the times")
    flags = parser.parse_args()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    mp.spawn(measure, (flags, {"MASTER_ADDR": "127.0.0.1",
                               "MASTER_PORT": str(port),
                               "WORLD_SIZE": str(flags.ranks)}),
             nprocs=flags.ranks)


if __name__ == "__main__":
    main()
