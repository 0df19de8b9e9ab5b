# SPDX-License-Identifier: Apache-2.0
"""The comparison as text: tables of medians, ratios and targets."""

import targets
from cells import BARRIER_BYTES, FLOORS, OURS, Table

HEAD = """# Comparison

Written by `./dev compare`; do not edit. Data: [compare.csv](compare.csv),
[compare.json](compare.json).

{machine}

Every library runs the same program (`benchmarks/compare/method.h`) in
interleaved rounds, each burst on an idle machine. Bytes are those of the larger
side of one rank. From 4 KiB up, inputs are rewritten and outputs read between
calls, for all alike. A burst is *near* if the two processors shared a cache
before and after it, *far* if they did not; only equal labels are compared.
Cells are microseconds, medians over rounds of a round's median. `axon` has
ordinary buffers, `axon-mapped` those of `axonMemAlloc`, all rivals ordinary
ones. `floor` is the limit of the machine, not a library: prototypes that know
each other's buffers from the start, with the variants push (the reduced part is
written to every rank's output) and pull (each rank fetches it); the better one
counts. Ratios above 1 say by how much Axon is faster than the fastest rival.

{rounds}. A burst that met a busy machine, a change of placement or another
placement than most of its round is run again, a few times; what stays so is in
the CSV only (*busy*, *mixed*, *near apart*, *far apart*).
"""

NOT_MEASURED = """## What is left out

- MPICH at 4 ranks on 2 processors: it spins through its time slices (8 ms a
  call).
- Open MPI, MPICH 4 and Gloo in bfloat16: they have no such type; MPICH 5 and
  Intel MPI have it as an extension. Gloo's reduce-scatter: its present
  interface has none. oneCCL beyond all-reduce and all-gather: it hands the rest
  to Intel MPI.
- UCC: Debian 12 and PyPI have no package of it for host memory.
"""


def number(value):
    if value is None:
        return ""
    if value < 10:
        return f"{value:.2f}"
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def times(value):
    return "" if value is None else f"{value:.2f}×"


def size_text(size):
    if size == 0:
        return ""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size} B"


def medians_table(table, ranks, kind="float32"):
    names = table.names(ranks, kind)
    rivals = [name for name in names if name not in OURS + FLOORS]
    columns = [name for name in (*OURS, *rivals, *FLOORS) if name in names]
    lines = ["| collective | size | " + " | ".join(columns) +
             " | best rival | / axon | / axon-mapped | axon-mapped / floor |",
             "| --- | --: |" + " --: |" * len(columns) +
             " --- | --: | --: | --: |"]
    for collective in (*targets.COLLECTIVES, "barrier"):
        for size in table.sizes(collective, ranks, kind):
            where = (collective, ranks, size)
            cells = [number(table.get(name, *where, kind)) for name in columns]
            best = table.best(*where, kind=kind)
            cells.append(best[1] if best else "")
            cells += [times(table.ratio(name, *where, kind)) for name in OURS]
            cells.append(times(table.over_floor("axon-mapped", *where))
                         if kind == "float32" else "")
            lines.append(f"| {collective} | {size_text(size)} | " +
                         " | ".join(cells) + " |")
    return "\n".join(lines)


def ratios_table(table, ranks):
    """Best rival / axon and best rival / axon-mapped, a row for each size."""
    collectives = [name for name in targets.COLLECTIVES
                   if table.sizes(name, ranks)]
    lines = ["| size | " + " | ".join(collectives) + " |",
             "| --: |" + " --: |" * len(collectives)]
    for size in sorted({size for name in collectives
                        for size in table.sizes(name, ranks)}):
        cells = [" / ".join(times(table.ratio(name, collective, ranks, size))
                            or "-" for name in OURS)
                 for collective in collectives]
        lines.append(f"| {size_text(size)} | " + " | ".join(cells) + " |")
    barrier = table.ratio("axon", "barrier", ranks, BARRIER_BYTES)
    if barrier:
        lines.append(f"\nbarrier: {times(barrier)}")
    return "\n".join(lines)


def verdicts(rows):
    lines = ["| what | target | measured | |", "| --- | --- | --- | --- |"]
    for row in rows:
        mark = {True: "met", False: "**missed**", None: ""}[row.met]
        lines.append(f"| {row.what} | {row.target} | {row.value} | {mark} |")
    return "\n".join(lines)


def torch_table(rows):
    names = [name for name in ("neuron", "neuron-mapped", "gloo", "fake")
             if any(name in row["usec"] for row in rows)]
    ours = [name for name in names if name.startswith("neuron")]
    lines = ["| collective | size | " + " | ".join(names) + " | " +
             " | ".join(f"gloo / {name}" for name in ours) + " |",
             "| --- | --: |" + " --: |" * (len(names) + len(ours))]
    for row in rows:
        usec = row["usec"]
        ratios = [f"{usec['gloo'] / usec[name]:.1f}×"
                  if "gloo" in usec and name in usec else "" for name in ours]
        kind = "" if row["type"] == "float32" else f", {row['type']}"
        lines.append(f"| {row['collective']}{kind} | {size_text(row['size'])}"
                     " | " + " | ".join([*(number(usec.get(name))
                                           for name in names), *ratios]) + " |")
    return "\n".join(lines)


def torch_part(torch):
    text = (f"## torch.distributed, 2 ranks, {torch['label']}\n\n"
            "CPU tensors, blocking calls, the backends in turn in the same "
            "processes. `fake` is PyTorch's backend that does nothing: what a "
            "call costs before any backend is reached. `neuron-mapped` are "
            "tensors made under `torch_axon.use_shared_memory`.\n\n"
            f"{verdicts(targets.torch(torch['rows']))}\n\n"
            f"{torch_table(torch['rows'])}\n")
    return text + "".join(f"\n{name} is left out: {why}.\n"
                          for name, why in torch["left_out"].items())


def label_part(cells, where, vectors):
    table = Table(cells, where)
    rows = (targets.near(table, vectors) if where == "near"
            else targets.far(table))
    parts = [f"## Targets, {where}\n\n{verdicts(rows)}\n"]
    for ranks in (2, 4):
        if table.names(ranks):
            parts.append(
                f"## Ratios, {ranks} ranks, {where}, float32\n\n"
                "Best rival / axon, best rival / axon-mapped.\n\n"
                f"{ratios_table(table, ranks)}\n")
    for ranks in (2, 4):
        for kind in ("float32", "bfloat16"):
            if table.names(ranks, kind):
                parts.append(f"## {ranks} ranks, {where}, {kind}\n\n"
                             f"{medians_table(table, ranks, kind)}\n")
    return parts


def document(cells, machine, rounds, errors, torch, vectors):
    parts = [HEAD.format(machine=machine, rounds="1 round" if rounds == 1
                         else f"{rounds} rounds")]
    labels = [where for where in ("near", "far")
              if any(key.label == where for key in cells)]
    for where in labels:
        parts += label_part(cells, where, vectors)
    if not labels:
        parts.append("Nothing can be compared: every burst met a busy machine "
                     "or a change of placement.\n")
    if torch:
        parts.append(torch_part(torch))
    parts.append("## Plots\n\n![latency](latency.svg)\n\n"
                 "![bandwidth](bandwidth.svg)\n")
    parts.append(NOT_MEASURED)
    if errors:
        parts.append("## What did not run\n\n" + "\n".join(
            f"- {name}: {' '.join(text.split())[:300]}"
            for name, text in sorted(errors.items())) + "\n")
    return "\n".join(parts)
