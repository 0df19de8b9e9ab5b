# SPDX-License-Identifier: Apache-2.0
"""Times collectives of torch.distributed over several backends, in turn.

Starts its own processes on this machine. Each row is one collective at one
size; the backends take turns in blocks of calls, so that whatever else the
machine does meets all of them. Between timed calls the input is rewritten. A
wrong result ends the run. The time of a row is the median over its blocks of
the slowest rank's mean.

    python torch_collectives.py --backends neuron,gloo --json times.json

Backends are those of torch.distributed, `fake` (PyTorch's, which does nothing)
and `neuron-mapped`: neuron on tensors made under torch_axon.use_shared_memory.
"""

import argparse
import contextlib
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
KINDS = (("all_reduce", torch.float32), ("all_gather", torch.float32),
         ("reduce_scatter", torch.float32), ("all_reduce", torch.bfloat16))
TIMEOUT = datetime.timedelta(seconds=60)


MAPPED, FAKE = "neuron-mapped", "fake"


def calls_in_a_block(size, most):
    return max(3, min(most, (8 << 20) // (size + (16 << 10))))


def left_out(names):
    """{backend: why it cannot be measured}."""
    if MAPPED in names:
        import torch_axon  # pylint: disable=import-outside-toplevel
        if not hasattr(torch_axon, "use_shared_memory"):
            return {MAPPED: "torch_axon has no use_shared_memory"}
    return {}


def memory_for(name):
    """What the tensors of a backend are made under."""
    if name != MAPPED:
        return contextlib.nullcontext()
    import torch_axon  # pylint: disable=import-outside-toplevel
    return torch_axon.use_shared_memory()


def group_of(name, groups):
    if name == MAPPED and "neuron" in groups:
        return groups["neuron"]
    if name == FAKE:  # registers the backend
        import torch.testing._internal.distributed.fake_pg  # noqa: F401
    return dist.new_group(backend=name.removesuffix("-mapped"),
                          timeout=TIMEOUT)


class Call:
    """One collective at one size: buffers, the call, the right answer."""

    def __init__(self, name, size, kind=torch.float32):
        rank, ranks = dist.get_rank(), dist.get_world_size()
        count = max(ranks, size // kind.itemsize // ranks * ranks)
        part = count // ranks
        total = ranks * (ranks + 1) / 2
        if name == "all_reduce":
            self.input = self.output = torch.empty(count, dtype=kind)
            self.run = lambda group: dist.all_reduce(self.output, group=group)
            self.expected = torch.full((count,), total, dtype=kind)
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

    def block_seconds(self, group, calls, checked=True):
        """The slowest rank's mean time of `calls` calls."""
        seconds = 0.0
        dist.barrier()
        dist.barrier(group)
        for _ in range(calls):
            self.input.fill_(self.fill)
            start = time.perf_counter()
            self.run(group)
            seconds += time.perf_counter() - start
        if checked and not torch.equal(self.output, self.expected):
            raise RuntimeError(f"rank {dist.get_rank()}: wrong result")
        slowest = torch.tensor([seconds / calls])
        dist.all_reduce(slowest, dist.ReduceOp.MAX)
        return slowest.item()


def row_usec(collective, size, kind, groups, flags):
    """{backend: the median of its blocks}; the backends take turns."""
    calls = {}
    for name in groups:
        with memory_for(name):
            calls[name] = Call(collective, size, kind)
    number = calls_in_a_block(size, flags.calls)
    times = [[calls[name].block_seconds(group, number, name != FAKE)
              for name, group in groups.items()]
             for _ in range(flags.blocks + 1)][1:]  # one warms up
    return {name: 1e6 * statistics.median(column)
            for name, column in zip(groups, zip(*times))}


def measure(rank, flags, environment):
    os.environ.update(environment, RANK=str(rank), LOCAL_RANK=str(rank))
    torch.set_num_threads(1)
    names = flags.backends.split(",")
    missing = left_out(names)
    names = [name for name in names if name not in missing]
    dist.init_process_group(names[0], timeout=TIMEOUT)
    groups = {names[0]: dist.group.WORLD}
    for name in names[1:]:
        groups[name] = group_of(name, groups)
    rows = []
    for collective, kind in KINDS if flags.bfloat16 else KINDS[:-1]:
        for size in map(int, flags.sizes.split(",")):
            usec = row_usec(collective, size, kind, groups, flags)
            text = str(kind).removeprefix("torch.")
            rows.append({"collective": collective, "type": text, "size": size,
                         "usec": usec})
            if rank == 0:
                print(f"{collective:15}{text:9}{size:>10} B", *(
                    f"{name} {value:10.1f} us" for name, value in usec.items()),
                    flush=True)
    if rank == 0 and flags.json:
        with open(flags.json, "w", encoding="utf-8") as file:
            json.dump({"torch": torch.__version__, "ranks": flags.ranks,
                       "left_out": missing, "rows": rows}, file, indent=1)
    dist.barrier()
    groups.clear()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backends", default="neuron,gloo")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--blocks", type=int, default=7,
                        help="blocks of calls that a time is the median of")
    parser.add_argument("--calls", type=int, default=200,
                        help="most calls of a block")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--bfloat16", action="store_true",
                        help="an all_reduce of bfloat16 as well")
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
