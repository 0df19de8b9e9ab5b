# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training on handwritten digits, checked and timed.

Two processes train a small convolutional network with DistributedDataParallel
over Axon, and a twin of it over Gloo, step by step in turn. Rank 0 then trains
the same network alone on the joint batches: all three must end with the same
parameters, up to rounding. Ends with a status other than 0 if they do not.

    python digits_ddp.py                       # starts its own two processes
    torchrun --nproc-per-node 2 digits_ddp.py  # the same under torchrun
"""

import argparse
import datetime
import gc
import os
import socket
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel

BATCH = 64
TRAINED_ON = 1408  # images; the other 389 of 1797 are for the test
TOLERANCE = 1e-4
TIMEOUT = datetime.timedelta(seconds=60)


def parse_flags():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default="neuron")
    parser.add_argument("--rival", default="gloo", help="trained in turn")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=2, help="divides 64")
    flags = parser.parse_args()
    if flags.ranks < 1 or BATCH % flags.ranks:
        parser.error(f"--ranks {flags.ranks} does not divide {BATCH}")
    return flags


def load():
    digits = load_digits()
    order = torch.randperm(
        len(digits.images), generator=torch.Generator().manual_seed(0))
    images = torch.tensor(digits.images, dtype=torch.float32)[order] / 16
    labels = torch.tensor(digits.target)[order]
    return images.unsqueeze(1), labels


def make_network():
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.GELU(),
        nn.Conv2d(32, 64, 3, padding=1), nn.GELU(), nn.AvgPool2d(2),
        nn.Flatten(), nn.Linear(64 * 4 * 4, 128), nn.GELU(),
        nn.Linear(128, 10))


def make_optimizer(network):
    return torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)


def batches(epoch):
    """The joint batches of an epoch, as indices."""
    generator = torch.Generator().manual_seed(100 + epoch)
    return torch.randperm(TRAINED_ON, generator=generator).split(BATCH)


def step(network, optimizer, images, labels):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(network(images), labels)
    loss.backward()
    optimizer.step()
    return loss.detach()


class Learner:
    """A network that is trained over one process group, and its step times."""

    def __init__(self, group):
        self.group = group
        self.network = DistributedDataParallel(
            make_network(), process_group=group)
        self.optimizer = make_optimizer(self.network)
        self.seconds = []

    def step(self, images, labels):
        dist.barrier(self.group)
        start = time.perf_counter()
        loss = step(self.network, self.optimizer, images, labels)
        self.seconds.append(time.perf_counter() - start)
        return loss

    def all_reduce_seconds(self, rounds=50):
        """The median time to sum as many numbers as there are gradients."""
        count = sum(p.numel() for p in self.network.parameters())
        data, seconds = torch.zeros(count), []
        for _ in range(rounds):
            dist.barrier(self.group)
            start = time.perf_counter()
            dist.all_reduce(data, group=self.group)
            seconds.append(time.perf_counter() - start)
        return statistics.median(seconds)


def train_alone(images, labels, epochs):
    network = make_network()
    optimizer = make_optimizer(network)
    for epoch in range(epochs):
        for batch in batches(epoch):
            step(network, optimizer, images[batch], labels[batch])
    return network


def train_together(learners, images, labels, epochs):
    """Trains all learners on this rank's share of each batch, in turn."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for epoch in range(epochs):
        losses = []
        for batch in batches(epoch):
            mine = batch[rank::ranks]
            losses.append([learner.step(images[mine], labels[mine])
                           for learner in learners])
        loss = torch.tensor(losses).mean(dim=0)[0]
        dist.all_reduce(loss, group=learners[0].group)
        if rank == 0:
            print(f"epoch {epoch + 1}/{epochs}  loss {loss / ranks:.4f}",
                  flush=True)


def largest_difference(a, b):
    return max((p - q).abs().max().item()
               for p, q in zip(a.parameters(), b.parameters(), strict=True))


def report(names, learners, images, labels, epochs, reduce_seconds):
    """What rank 0 prints; returns whether all parameters agree."""
    with torch.no_grad():
        guesses = learners[0].network(images[TRAINED_ON:]).argmax(dim=1)
    accuracy = (guesses == labels[TRAINED_ON:]).float().mean().item()
    print(f"test accuracy {accuracy:.1%}")
    alone = train_alone(images, labels, epochs)
    agree = accuracy > 0.9
    for name, learner in zip(names, learners):
        difference = largest_difference(learner.network.module, alone)
        agree = agree and difference < TOLERANCE
        print(f"{name}: parameters differ from training in one process by at "
              f"most {difference:.1e} (allowed {TOLERANCE:.0e})")
    steps = [statistics.median(learner.seconds[5:]) for learner in learners]
    for name, in_step, in_reduce in zip(names, steps, reduce_seconds):
        print(f"{name}: {1e3 * in_step:.2f} ms a step, "
              f"{1e6 * in_reduce:.0f} us to all-reduce the gradients alone")
    if len(steps) > 1:
        print(f"{names[0]} against {names[1]}: step "
              f"{steps[1] / steps[0]:.2f}x, all-reduce "
              f"{reduce_seconds[1] / reduce_seconds[0]:.2f}x as fast")
    print("ok" if agree else "FAILED: see above", flush=True)
    return agree


def train_and_compare(names, groups, epochs):
    images, labels = load()
    learners = [Learner(group) for group in groups]
    train_together(learners, images, labels, epochs)
    reduce_seconds = [learner.all_reduce_seconds() for learner in learners]
    return dist.get_rank() > 0 or report(names, learners, images, labels,
                                         epochs, reduce_seconds)


def run(rank, flags, environment):
    """One process of the job."""
    os.environ.update(environment, RANK=str(rank), LOCAL_RANK=str(rank))
    torch.set_num_threads(1)
    dist.init_process_group(flags.backend, timeout=TIMEOUT)
    names, groups = [flags.backend], [dist.group.WORLD]
    if flags.rival not in ("", flags.backend):
        names.append(flags.rival)
        groups.append(dist.new_group(backend=flags.rival, timeout=TIMEOUT))
    good = train_and_compare(names, groups, flags.epochs)
    dist.barrier()
    groups.clear()
    gc.collect()  # DDP sits in reference cycles and keeps its group's threads
    dist.destroy_process_group()
    if not good:
        sys.exit(1)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def main():
    flags = parse_flags()
    if "RANK" in os.environ:  # started by torchrun
        run(int(os.environ["RANK"]), flags, {})
        return
    environment = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()),
                   "WORLD_SIZE": str(flags.ranks)}
    mp.spawn(run, (flags, environment), nprocs=flags.ranks)


if __name__ == "__main__":
    main()
