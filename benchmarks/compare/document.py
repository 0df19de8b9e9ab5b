# SPDX-License-Identifier: Apache-2.0
"""The comparison as text: tables of medians, ratios and targets."""

import targets
from cells import FLOORS, OURS, Table

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
each other's buffers from the start. Ratios above 1 say by how much Axon is
faster than the fastest rival.

{rounds} rounds.
"""


def number(value):
    if value is None:
        return ""
    if value < 10:
        return f"{value:.2f}"
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def size_text(size):
    if size == 0:
        return ""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size} B"


def medians_table(table, ranks):
    names = table.names(ranks)
    rivals = [name for name in names if name not in OURS + FLOORS]
    columns = [name for name in (*OURS, *rivals, *FLOORS) if name in names]
    lines = ["| collective | size | " + " | ".join(columns) +
             " | axon | axon-mapped |",
             "| --- | --: |" + " --: |" * (len(columns) + 2)]
    for collective in (*targets.COLLECTIVES, "barrier"):
        for size in table.sizes(collective, ranks):
            cells = [number(table.get(name, collective, ranks, size))
                     for name in columns]
            for name in OURS:
                value = table.ratio(name, collective, ranks, size)
                cells.append("" if value is None else f"**{value:.2f}×**")
            lines.append(f"| {collective} | {size_text(size)} | " +
                         " | ".join(cells) + " |")
    return "\n".join(lines)


def half_table(table, ranks):
    lines = ["| collective | size | axon | axon-mapped |",
             "| --- | --: | --: | --: |"]
    for collective in targets.COLLECTIVES:
        for size in table.sizes(collective, ranks):
            cells = [number(table.get(name, collective, ranks, size,
                                      "bfloat16")) for name in OURS]
            if any(cells):
                lines.append(f"| {collective} | {size_text(size)} | " +
                             " | ".join(cells) + " |")
    return "\n".join(lines)


def verdicts(rows):
    lines = ["| what | target | measured | |", "| --- | --- | --- | --- |"]
    for row in rows:
        mark = {True: "met", False: "**missed**", None: ""}[row.met]
        lines.append(f"| {row.what} | {row.target} | {row.value} | {mark} |")
    return "\n".join(lines)


def torch_table(times):
    names = [name for name in ("neuron", "neuron-mapped", "gloo", "fake")
             if any(name in row["usec"] for row in times)]
    lines = ["| collective | size | " + " | ".join(names) + " | gloo / neuron |",
             "| --- | --: |" + " --: |" * (len(names) + 1)]
    for row in times:
        usec = row["usec"]
        ratio = (f"**{usec['gloo'] / usec['neuron']:.1f}×**"
                 if "gloo" in usec and "neuron" in usec else "")
        lines.append(f"| {row['collective']} | {size_text(row['size'])} | " +
                     " | ".join(number(usec.get(name)) for name in names) +
                     f" | {ratio} |")
    return "\n".join(lines)


def document(cells, machine, rounds, errors, torch_times):
    parts = [HEAD.format(machine=machine, rounds=rounds)]
    labels = [where for where in ("near", "far")
              if any(key.label == where for key in cells)]
    for where in labels:
        rows = (targets.near if where == "near" else targets.far)(
            Table(cells, where))
        parts.append(f"## Targets, {where}\n\n{verdicts(rows)}\n")
    for where in labels:
        table = Table(cells, where)
        for ranks in (2, 4):
            if table.names(ranks):
                parts.append(f"## {ranks} ranks, {where}, float32\n\n"
                             f"{medians_table(table, ranks)}\n")
        parts.append(f"## 2 ranks, {where}, bfloat16\n\n"
                     f"{half_table(table, 2)}\n")
    if torch_times:
        parts.append("## torch.distributed, 2 ranks, float32\n\n"
                     f"{torch_table(torch_times)}\n")
    parts.append("## Plots\n\n![latency](latency.svg)\n\n"
                 "![bandwidth](bandwidth.svg)\n")
    if errors:
        parts.append("## What did not run\n\n" + "\n".join(
            f"- {name}: {' '.join(text.split())[:300]}"
            for name, text in sorted(errors.items())) + "\n")
    return "\n".join(parts)
