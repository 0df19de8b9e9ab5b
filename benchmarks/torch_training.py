# SPDX-License-Identifier: Apache-2.0
"""Times training steps of a small transformer over several backends, in turn.

Starts its own processes on this machine. DDP and FSDP2 (`fully_shard`) train
the same network on each backend; the backends take turns step by step, so that
whatever else the machine does meets all of them. `neuron-mapped` is neuron with
large tensors in shared memory (torch_axon.use_shared_memory). `alone` trains
without communication, which shows what the calls cost. The time of a row is the
median over its steps of the slowest rank. All must end with the same loss.

    python torch_training.py --backends neuron,neuron-mapped,gloo
"""

import argparse
import json
import os
import socket
import statistics
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from torch_collectives import TIMEOUT, memory_for


class Network(nn.Module):
    def __init__(self, flags):
        super().__init__()
        torch.manual_seed(1)
        self.embed = nn.Embedding(flags.words, flags.width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                flags.width, 4, 4 * flags.width, dropout=0.0, batch_first=True)
            for _ in range(flags.layers))
        self.head = nn.Linear(flags.width, flags.words)

    def forward(self, x):
        x = self.embed(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x.flatten(0, 1))


class Training:
    """One network on one backend; `kind` is "ddp", "fsdp2" or "alone"."""

    def __init__(self, flags, kind, name, group):
        self.memory = lambda: memory_for(name)
        self.step_seconds, self.losses = [], []
        with self.memory():
            model = Network(flags)
            if kind == "ddp":
                model = DistributedDataParallel(
                    model, process_group=group, gradient_as_bucket_view=True)
            elif kind == "fsdp2":
                mesh = DeviceMesh.from_group(group, "cpu")
                for part in (*model.layers, model):
                    fully_shard(part, mesh=mesh)
                    # Gloo has no average.
                    part.set_force_sum_reduction_for_comms(True)
            self.model = model
            self.optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step(self, words, wanted):
        with self.memory():
            start = time.perf_counter()
            self.optimizer.zero_grad()
            loss = nn.functional.cross_entropy(
                self.model(words), wanted.flatten())
            loss.backward()
            self.optimizer.step()
            self.step_seconds.append(time.perf_counter() - start)
        self.losses.append(loss.item())


def slowest(seconds):
    times = torch.tensor(seconds, dtype=torch.float64)
    dist.all_reduce(times, dist.ReduceOp.MAX)
    return 1e3 * statistics.median(times.tolist())


def check(trainings):
    """Sums in another order differ in the last bits only."""
    losses = torch.tensor([t.losses[-1] for t in trainings])
    if not torch.allclose(losses, losses[0], rtol=1e-3):
        raise RuntimeError(f"losses differ: {losses.tolist()}")


def measure(rank, flags, environment):
    os.environ.update(environment, RANK=str(rank), LOCAL_RANK=str(rank))
    torch.set_num_threads(1)
    names = flags.backends.split(",")
    backends = [name.removesuffix("-mapped") for name in names]
    dist.init_process_group(backends[0], timeout=TIMEOUT)
    groups = {name: dist.new_group(backend=name, timeout=TIMEOUT)
              for name in dict.fromkeys(backends)}
    generator = torch.Generator().manual_seed(rank)
    words, wanted = torch.randint(
        0, flags.words, (2, flags.batch, 64), generator=generator)
    rows = []
    for kind in ("ddp", "fsdp2"):
        trainings = [Training(flags, kind, name, groups[backend])
                     for name, backend in zip(names, backends)]
        alone = Training(flags, "alone", "", None)
        for _ in range(flags.steps + 3):
            for training in (*trainings, alone):
                dist.barrier()
                training.step(words, wanted)
        check(trainings)
        times = {name: slowest(t.step_seconds[3:])
                 for name, t in zip((*names, "alone"), (*trainings, alone))}
        size = sum(p.numel() for p in alone.model.parameters())
        rows.append({"kind": kind, "parameters": size, "ms": times})
        if rank == 0:
            print(f"{kind:6} {size:>10} parameters ", *(
                f"{name} {value:8.1f} ms" for name, value in times.items()),
                flush=True)
    if rank == 0 and flags.json:
        with open(flags.json, "w", encoding="utf-8") as file:
            json.dump({"torch": torch.__version__, "ranks": flags.ranks,
                       "rows": rows}, file, indent=1)
    dist.barrier()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backends", default="neuron,neuron-mapped,gloo")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--words", type=int, default=8000)
    parser.add_argument("--batch", type=int, default=2,
                        help="sequences of 64 words a rank")
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
