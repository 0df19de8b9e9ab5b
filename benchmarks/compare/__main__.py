# SPDX-License-Identifier: Apache-2.0
"""Compares Axon with the other libraries a user could pick: ./dev compare.

Installs the rivals in a folder of their own, runs every library and the floor
in interleaved rounds, and writes CSV, JSON, Markdown and plots.
"""

import argparse
import csv
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import cells  # noqa: E402
import document  # noqa: E402
import plots  # noqa: E402
import rivals  # noqa: E402
import rounds  # noqa: E402
import targets  # noqa: E402

TORCH_SIZES = (8, *(16 << 2 * i for i in range(12)))
TORCH = rivals.HERE.parent / "torch_collectives.py"


def machine(cpuinfo):
    model = next((line.split(":")[1].strip() for line in cpuinfo.splitlines()
                  if line.startswith("model name")), platform.machine())
    vectors = targets.vectors(cpuinfo)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30
    return (f"{model}, {vectors}, {len(os.sched_getaffinity(0))} processors to "
            f"use, {memory} GiB, Linux {platform.release()}.")


def measure(folder, flags, patience, errors):
    """The rows of all rounds; no burst begins after flags.limit seconds."""
    deadline = time.monotonic() + flags.limit
    entries = [entry for entry in rivals.entries(folder, flags.seconds)
               if not flags.only or entry.name in flags.only]
    rows = []

    def run(entry):
        one = rounds.burst(folder, entry, patience)
        print(f"round {number + 1}: {entry.name}, {entry.ranks} ranks: "
              f"{len(one.rows)} cells, {one.label}"
              f"{', FAILED' if one.error else ''}", flush=True)
        if one.error:
            errors[f"{entry.name}, {entry.ranks} ranks"] = one.error
        return one

    for number in range(flags.rounds):
        found = rounds.one_round(entries, run,
                                 lambda: time.monotonic() > deadline)
        rows += [dict(zip(cells.FIELDS, (number, one.label, *row)))
                 for one in found for row in one.rows]
        if len(found) < len(entries):
            errors["the rest"] = (
                f"{flags.limit} s had passed in round {number + 1}")
            break
    return rows


def torch_times(folder, quick, patience, errors):
    """What torch_collectives.py found, and where; None if it failed."""
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory, "torch.json")
        entry = rivals.Entry("torch", 2, ((
            sys.executable, str(TORCH), "--json", str(path),
            "--backends", "neuron,neuron-mapped,gloo,fake", "--bfloat16",
            "--sizes", ",".join(map(str, TORCH_SIZES)),
            "--calls", "20" if quick else "60",
            "--blocks", "1" if quick else "5"),), limit=300)
        _, _, where, error = rounds.burst(folder, entry, patience)
        print(f"torch: {where}{', FAILED' if error else ''}", flush=True)
        if error:
            errors["torch"] = error
            return None
        return dict(json.loads(path.read_text(encoding="utf-8")), label=where)


def write(folder, rows, text, summary):
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "compare.csv", "w", encoding="utf-8",
              newline="") as file:
        writer = csv.DictWriter(file, cells.FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    (folder / "compare.json").write_text(
        json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    (folder / "compare.md").write_text(text, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(
        prog="./dev compare", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true",
                        help="one short round: a look, not a result")
    parser.add_argument("--rounds", type=int, help="default: 4")
    parser.add_argument("--only", type=lambda text: text.split(","),
                        help="names of libraries, separated by commas")
    parser.add_argument("--no-torch", action="store_true",
                        help="leave torch.distributed out")
    parser.add_argument("--rivals", type=pathlib.Path, required=True,
                        help="where they are installed")
    parser.add_argument("--lib", type=pathlib.Path, required=True,
                        help="folder of libaxon.so")
    parser.add_argument("--output", type=pathlib.Path, required=True)
    flags = parser.parse_args()
    flags.rounds = flags.rounds or (1 if flags.quick else 4)
    flags.seconds = 0.005 if flags.quick else 0.02
    flags.limit = 200 if flags.quick else 840
    patience = rounds.Patience(30 if flags.quick else 240)
    folder = flags.rivals.resolve()
    print("installing the rivals", flush=True)
    errors = rivals.install(folder, flags.lib.resolve())
    for name, error in errors.items():
        print(f"{name} cannot be had: {error}")
    rows = measure(folder, flags, patience, errors)
    torch = None if flags.no_torch else torch_times(
        folder, flags.quick, patience, errors)
    found = cells.medians(rows)
    cpuinfo = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    text = document.document(found, machine(cpuinfo), flags.rounds, errors,
                             torch, targets.vectors(cpuinfo))
    write(flags.output, rows, text, {
        "machine": machine(cpuinfo), "rounds": flags.rounds, "errors": errors,
        "torch": torch, "cells": [dict(key._asdict(), usec=value)
                                  for key, value in sorted(found.items())]})
    labels = [key.label for key in found]
    where = max(("near", "far"), key=labels.count)
    plots.draw(cells.Table(found, where), flags.output)
    print(f"written to {flags.output}")


if __name__ == "__main__":
    try:
        main()
    except subprocess.TimeoutExpired as error:
        sys.exit(f"{error.cmd} took more than {error.timeout} s")
