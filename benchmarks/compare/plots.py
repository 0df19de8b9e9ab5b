# SPDX-License-Identifier: Apache-2.0
"""The comparison as pictures: time and bandwidth over size, both axes log."""

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt  # noqa: E402

import targets  # noqa: E402
from cells import FLOORS, OURS  # noqa: E402

WIDE = {"axon": ("tab:red", 2.4), "axon-mapped": ("tab:orange", 2.4)}


def style(name):
    color, width = WIDE.get(name, (None, 1.2))
    return {"color": "black" if name in FLOORS else color, "linewidth": width,
            "linestyle": ":" if name in FLOORS else "-", "label": name}


def grid(table, ranks, value, unit, path):
    figure, axes = plt.subplots(2, 3, figsize=(15, 8.5))
    names = table.names(ranks)
    ordered = [n for n in names if n not in OURS] + [
        n for n in OURS if n in names]
    for axis, collective in zip(axes.flat, targets.COLLECTIVES):
        for name in ordered:
            points = [(size, table.get(name, collective, ranks, size))
                      for size in table.sizes(collective, ranks)]
            points = [(size, value(size, time)) for size, time in points
                      if time]
            if points:
                axis.plot(*zip(*points), **style(name))
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_title(f"{collective}, {ranks} ranks")
        axis.set_xlabel("bytes")
        axis.set_ylabel(unit)
        axis.grid(True, which="major", alpha=0.3)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    axes.flat[-1].axis("off")
    axes.flat[-1].legend(handles, labels, loc="center", ncol=2)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def draw(table, folder):
    grid(table, 2, lambda size, time: time, "µs", folder / "latency.svg")
    grid(table, 2, lambda size, time: size / time / 1e3, "GB/s",
         folder / "bandwidth.svg")
