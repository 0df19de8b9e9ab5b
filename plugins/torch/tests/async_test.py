# SPDX-License-Identifier: Apache-2.0
"""Works and futures: completion, values, callbacks, order, kept tensors."""

import gc
import threading
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

from harness import run


def _works(rank, world):
    pending = []
    for i in range(50):
        x = torch.full((1000,), float(rank + i))
        pending.append((i, x, dist.all_reduce(x, async_op=True)))
    for i, x, work in reversed(pending):
        assert work.wait()
        assert work.is_completed() and work.is_success()
        assert work.exception() is None
        assert torch.equal(x, torch.full((1000,), sum(
            float(r + i) for r in range(world))))


def _futures(rank, world):
    total = float(sum(range(world)))
    x = torch.full((10,), float(rank))
    work = dist.all_reduce(x, async_op=True)
    value = work.get_future().wait()
    assert isinstance(value, list) and value[0].data_ptr() == x.data_ptr()
    assert value[0][0] == total
    assert work.get_future().wait()[0][0] == total  # again, after the end

    outs = [torch.zeros(2) for _ in range(world)]
    future = dist.all_gather(
        outs, torch.full((2,), float(rank)), async_op=True).get_future()
    assert [t[0].item() for t in future.wait()] == list(range(world))

    x = torch.full((10,), float(rank))
    chain = (dist.all_reduce(x, async_op=True).get_future()
             .then(lambda f: f.value()[0] * 2)
             .then(lambda f: f.value() + 1))
    assert chain.wait()[0] == 2 * total + 1


def _synchronous_work_has_a_future(rank, world):
    group = dist.distributed_c10d._get_default_group()
    options = dist.AllreduceOptions()
    options.asyncOp = False
    x = torch.ones(3)
    work = group.allreduce([x], options)
    assert work.is_completed()
    assert work.get_future().wait()[0][0] == world
    assert work.result()[0].data_ptr() == x.data_ptr()


def _callbacks_may_wait_for_calls(rank, world):
    """Each callback makes a call and waits for it, eight deep."""
    def deeper(depth):
        x = torch.ones(4)
        future = dist.all_reduce(x, async_op=True).get_future()
        if depth == 0:
            return future.wait()[0]
        return future.then(lambda f: deeper(depth - 1)).wait()

    assert deeper(8)[0] == world


def _errors_in_callbacks_stay_there(rank, world):
    x = torch.ones(4)
    future = dist.all_reduce(x, async_op=True).get_future().then(
        lambda f: 1 / 0)
    with pytest.raises(Exception, match="division by zero"):
        future.wait()
    dist.all_reduce(x)
    assert x[0] == world * world


def _tensors_live_until_the_end(rank, world):
    for _ in range(20):
        works = []
        for _ in range(4):
            out = torch.zeros(world * 50_000)
            works.append((dist.all_gather_into_tensor(
                out, torch.full((50_000,), float(rank)), async_op=True), out))
            dist.all_reduce(torch.ones(50_000), async_op=True)
        gc.collect()
        for work, out in works:
            work.wait()
            for r in range(world):
                assert torch.all(out[r * 50_000:(r + 1) * 50_000] == r)


def _mixed_with_blocking_calls(rank, world):
    for i in range(100):
        a, b, c = (torch.full((257,), float(rank + i)) for _ in range(3))
        first = dist.all_reduce(a, async_op=True)
        dist.all_reduce(b)  # runs after the first
        last = dist.all_reduce(c, async_op=True)
        want = torch.full((257,), float(sum(r + i for r in range(world))))
        assert torch.equal(b, want)
        first.wait()
        last.wait()
        assert torch.equal(a, want) and torch.equal(c, want)


def _strided(rank, world):
    """Tensors that are not dense blocks give the values of those that are."""
    base = torch.zeros(6, 8)
    view = base[::2, 1:7:2]
    view.copy_(torch.full((3, 3), float(rank)))
    for asynchronous in (False, True):
        x = base.clone()[::2, 1:7:2]
        work = dist.all_reduce(x, async_op=asynchronous)
        if asynchronous:
            work.wait()
        assert torch.equal(x, torch.full((3, 3), float(sum(range(world)))))
        x = (base + 1)[::2, 1:7:2].t()
        work = dist.broadcast(x, world - 1, async_op=asynchronous)
        if asynchronous:
            work.wait()
        assert torch.equal(x, torch.full((3, 3), float(world)))
    out = torch.zeros(2, 3 * world).t()
    work = dist.all_gather_into_tensor(
        out, torch.full((2, 3), float(rank)).t(), async_op=True)
    work.wait()
    for r in range(world):
        assert torch.all(out[3 * r:3 * r + 3] == r)
    out = torch.zeros(4, 2)[:, 0]
    dist.reduce_scatter_tensor(out, torch.ones(2, 4 * world).t()[:, 0])
    assert torch.all(out == world)
    y = torch.complex(torch.ones(4), torch.full((4,), float(rank))).conj()
    got = [torch.zeros(4, dtype=torch.complex64) for _ in range(world)]
    dist.distributed_c10d._get_default_group().allgather([got], [y]).wait()
    assert all(torch.all(got[r].imag == -r) for r in range(world))
    leaf = torch.full((4, 4), float(rank), requires_grad=True)
    dist.broadcast(leaf, 0)
    assert torch.all(leaf == 0)
    with torch.inference_mode():
        z = torch.ones(4, 4).t()
        dist.all_reduce(z, async_op=True).wait()
        assert torch.all(z == world)


def _wait_has_a_limit(rank, world):
    x = torch.ones(4)
    if rank == 0:
        work = dist.all_reduce(x, async_op=True)
        with pytest.raises(dist.DistBackendError,
                           match="Timed out waiting 150ms"):
            work.wait(timedelta(milliseconds=150))
        store = dist.distributed_c10d._get_default_store()
        store.set("go", "1")
        assert work.wait(timedelta(seconds=20))
    else:
        dist.distributed_c10d._get_default_store().get("go")
        dist.all_reduce(x)
    assert x[0] == world


def _threads(rank, world):
    """One group of its own per thread, all at once."""
    groups = [dist.new_group(list(range(world))) for _ in range(4)]
    failures = []

    def work(group, seed):
        try:
            for i in range(100):
                x = torch.full((33,), float(rank + seed + i))
                if i % 2:
                    dist.all_reduce(x, group=group)
                else:
                    dist.all_reduce(x, group=group, async_op=True).wait()
                assert x[0] == sum(r + seed + i for r in range(world))
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work, args=(g, i))
               for i, g in enumerate(groups)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


def _profiled(rank, world):
    with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        dist.all_reduce(torch.ones(4))
        dist.all_reduce(torch.ones(4), async_op=True).wait()
    events = [e for e in profile.events() if e.name == "axon:all_reduce"]
    assert len(events) == 2, [e.name for e in profile.events()]


@pytest.mark.parametrize("world", [1, 2, 3])
@pytest.mark.parametrize("body", [
    _works, _futures, _synchronous_work_has_a_future,
    _callbacks_may_wait_for_calls, _errors_in_callbacks_stay_there,
    _tensors_live_until_the_end, _mixed_with_blocking_calls, _strided, _threads,
], ids=lambda body: body.__name__[1:])
def test_works(body, world):
    run(world, body)


@pytest.mark.parametrize("body", [_wait_has_a_limit, _profiled],
                         ids=lambda body: body.__name__[1:])
def test_two_ranks(body):
    run(2, body)
