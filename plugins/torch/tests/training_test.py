# SPDX-License-Identifier: Apache-2.0
"""Training on several ranks gives what one process gives on the joint batch."""

import copy

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

from harness import run

BATCH = 12  # divides by 1, 2, 3 and 4
STEPS = 5


def _network():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(20, 300), nn.GELU(), nn.Linear(300, 300),
                         nn.GELU(), nn.Linear(300, 4))


def _batches():
    generator = torch.Generator().manual_seed(4)
    return [(torch.randn(BATCH, 20, generator=generator),
             torch.randint(0, 4, (BATCH,), generator=generator))
            for _ in range(STEPS)]


def _mine(tensor, rank, world):
    return tensor.chunk(world)[rank]


def _step(model, optimizer, x, y):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()


def _alone(optimizer=torch.optim.SGD, lr=0.1):
    """Parameters and gradients after each step, in one process."""
    model = _network()
    opt = optimizer(model.parameters(), lr=lr)
    history = []
    for x, y in _batches():
        _step(model, opt, x, y)
        history.append([(p.detach().clone(), p.grad.clone())
                        for p in model.parameters()])
    return history


def _close(got, want):
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-6)


def _ddp(rank, world, options):
    model = _network()
    if rank != 0:  # DDP gives everybody rank 0's parameters
        for p in model.parameters():
            nn.init.zeros_(p)
    ddp = DistributedDataParallel(model, **options)
    opt = torch.optim.SGD(ddp.parameters(), lr=0.1)
    for (x, y), want in zip(_batches(), _alone()):
        _step(ddp, opt, _mine(x, rank, world), _mine(y, rank, world))
        for p, (value, gradient) in zip(model.parameters(), want):
            _close(p.grad, gradient)
            _close(p.detach(), value)
    for p in model.parameters():  # the same bits on all ranks
        everyone = [torch.empty_like(p) for _ in range(world)]
        dist.all_gather(everyone, p.detach())
        assert all(torch.equal(everyone[0], e) for e in everyone)


def _ddp_hooks(rank, world):
    for hook, state, bucket in [
            (default_hooks.allreduce_hook, None, 0.2),
            (default_hooks.fp16_compress_hook, None, 0.2),
            # Its callbacks make calls of their own: with more than one bucket
            # their order against the next bucket's would be left to chance.
            (powerSGD_hook.powerSGD_hook, powerSGD_hook.PowerSGDState(
                None, matrix_approximation_rank=4, start_powerSGD_iter=2), 25)]:
        ddp = DistributedDataParallel(_network(), bucket_cap_mb=bucket)
        ddp.register_comm_hook(state, hook)
        opt = torch.optim.SGD(ddp.parameters(), lr=0.1)
        for x, y in _batches():
            _step(ddp, opt, _mine(x, rank, world), _mine(y, rank, world))
        if hook is not powerSGD_hook.powerSGD_hook:
            for p, (value, _) in zip(ddp.parameters(), _alone()[-1]):
                torch.testing.assert_close(
                    p.detach(), value, rtol=1e-2, atol=1e-3)
        flat = torch.cat([p.detach().flatten() for p in ddp.parameters()])
        first = flat.clone()
        dist.broadcast(first, 0)
        assert torch.equal(flat, first)


def _ddp_unused(rank, world):
    """Ranks that use different parts of a network, and no_sync."""
    class Forked(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(5)
            self.left, self.right = nn.Linear(4, 1), nn.Linear(4, 1)

        def forward(self, x, left):
            return self.left(x) if left else self.right(x)

    ddp = DistributedDataParallel(Forked(), find_unused_parameters=True)
    ddp(torch.ones(2, 4), rank % 2 == 0).sum().backward()
    lefts = (world + 1) // 2
    _close(ddp.module.left.bias.grad, torch.tensor([2.0 * lefts / world]))
    ddp.zero_grad()
    with ddp.no_sync():
        ddp(torch.ones(2, 4), True).sum().backward()
    _close(ddp.module.left.bias.grad, torch.tensor([2.0]))


def _fsdp(rank, world, allocate):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (world,))
    model = _network()
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
            if allocate:
                layer.set_allocate_memory_from_process_group_for_comm(True)
    fully_shard(model, mesh=mesh)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for (x, y), want in zip(_batches(), _alone()):
        _step(model, opt, _mine(x, rank, world), _mine(y, rank, world))
        for p, (value, gradient) in zip(model.parameters(), want):
            _close(p.grad.full_tensor(), gradient)
            _close(p.full_tensor().detach(), value)
    before = [p.grad.full_tensor() for p in model.parameters()]
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1e9)
    norm = norm.full_tensor() if hasattr(norm, "full_tensor") else norm
    _close(norm, torch.cat([g.flatten() for g in before]).norm())


def _tensor_parallel(rank, world):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import (
        ColwiseParallel, RowwiseParallel, parallelize_module)

    mesh = init_device_mesh("cpu", (world,))
    whole = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 12))
    for p in whole.parameters():
        dist.broadcast(p.detach(), 0)
    split = parallelize_module(copy.deepcopy(whole), mesh, {
        "0": ColwiseParallel(), "2": RowwiseParallel()})
    x = torch.randn(6, 12, generator=torch.Generator().manual_seed(1))
    _close(split(x), whole(x))
    split(x).sum().backward()
    whole(x).sum().backward()
    _close(split[0].weight.grad.full_tensor(), whole[0].weight.grad)


def _pipeline(rank, world):
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    layers = [nn.Linear(8, 8) for _ in range(world)]
    for layer in layers:
        for p in layer.parameters():
            dist.broadcast(p.detach(), 0)
    mine = copy.deepcopy(layers[rank])
    stage = PipelineStage(mine, rank, world, torch.device("cpu"))
    schedule = Schedule1F1B(stage, n_microbatches=2 * world,
                            loss_fn=lambda out, y: (out - y).pow(2).mean())
    x = torch.randn(4 * world, 8, generator=torch.Generator().manual_seed(1))
    target = torch.zeros(4 * world, 8)
    if rank == 0:
        schedule.step(x)
    elif rank == world - 1:
        schedule.step(target=target)
    else:
        schedule.step()
    whole = nn.Sequential(*layers)
    (whole(x) - target).pow(2).mean().backward()
    _close(mine.weight.grad, layers[rank].weight.grad)


def _functional(rank, world):
    """Through torch's functional collectives, compiled and not."""
    import torch.distributed._functional_collectives as functional
    group = dist.group.WORLD

    def f(x):
        y = functional.all_reduce(x, "sum", group)
        z = functional.all_gather_tensor(x, 0, group)
        s = functional.reduce_scatter_tensor(z, "avg", 0, group)
        return y + s

    x = torch.full((4, 3), float(rank))
    want = sum(range(world)) + x
    _close(f(x) + 0, want)
    _close(torch.compile(f, backend="aot_eager")(x) + 0, want)


@pytest.mark.parametrize("world", [1, 2, 3])
@pytest.mark.parametrize("options", [
    {}, {"bucket_cap_mb": 0.1, "gradient_as_bucket_view": True}],
    ids=["one bucket", "many buckets"])
def test_ddp(world, options):
    run(world, _ddp, options)


@pytest.mark.parametrize("allocate", [False, True])
def test_fsdp(allocate):
    run(2, _fsdp, allocate)


@pytest.mark.parametrize("body", [
    _ddp_hooks, _ddp_unused, _tensor_parallel, _pipeline, _functional,
], ids=lambda body: body.__name__[1:])
def test_two_ranks(body):
    run(2, body)
