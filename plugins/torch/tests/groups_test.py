# SPDX-License-Identifier: Apache-2.0
"""Groups: names, subgroups, sequence numbers, options, memory, misuse."""

import subprocess
import sys
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

import torch_axon
import values
from harness import run


def _backend(group=None):
    group = group or dist.distributed_c10d._get_default_group()
    return group._get_backend(torch.device("cpu"))


def _names(rank, world, given):
    assert dist.get_backend() == given
    name = given.removeprefix("cpu:")
    backend = _backend()
    assert isinstance(backend, torch_axon.ProcessGroupAxon)
    assert backend.name() == name
    assert backend.options.backend == name
    assert backend.options.group_name == dist.group.WORLD.group_name
    assert backend.options._timeout == timedelta(seconds=30)
    assert backend.supports_coalescing
    dist.barrier()


def _subgroups(rank, world):
    evens = dist.new_group(list(range(0, world, 2)))
    last = dist.new_group([world - 1], backend="axon")
    everyone = dist.new_group(list(reversed(range(world))), backend="neuron")
    for _ in range(3):
        x = torch.tensor([rank + 1])
        dist.all_reduce(x, group=everyone)
        assert x[0] == world * (world + 1) // 2
        if rank % 2 == 0:
            x = torch.tensor([rank])
            dist.all_reduce(x, dist.ReduceOp.MAX, group=evens)
            assert x[0] == (world - 1) // 2 * 2
        if rank == world - 1:
            dist.all_reduce(x, group=last)
    if rank % 2 == 0:
        dist.destroy_process_group(evens)
    dist.barrier()


def _many_groups(rank, world):
    for i in range(30):
        group = dist.new_group(list(range(world)))
        x = torch.ones(1)
        dist.all_reduce(x, group=group)
        assert x[0] == world
        if i % 2:
            dist.destroy_process_group(group)


def _again(rank, world):
    """A world may be left and entered again through the same store."""
    store = dist.distributed_c10d._get_default_store()
    for _ in range(3):
        dist.destroy_process_group()
        dist.init_process_group(
            "axon", store=store, rank=rank, world_size=world,
            timeout=timedelta(seconds=20))
        x = torch.ones(1)
        dist.all_reduce(x)
        assert x[0] == world


def _sequence_numbers(rank, world):
    backend = _backend()
    backend._set_sequence_number_for_group()
    before = backend._get_sequence_number_for_group()
    for i in range(5):
        dist.all_reduce(torch.ones(1))
        dist.all_reduce(torch.ones(1), async_op=True).wait()
    assert backend._get_sequence_number_for_group() == before + 10
    assert dist.all_reduce(
        torch.ones(1), async_op=True)._get_op_type() is not None


def _premultiplied(rank, world):
    for dtype in values.FLOATS:
        for factor in (2.0, torch.tensor(0.5)):
            op = dist._make_nccl_premul_sum(factor)
            x = values.tensor(rank, 50, dtype)
            want = (sum(values.tensor(r, 50, dtype).double()
                        for r in range(world)) * float(factor)).to(dtype)
            y = x.clone()
            dist.all_reduce(y, op)
            values.same(y, want)
            out = torch.zeros(50).to(dtype)
            dist.reduce_scatter_tensor(out, x.repeat(world), op)
            values.same(out, want)
    x = torch.full((3,), rank, dtype=torch.int16)
    dist.all_reduce(x, dist._make_nccl_premul_sum(3.0))
    assert x[0] == 3 * sum(range(world))


def _allocated_memory(rank, world):
    backend = _backend()
    assert backend.supports_tensor_alloc(torch.device("cpu"))
    for dtype in (torch.uint8, torch.bfloat16, torch.float64):
        x = backend.allocate_tensor(
            1000, dtype=dtype, device=torch.device("cpu"))
        assert x.dtype == dtype and x.shape == (1000,)
        x.fill_(1)
        dist.all_reduce(x)
        assert torch.all(x == world)


def _refusals(rank, world):
    cases = [
        (ValueError, "BAND", lambda: dist.all_reduce(
            torch.ones(2), dist.ReduceOp.BAND)),
        (ValueError, "AVG", lambda: dist.all_reduce(
            torch.ones(2, dtype=torch.bool), dist.ReduceOp.AVG)),
        (ValueError, "PRODUCT", lambda: dist.reduce_scatter_tensor(
            torch.ones(1, dtype=torch.complex64),
            torch.ones(world, dtype=torch.complex64), dist.ReduceOp.PRODUCT)),
        (ValueError, "SUM", lambda: dist.all_reduce(
            torch.zeros(2).to(torch.float8_e5m2fnuz))),
        (ValueError, "whole factor", lambda: dist.all_reduce(
            torch.ones(2, dtype=torch.int32),
            dist._make_nccl_premul_sum(0.5))),
        (ValueError, "must have", lambda: dist.all_gather_into_tensor(
            torch.zeros(world + 1), torch.zeros(1))),
        (ValueError, "differ in type", lambda: dist.all_gather_into_tensor(
            torch.zeros(world, dtype=torch.int64), torch.zeros(1))),
        (ValueError, "root 9", lambda: dist.distributed_c10d
         ._get_default_group().broadcast(torch.zeros(1), 9)),
        (ValueError, "to_dense", lambda: dist.distributed_c10d
         ._get_default_group().allreduce([torch.zeros(4).to_sparse()])),
        (RuntimeError, "Split sizes", lambda: dist.all_to_all_single(
            torch.zeros(world), torch.zeros(world), [world + 1] * world,
            [1] * world)),
    ]
    for error, text, call in cases:
        with pytest.raises(error, match=text):
            call()
    x = torch.ones(1)
    dist.all_reduce(x)  # nothing of that has harmed the group
    assert x[0] == world


def _monitored_barrier(rank, world):
    group = dist.distributed_c10d._get_default_group()
    group.monitored_barrier(timedelta(seconds=10), False)


@pytest.mark.parametrize("name", ["axon", "neuron", "cpu:axon"])
def test_names(name):
    run(2, _names, name, backend=name)


@pytest.mark.parametrize("world", [1, 2, 3])
@pytest.mark.parametrize("body", [
    _subgroups, _sequence_numbers, _premultiplied, _allocated_memory, _refusals,
    _monitored_barrier,
], ids=lambda body: body.__name__[1:])
def test_groups(body, world):
    run(world, body)


@pytest.mark.parametrize("body", [_many_groups, _again],
                         ids=lambda body: body.__name__[1:])
def test_two_ranks(body):
    run(2, body)


def _detail(rank, world):
    """Under TORCH_DISTRIBUTED_DEBUG=DETAIL torch wraps the backend."""
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    group = dist.new_group(list(range(world)))
    x = torch.ones(3)
    dist.all_reduce(x, group=group)
    dist.all_reduce(x, group=group, async_op=True).wait()
    assert x[0] == world * world
    out = torch.zeros(world)
    dist.all_gather_into_tensor(out, torch.full((1,), float(rank)), group=group)
    assert out.tolist() == list(range(world))
    peer = rank ^ 1
    y = torch.zeros(1)
    works = [dist.isend(torch.full((1,), float(rank)), peer, group=group),
             dist.irecv(y, peer, group=group)]
    for work in works:
        work.wait()
    assert y[0] == peer
    dist.barrier(group=group)


def test_detail():
    run(2, _detail)


def _python(text):
    return subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True,
        timeout=60, check=True).stdout.split()


def test_importing_torch_is_enough_and_loads_nothing():
    assert _python(
        "import sys, torch; from torch.distributed import Backend\n"
        "print(Backend.AXON, Backend.NEURON, 'torch_axon._C' in sys.modules)"
    ) == ["axon", "neuron", "False"]


def test_a_taken_name_is_left_alone():
    assert _python(
        "import os; os.environ['TORCH_DEVICE_BACKEND_AUTOLOAD'] = '0'\n"
        "import torch; from torch.distributed import Backend\n"
        "other = lambda *a: None\n"
        "Backend.register_backend('neuron', other, devices=['cpu'])\n"
        "import torch_axon; torch_axon.register(); torch_axon.register()\n"
        "print(Backend._plugins['NEURON'].creator_fn is other,\n"
        "      Backend._plugins['AXON'].creator_fn is other)\n"
        "torch_axon.register('neuron', force=True)\n"
        "print(Backend._plugins['NEURON'].creator_fn is other)"
    ) == ["True", "False", "False"]


def test_another_torch_is_refused_at_use():
    assert _python(
        "import torch; torch.__version__ = '2.99.0'; import torch_axon\n"
        "try: torch_axon.Options\n"
        "except ImportError as error: print('2.99.0' in str(error))"
    ) == ["True"]
