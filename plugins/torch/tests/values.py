# SPDX-License-Identifier: Apache-2.0
"""What ranks put in and what must come out."""

import torch
import torch.distributed as dist

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
FLOAT8 = [torch.float8_e4m3fn, torch.float8_e5m2]
INTS = [torch.uint8, torch.int8, torch.int16, torch.uint16, torch.int32,
        torch.uint32, torch.int64, torch.uint64]
COMPLEX = [torch.complex64, torch.complex128]
ALL = FLOATS + FLOAT8 + INTS + COMPLEX + [torch.bool]
# Types that travel as bytes only.
BYTES = [torch.float8_e4m3fnuz, torch.float8_e5m2fnuz, torch.complex32]

SUM, AVG, PRODUCT = dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.PRODUCT
MIN, MAX = dist.ReduceOp.MIN, dist.ReduceOp.MAX
BAND, BOR, BXOR = dist.ReduceOp.BAND, dist.ReduceOp.BOR, dist.ReduceOp.BXOR


def wide(rank, count):
    """Small whole numbers that differ by rank; exact in every type."""
    return (torch.arange(count) * 7 + rank * 3 + rank * rank) % 3


def cast(values, dtype):
    if dtype == torch.bool:
        return values % 2 == 1
    if dtype in COMPLEX + [torch.complex32]:
        return torch.complex(values.double(), values.double() + 1).to(dtype)
    if dtype in FLOAT8 + BYTES:
        return values.float().to(dtype)
    return values.to(dtype)


def tensor(rank, count, dtype):
    return cast(wide(rank, count), dtype)


def same(got, want):
    """Equal to the last bit, or, for a quotient, to rounding."""
    assert got.dtype == want.dtype and got.shape == want.shape
    if got.dtype in FLOAT8 + BYTES[:2]:
        got, want = got.view(torch.uint8), want.view(torch.uint8)
    elif got.dtype == torch.complex32:
        got, want = got.to(torch.complex64), want.to(torch.complex64)
    if got.is_floating_point() or got.is_complex():
        torch.testing.assert_close(got, want, rtol=1e-6, atol=0)
    else:
        assert torch.equal(got, want), (got, want)


def reduced(world, count, dtype, op):
    """The reduction over all ranks of tensor(rank, count, dtype)."""
    if dtype == torch.bool:
        rows = torch.stack([tensor(r, count, dtype) for r in range(world)])
        if op in (SUM, MAX, BOR):
            return rows.any(0)
        return rows.sum(0) % 2 == 1 if op == BXOR else rows.all(0)
    if dtype in COMPLEX:
        rows = torch.stack([tensor(r, count, dtype) for r in range(world)])
        return rows.sum(0) / (world if op == AVG else 1)
    rows = torch.stack([wide(r, count) for r in range(world)])
    if op in (BAND, BOR, BXOR):
        total = rows[0]
        for row in rows[1:]:
            total = (total & row if op == BAND else
                     total | row if op == BOR else total ^ row)
    elif op == AVG and dtype in INTS:
        total = rows.sum(0) // world
    elif op == AVG:
        # Narrow types are divided in float32 and rounded once.
        total = rows.sum(0).to(
            torch.float64 if dtype == torch.float64 else torch.float32) / world
        return total.to(dtype)
    else:
        total = {SUM: lambda: rows.sum(0), PRODUCT: lambda: rows.prod(0),
                 MIN: lambda: rows.amin(0), MAX: lambda: rows.amax(0)}[op]()
    return cast(total, dtype)


def ops_for(dtype):
    if dtype in COMPLEX:
        return [SUM, AVG]
    if dtype == torch.bool:
        return [SUM, PRODUCT, MIN, MAX, BAND, BOR, BXOR]
    ops = [SUM, AVG, PRODUCT, MIN, MAX]
    return ops + [BAND, BOR, BXOR] if dtype in INTS else ops
