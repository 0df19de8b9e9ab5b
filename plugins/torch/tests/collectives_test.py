# SPDX-License-Identifier: Apache-2.0
"""Every collective, for every type, on one to four ranks."""

import pytest
import torch
import torch.distributed as dist

import values
from harness import run

WORLDS = [1, 2, 3, pytest.param(4, marks=pytest.mark.slow)]
COUNTS = [0, 1, 17, 4099]


def _all_reduce(rank, world):
    for dtype in values.ALL:
        for op in values.ops_for(dtype):
            for count in COUNTS:
                x = values.tensor(rank, count, dtype)
                # torch's Python layer passes only sums of complex numbers.
                if dtype.is_complex and op != values.SUM:
                    continue
                dist.all_reduce(x, op)
                values.same(x, values.reduced(world, count, dtype, op))


def _reduce(rank, world):
    for dtype in values.ALL:
        for root in range(world):
            x = values.tensor(rank, 33, dtype)
            dist.reduce(x, root, values.SUM)
            want = (values.reduced(world, 33, dtype, values.SUM)
                    if rank == root else values.tensor(rank, 33, dtype))
            values.same(x, want)


def _broadcast(rank, world):
    for dtype in values.ALL + values.BYTES:
        for root in range(world):
            for count in COUNTS:
                x = values.tensor(rank, count, dtype)
                dist.broadcast(x, root)
                values.same(x, values.tensor(root, count, dtype))


def _all_gather(rank, world):
    for dtype in values.ALL + values.BYTES:
        for count in COUNTS:
            mine = values.tensor(rank, count, dtype)
            want = [values.tensor(r, count, dtype) for r in range(world)]
            got = [torch.zeros_like(mine) for _ in range(world)]
            dist.all_gather(got, mine)
            for g, w in zip(got, want):
                values.same(g, w)
            flat = torch.zeros(world * count).to(dtype)
            dist.all_gather_into_tensor(flat, mine)
            values.same(flat, torch.cat(want))
            flat = torch.zeros(world * count).to(dtype)
            place = flat[rank * count:(rank + 1) * count]  # in place
            place.copy_(mine)
            dist.all_gather_into_tensor(flat, place)
            values.same(flat, torch.cat(want))


def _all_gather_uneven(rank, world):
    for dtype in values.ALL + values.BYTES:
        got = [torch.zeros(5 * r + 1).to(dtype) for r in range(world)]
        dist.all_gather(got, values.tensor(rank, 5 * rank + 1, dtype))
        for r in range(world):
            values.same(got[r], values.tensor(r, 5 * r + 1, dtype))


def _gather_scatter(rank, world):
    for dtype in values.ALL + values.BYTES:
        for root in range(world):
            mine = values.tensor(rank, 9, dtype)
            got = ([torch.zeros_like(mine) for _ in range(world)]
                   if rank == root else None)
            dist.gather(mine, got, dst=root)
            if rank == root:
                for r in range(world):
                    values.same(got[r], values.tensor(r, 9, dtype))
            back = torch.zeros_like(mine)
            dist.scatter(back, got, src=root)
            values.same(back, mine)


def _reduce_scatter(rank, world):
    for dtype in values.ALL:
        for op in values.ops_for(dtype):
            for count in COUNTS:
                x = values.tensor(rank, world * count, dtype)
                want = values.reduced(world, world * count, dtype, op)
                want = want[rank * count:(rank + 1) * count]
                if not dtype.is_complex or op == values.SUM:
                    got = torch.zeros_like(want)
                    dist.reduce_scatter_tensor(got, x, op)
                    values.same(got, want)
                    got = torch.zeros_like(want)
                    parts = [x[r * count:(r + 1) * count]
                             for r in range(world)]
                    dist.reduce_scatter(got, parts, op)
                    values.same(got, want)


def _reduce_scatter_uneven(rank, world):
    sizes = [3 * r + 2 for r in range(world)]
    for dtype in values.ALL:
        parts = values.tensor(rank, sum(sizes), dtype).split(sizes)
        got = torch.zeros(sizes[rank]).to(dtype)
        dist.reduce_scatter(got, list(parts))
        want = values.reduced(world, sum(sizes), dtype, values.SUM)
        values.same(got, want.split(sizes)[rank])


def _row(source, target, count, dtype):
    """What rank `source` sends to rank `target`."""
    return values.tensor(5 * source + target, count, dtype)


def _all_to_all(rank, world):
    for dtype in values.ALL + values.BYTES:
        for count in COUNTS:
            x = torch.cat([_row(rank, t, count, dtype) for t in range(world)])
            want = torch.cat([_row(s, rank, count, dtype)
                              for s in range(world)])
            got = torch.zeros_like(want)
            dist.all_to_all_single(got, x)
            values.same(got, want)
            dist.all_to_all_single(x, x)  # the same memory
            values.same(x, want)


def _all_to_all_uneven(rank, world):
    def count(source, target):
        return (source + 2 * target) % 4  # some are empty

    for dtype in values.ALL + values.BYTES:
        send = [_row(rank, t, 3 * count(rank, t), dtype) for t in range(world)]
        want = [_row(s, rank, 3 * count(s, rank), dtype) for s in range(world)]
        got = torch.zeros(sum(w.numel() for w in want)).to(dtype).view(-1, 3)
        dist.all_to_all_single(
            got, torch.cat(send).view(-1, 3),
            [count(s, rank) for s in range(world)],
            [count(rank, t) for t in range(world)])
        values.same(got, torch.cat(want).view(-1, 3))
        got = [torch.zeros_like(w) for w in want]
        dist.all_to_all(got, send)
        for g, w in zip(got, want):
            values.same(g, w)


def _coalesced(rank, world):
    group = dist.distributed_c10d._get_default_group()
    counts = [1, 40, 0, 7]
    with dist._coalescing_manager():
        xs = [values.tensor(rank, c, torch.float32) for c in counts]
        for x in xs:
            dist.all_reduce(x)
    for x, c in zip(xs, counts):
        values.same(x, values.reduced(world, c, torch.float32, values.SUM))
    outs = [torch.zeros(world * c) for c in counts]
    with dist._coalescing_manager():
        for out, c in zip(outs, counts):
            dist.all_gather_into_tensor(
                out, values.tensor(rank, c, torch.float32))
    for out, c in zip(outs, counts):
        values.same(out, torch.cat(
            [values.tensor(r, c, torch.float32) for r in range(world)]))
    outs = [torch.zeros(c) for c in counts]
    with dist._coalescing_manager():
        for out, c in zip(outs, counts):
            dist.reduce_scatter_tensor(
                out, values.tensor(rank, world * c, torch.float32))
    for out, c in zip(outs, counts):
        want = values.reduced(world, world * c, torch.float32, values.SUM)
        values.same(out, want[rank * c:(rank + 1) * c])
    outs = [[torch.zeros(c) for c in counts] for _ in range(world)]
    dist.all_gather_coalesced(
        outs, [values.tensor(rank, c, torch.float32) for c in counts])
    for r in range(world):
        for out, c in zip(outs[r], counts):
            values.same(out, values.tensor(r, c, torch.float32))
    # Mixed kinds and types, in the style of one call after the other.
    with dist._coalescing_manager(group, torch.device("cpu"), True) as manager:
        a = values.tensor(rank, 12, torch.int64)
        group.broadcast(a, 0)
        b = [torch.zeros(3) for _ in range(world)]
        group.allgather([b], [values.tensor(rank, 3, torch.float32)])
    manager.wait()
    values.same(a, values.tensor(0, 12, torch.int64))
    values.same(b[-1], values.tensor(world - 1, 3, torch.float32))


def _objects(rank, world):
    mine = {"rank": rank, "text": "x" * (rank * 1000)}
    got = [None] * world
    dist.all_gather_object(got, mine)
    assert [g["rank"] for g in got] == list(range(world))
    assert [len(g["text"]) for g in got] == [r * 1000 for r in range(world)]
    box = [mine, rank] if rank == world - 1 else [None, None]
    dist.broadcast_object_list(box, src=world - 1)
    assert box[1] == world - 1
    got = [None] * world if rank == 0 else None
    dist.gather_object(mine, got, dst=0)
    assert rank != 0 or [g["rank"] for g in got] == list(range(world))
    one = [None]
    dist.scatter_object_list(one, [f"to {r}" for r in range(world)]
                             if rank == 0 else None, src=0)
    assert one == [f"to {rank}"]


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("body", [
    _all_reduce, _reduce, _broadcast, _all_gather, _all_gather_uneven,
    _gather_scatter, _reduce_scatter, _reduce_scatter_uneven, _all_to_all,
    _all_to_all_uneven, _coalesced, _objects,
], ids=lambda body: body.__name__[1:])
def test_values(body, world):
    run(world, body)
