# SPDX-License-Identifier: Apache-2.0
"""Sends and receives: order, tags, sizes, batches, beside collectives."""

import pytest
import torch
import torch.distributed as dist

import values
from harness import run

LARGE = 1_000_000  # elements: more than any buffer between two ranks


def _values(rank, world):
    for dtype in values.ALL + values.BYTES:
        for count in (0, 1, 4099):
            if rank == 0:
                for peer in range(1, world):
                    dist.send(values.tensor(peer, count, dtype), peer)
            else:
                x = torch.zeros(count).to(dtype)
                assert dist.recv(x, 0) == 0
                values.same(x, values.tensor(rank, count, dtype))
    strided = torch.zeros(4, 6)[:, ::2]
    if rank == 0:
        strided.fill_(7)
        for peer in range(1, world):
            dist.send(strided, peer)
    else:
        dist.recv(strided, 0)
        assert torch.all(strided == 7)


def _isend_comes_first(rank, world):
    """All send before any receives, with more than the buffers hold."""
    right, left = (rank + 1) % world, (rank - 1) % world
    x = torch.full((LARGE,), float(rank))
    works = [dist.isend(x, right) for _ in range(3)]
    dist.barrier()  # every isend has returned
    y = torch.zeros(LARGE)
    for _ in range(3):
        dist.recv(y, left)
        assert torch.all(y == left)
    for work in works:
        work.wait()


def _collectives_pass_waiting_sends(rank, world):
    """A send that nobody receives yet holds up no collective."""
    x = torch.full((LARGE,), float(rank))
    works = [dist.isend(x, p) for p in range(world) if p != rank]
    for i in range(10):
        y = torch.ones(17)
        dist.all_reduce(y)
        assert y[0] == world
        work = dist.all_reduce(y, async_op=True)
        work.wait()
        assert y[0] == world * world
    z = torch.zeros(LARGE)
    for p in range(world):
        if p != rank:
            dist.recv(z, p)
            assert torch.all(z == p)
    for work in works:
        work.wait()


def _irecv_out_of_order_of_peers(rank, world):
    if rank == 0:
        outs = [torch.zeros(8) for _ in range(world)]
        works = [dist.irecv(outs[p], p) for p in reversed(range(1, world))]
        for work in works:
            work.wait()
        for p in range(1, world):
            assert torch.all(outs[p] == p)
    else:
        dist.send(torch.full((8,), float(rank)), 0)


def _batches(rank, world):
    group = dist.distributed_c10d._get_default_group()
    right, left = (rank + 1) % world, (rank - 1) % world
    for count in (1, 1000, LARGE):
        x = torch.full((count,), float(rank))
        y, z = torch.zeros(count), torch.zeros(count)
        ops = [dist.P2POp(dist.irecv, y, left),
               dist.P2POp(dist.isend, x, right),
               dist.P2POp(dist.irecv, z, right),
               dist.P2POp(dist.isend, x, left)]
        works = dist.batch_isend_irecv(ops if rank % 2 else ops[::-1])
        assert len(works) == 1
        for work in works:
            work.wait()
        assert torch.all(y == left) and torch.all(z == right)
    group._start_coalescing(torch.device("cpu"))
    assert group._end_coalescing(torch.device("cpu")).wait()  # empty


def _batches_of_one_kind(rank, world):
    """Only sends, then only receives, as pipeline schedules make them."""
    x = torch.full((LARGE,), float(rank))
    others = [p for p in range(world) if p != rank]
    sends = dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, x, p) for p in others])
    ys = [torch.zeros(LARGE) for _ in others]
    receives = dist.batch_isend_irecv(
        [dist.P2POp(dist.irecv, y, p) for y, p in zip(ys, others)])
    for work in sends + receives:
        work.wait()
    for y, p in zip(ys, others):
        assert torch.all(y == p)


def _many_messages(rank, world):
    """A pair of ranks exchanges in order, both ways at once."""
    peer = rank ^ 1
    sends = [dist.isend(torch.tensor([i, rank]), peer) for i in range(300)]
    for i in range(300):
        x = torch.zeros(2, dtype=torch.int64)
        dist.recv(x, peer)
        assert x.tolist() == [i, peer]
    for work in sends:
        work.wait()


def _tags(rank, world):
    x = torch.zeros(3)
    if rank == 0:
        for tag in (5, 6, 0):
            dist.send(torch.full((3,), float(tag)), 1, tag=tag)
    else:
        for tag in (5, 6, 0):
            dist.recv(x, 0, tag=tag)
            assert torch.all(x == tag)
    if rank == 0:
        dist.send(torch.ones(3), 1, tag=8)
    else:
        with pytest.raises(dist.DistBackendError,
                           match="waited for tag 9 and got tag 8"):
            dist.recv(x, 0, tag=9)


def _objects(rank, world):
    if rank == 0:
        dist.send_object_list(["a", {"b": 1}], dst=1)
    else:
        got = [None, None]
        dist.recv_object_list(got, src=0)
        assert got == ["a", {"b": 1}]


def _refusals(rank, world):
    with pytest.raises(NotImplementedError, match="any source"):
        dist.recv(torch.zeros(1))
    group = dist.distributed_c10d._get_default_group()
    with pytest.raises(ValueError, match="peer 7"):
        group.send([torch.zeros(1)], 7, 0)
    dist.barrier()


@pytest.mark.parametrize("world", [2, 3])
@pytest.mark.parametrize("body", [
    _values, _isend_comes_first, _collectives_pass_waiting_sends,
    _irecv_out_of_order_of_peers, _batches, _batches_of_one_kind,
], ids=lambda body: body.__name__[1:])
def test_messages(body, world):
    run(world, body)


@pytest.mark.parametrize("body", [_many_messages, _tags, _objects, _refusals],
                         ids=lambda body: body.__name__[1:])
def test_two_ranks(body):
    run(2, body)
