# SPDX-License-Identifier: Apache-2.0
"""What was measured, by cell: medians over rounds, ratios, targets."""

import collections
import math
import statistics

Key = collections.namedtuple("Key", "name collective type ranks bytes label")
FIELDS = ("round", "label", "name", "collective", "type", "ranks", "bytes",
          "median_us", "p10_us", "calls")
OURS = ("axon", "axon-mapped")
FLOORS = ("floor-push", "floor-pull")
BARRIER_BYTES = 0


def medians(rows):
    """{Key: median over rounds of the medians in us}."""
    found = collections.defaultdict(list)
    for row in rows:
        key = Key(row["name"], row["collective"], row["type"],
                  int(row["ranks"]), int(row["bytes"]), row["label"])
        found[key].append(float(row["median_us"]))
    return {key: statistics.median(values) for key, values in found.items()}


class Table:
    """Medians of one label."""

    def __init__(self, cells, where):
        self.cells = {key[:5]: value for key, value in cells.items()
                      if key.label == where}

    def get(self, name, collective, ranks, size, kind="float32"):
        return self.cells.get((name, collective, kind, ranks, size))

    def names(self, ranks, kind="float32"):
        return sorted({key[0] for key in self.cells if key[2:4] == (kind, ranks)})

    def sizes(self, collective, ranks, kind="float32"):
        return sorted({key[4] for key in self.cells
                       if key[1:4] == (collective, kind, ranks)})

    def best(self, collective, ranks, size, names=None, kind="float32"):
        """(us, name) of the fastest rival, or of `names`; None."""
        found = [(value, key[0]) for key, value in self.cells.items()
                 if key[1:] == (collective, kind, ranks, size)
                 and (key[0] in names if names else
                      key[0] not in OURS + FLOORS)]
        return min(found, default=None)

    def ratio(self, name, collective, ranks, size, kind="float32"):
        """How many times faster `name` is than the best rival; None."""
        best = self.best(collective, ranks, size, kind=kind)
        mine = self.get(name, collective, ranks, size, kind)
        return best[0] / mine if best and mine else None

    def over_floor(self, name, collective, ranks, size):
        """How many times slower `name` is than the floor; None."""
        floor = self.best(collective, ranks, size, FLOORS)
        mine = self.get(name, collective, ranks, size)
        return mine / floor[0] if floor and mine else None


def geometric_mean(values):
    values = list(values)
    if not values:
        return None
    return math.exp(sum(map(math.log, values)) / len(values))
