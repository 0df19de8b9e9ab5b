# SPDX-License-Identifier: Apache-2.0
"""What a rank is told when a peer is late, differs, dies or aborts."""

import os
import re
import signal
import threading
import time
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

import torch_axon
from harness import run


def _backend():
    return dist.distributed_c10d._get_default_group()._get_backend(
        torch.device("cpu"))


def _error():
    return _backend().get_error().name


def _until(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the condition never came true"
        time.sleep(0.02)


def _leave(rank, world):
    """Keeps this rank alive and out of every call until all are here."""
    store = dist.distributed_c10d._get_default_store()
    store.set(f"done{rank}", "1")
    for r in range(world):
        store.get(f"done{r}")
    _backend().abort()


def _late_peer(rank, world):
    if rank == 0:
        _backend().set_timeout(timedelta(milliseconds=300))
        began = time.monotonic()
        with pytest.raises(dist.DistBackendError,
                           match="all_reduce .*seq 1.*Timed out waiting 300ms"):
            dist.all_reduce(torch.ones(4))
        assert time.monotonic() - began < 5
        assert _error() == "TIMEOUT"
        with pytest.raises(dist.DistBackendError):
            dist.all_reduce(torch.ones(4))
    _leave(rank, world)


def _late_peer_asynchronous(rank, world):
    if rank == 0:
        _backend().set_timeout(timedelta(milliseconds=300))
        work = dist.all_reduce(torch.ones(4), async_op=True)
        future = work.get_future()
        with pytest.raises(dist.DistBackendError,
                           match="Timed out waiting 300ms"):
            work.wait()
        assert work.is_completed() and not work.is_success()
        with pytest.raises(RuntimeError, match="Timed out waiting 300ms"):
            future.wait()
    _leave(rank, world)


def _call_timeout(rank, world):
    """A call's own limit holds for that call."""
    if rank == 0:
        with pytest.raises(dist.DistBackendError,
                           match="barrier .*Timed out waiting 250ms"):
            group = dist.distributed_c10d._get_default_group()
            group.monitored_barrier(timedelta(milliseconds=250), False)
    _leave(rank, world)


def _killed_peer(rank, world):
    dist.all_reduce(torch.ones(1))
    if rank == world - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    _until(lambda: _error() == "REMOTE_ERROR")
    with pytest.raises(dist.DistBackendError):
        dist.all_reduce(torch.ones(1))
    _backend().abort()
    return "told"


def _killed_peer_inside_a_call(rank, world):
    dist.all_reduce(torch.ones(1))
    if rank == world - 1:
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
    began = time.monotonic()
    with pytest.raises(dist.DistBackendError):
        dist.all_reduce(torch.ones(1))
    assert time.monotonic() - began < 5
    _backend().abort()
    return "told"


def _different_calls(rank, world):
    x = torch.ones(8 if rank == 0 else 9)
    with pytest.raises(dist.DistBackendError):
        dist.all_reduce(x)
        dist.barrier()
    _backend().abort()


def _abort_of_a_running_call(rank, world):
    if rank == 0:
        backend = _backend()
        timer = threading.Timer(0.3, backend.abort)
        timer.start()
        began = time.monotonic()
        with pytest.raises(dist.DistBackendError):
            dist.all_reduce(torch.ones(1))
        assert time.monotonic() - began < 3
        timer.join()
        backend.abort()
        backend.shutdown()
        with pytest.raises(dist.DistBackendError, match="aborted or shut down"):
            dist.all_reduce(torch.ones(1))
        with pytest.raises(dist.DistBackendError, match="aborted or shut down"):
            dist.all_reduce(torch.ones(1), async_op=True)
        assert _error() == "COMM_ERROR"
        dist.distributed_c10d._get_default_store().set("aborted", "1")
    else:
        dist.distributed_c10d._get_default_store().get("aborted")
        _until(lambda: _error() == "REMOTE_ERROR")
        with pytest.raises(dist.DistBackendError):
            dist.all_reduce(torch.ones(1))


def _abort_of_queued_work(rank, world):
    if rank == 0:
        works = [dist.all_reduce(torch.ones(5), async_op=True)
                 for _ in range(3)]
        works.append(dist.isend(torch.ones(2_000_000), 1))
        futures = [work.get_future() for work in works]
        _backend().abort()
        for work, future in zip(works, futures):
            with pytest.raises(dist.DistBackendError):
                work.wait(timedelta(seconds=10))
            with pytest.raises(RuntimeError):
                future.wait()
    _leave(rank, world)


@pytest.mark.parametrize("body", [
    _late_peer, _late_peer_asynchronous, _call_timeout, _different_calls,
    _abort_of_a_running_call, _abort_of_queued_work,
], ids=lambda body: body.__name__[1:])
@pytest.mark.parametrize("world", [2, 3])
def test_failures(body, world):
    run(world, body)


@pytest.mark.parametrize("body", [_killed_peer, _killed_peer_inside_a_call],
                         ids=lambda body: body.__name__[1:])
@pytest.mark.parametrize("world", [2, 3])
def test_killed_peer(body, world):
    told = run(world, body, absent=(world - 1,))
    assert told == ["told"] * (world - 1) + [None]


def _start(store, rank, texts):
    try:
        torch_axon.ProcessGroupAxon(
            store, rank, 3, timeout=timedelta(milliseconds=500))
    except dist.DistBackendError as error:
        texts.append(str(error))


@pytest.mark.parametrize("present", [(0, 1), (0,), (1, 2)])
def test_a_missing_rank_fails_the_start(present):
    store, texts = dist.HashStore(), []
    threads = [threading.Thread(target=_start, args=(store, rank, texts))
               for rank in present]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert time.monotonic() - began < 5
    assert len(texts) == len(present)
    assert any("Timed out waiting 500ms" in text for text in texts)
    for text in texts:
        wanted = "missing: .*rank 2" if 0 in present else "rank 0 has not"
        assert re.search(wanted, text), text
