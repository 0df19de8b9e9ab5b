# SPDX-License-Identifier: Apache-2.0
"""What Axon is to reach, and whether it does."""

import collections

from cells import geometric_mean

KIB = 1 << 10
MIB = 1 << 20
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all",
               "broadcast")
# Instruction sets, the widest first: the CPU's flag, and what bfloat16 sums
# reach of float32's bytes a second. Without AVX-512 a conversion takes several
# instructions.
VECTORS = {"AVX-512": ("avx512f", 0.8), "AVX2": ("avx2", 0.6)}
Verdict = collections.namedtuple("Verdict", "what target value met")


def vectors(cpuinfo):
    """The widest instruction set that /proc/cpuinfo tells of."""
    flags = set(cpuinfo.split())
    return next((name for name, (flag, _) in VECTORS.items() if flag in flags),
                "SSE4")


def ratios(table, name, ranks, wanted):
    """{(collective, bytes): ratio to the best rival} where `wanted`."""
    found = {}
    for collective in (*COLLECTIVES, "barrier"):
        for size in table.sizes(collective, ranks):
            value = table.ratio(name, collective, ranks, size)
            if value is not None and wanted(collective, size):
                found[collective, size] = value
    return found


def lowest(what, target, found, limit):
    if not found:
        return Verdict(what, target, "not measured", None)
    cell = min(found, key=found.get)
    return Verdict(what, target, f"{found[cell]:.2f}× ({cell[0]}, "
                   f"{cell[1]} B)", found[cell] >= limit)


def mean(what, target, found, limit):
    value = geometric_mean(found.values())
    if value is None:
        return Verdict(what, target, "not measured", None)
    return Verdict(what, target, f"{value:.2f}×", value >= limit)


def small(table):
    found = ratios(table, "axon", 2, lambda c, n: n <= KIB)
    return [lowest("8 B to 1 KiB, every collective and barrier",
                   "no cell below 1.5×", found, 1.5)]


def mapped(table):
    def large(collective, size):
        return collective != "barrier" and size >= 64 * KIB
    found = ratios(table, "axon-mapped", 2, large)
    over = {(c, n): table.over_floor("axon-mapped", c, 2, n)
            for c in COLLECTIVES for n in table.sizes(c, 2) if large(c, n)}
    over = {cell: value for cell, value in over.items() if value}
    what = "mapped buffers, 64 KiB and up"
    rows = [mean(what, "geometric mean at least 1.7×", found, 1.7),
            lowest(what, "no cell below 1×", found, 1)]
    if over:
        cell = max(over, key=over.get)
        rows.append(Verdict(what, "at most 1.2× the floor",
                            f"{over[cell]:.2f}× ({cell[0]}, {cell[1]} B)",
                            over[cell] <= 1.2))
    return rows


def private(table):
    reduce = ratios(table, "axon", 2,
                    lambda c, n: c == "all_reduce" and n >= 64 * KIB)
    rows = []
    for sizes, limit in (((64 * KIB, 4 * MIB, 64 * MIB), 1.2),
                         ((16 * MIB,), 1.1)):
        chosen = {k: v for k, v in reduce.items() if k[1] in sizes}
        rows.append(lowest("private all-reduce at " + ", ".join(
            f"{n // KIB} KiB" if n < MIB else f"{n // MIB} MiB"
            for n in sizes), f"at least {limit}×", chosen, limit))
    rows.append(lowest("private all-reduce, any size", "no cell below 0.95×",
                       ratios(table, "axon", 2,
                              lambda c, n: c == "all_reduce"), 0.95))
    rows.append(lowest("private reduce-scatter from 64 KiB", "at least 1.3×",
                       ratios(table, "axon", 2, lambda c, n:
                              c == "reduce_scatter" and n >= 64 * KIB), 1.3))
    for collective in ("all_gather", "all_to_all", "broadcast"):
        found = ratios(table, "axon", 2,
                       lambda c, n, name=collective: c == name)
        rows.append(lowest(f"private {collective}", "no cell below 0.95×",
                           found, 0.95))
        rows.append(mean(f"private {collective}", "geometric mean at least "
                         "1.1×", found, 1.1))
    return rows


def four_ranks(table):
    found = ratios(table, "axon", 4, lambda c, n: True)
    what = "4 ranks on 2 processors"
    return [mean(what, "geometric mean at least 1.5×", found, 1.5),
            lowest(what, "no cell below 1×", found, 1)]


def smooth(table):
    """No step of the size costs more than in proportion to 3.5 a doubling."""
    worst = None
    for collective in COLLECTIVES:
        sizes = table.sizes(collective, 2)
        for a, b in zip(sizes, sizes[1:]):
            before = table.get("axon", collective, 2, a)
            after = table.get("axon", collective, 2, b)
            if not before or not after:
                continue
            doublings = (b // max(a, 1)).bit_length() - 1
            growth = (after / before) ** (1 / doublings)
            if worst is None or growth > worst[0]:
                worst = (growth, collective, b)
    if worst is None:
        return []
    return [Verdict("smoothness", "a doubling costs at most 3.5×",
                    f"{worst[0]:.2f}× ({worst[1]}, to {worst[2]} B)",
                    worst[0] <= 3.5)]


def half_types(table, vectors_of_cpu):
    """Bytes a second of bfloat16 against float32, from 64 KiB up."""
    if vectors_of_cpu not in VECTORS:
        return []
    found = {}
    for collective in ("all_reduce", "reduce_scatter"):
        for size in table.sizes(collective, 2):
            full = table.get("axon-mapped", collective, 2, size)
            half = table.get("axon-mapped", collective, 2, size, "bfloat16")
            if size >= 64 * KIB and full and half:
                found[collective, size] = full / half
    limit = VECTORS[vectors_of_cpu][1]
    return [lowest("bfloat16 sums, bytes a second of float32's, mapped",
                   f"at least {limit}× with {vectors_of_cpu}", found, limit)]


def near(table, vectors_of_cpu):
    return [*small(table), *mapped(table), *private(table),
            *half_types(table, vectors_of_cpu), *four_ranks(table),
            *smooth(table)]


def far(table):
    return [lowest("far placement, 2 ranks", "no cell below 0.9×",
                   ratios(table, "axon", 2, lambda c, n: True), 0.9)]


def torch(rows):
    """`rows` as torch_collectives.py writes them."""
    usec = {(row["collective"], row["size"]): row["usec"] for row in rows
            if row["type"] == "float32"}
    small = usec.get(("all_reduce", 8), {})
    what = "8-byte dist.all_reduce"
    target = "at most 3 µs over the fake backend"
    if {"neuron", "fake"} <= small.keys():
        over = small["neuron"] - small["fake"]
        found = [Verdict(what, target, f"{over:.2f} µs", over <= 3)]
    else:
        found = [Verdict(what, target, "not measured", None)]
    for name, text, least, most, limit in (
            ("neuron", "to 64 KiB", 0, 64 * KIB, 20),
            ("neuron", "to 1 MiB", 64 * KIB + 1, MIB, 6),
            ("neuron", "above 1 MiB", MIB + 1, 1 << 40, 3.5),
            ("neuron-mapped", "from 1 MiB", MIB, 1 << 40, 5)):
        ratios_to_gloo = {
            cell: values["gloo"] / values[name] for cell, values in usec.items()
            if {"gloo", name} <= values.keys() and least <= cell[1] <= most}
        found.append(lowest(f"torch against Gloo, {name}, {text}",
                            f"at least {limit}×", ratios_to_gloo, limit))
    return found
