# SPDX-License-Identifier: Apache-2.0
"""Runs the setup program: what communicators may cost in memory.

usage: setup_test.py PROGRAM
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(sys.argv[1]).resolve()
KIB_OF_ONE_RANK = 64
KIB_OF_HUNDRED_SPLITS_OF_FOUR = 16 << 10


def measure(ranks):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "setup.json"
        subprocess.run([PROGRAM, "--ranks", str(ranks), "--splits", "100",
                        "--json", file], check=True, timeout=200,
                       stdout=subprocess.DEVNULL)
        return json.loads(file.read_text())


def splits_kib(found):
    """Of one rank, all splits."""
    return found["splits_private_kib"] + found["splits_shared_kib"]


class SetupTest(unittest.TestCase):

    def test_one_rank_is_small(self):
        self.assertLess(measure(1)["one_rank_kib"], KIB_OF_ONE_RANK)

    def test_a_hundred_splits_are_small(self):
        self.assertLess(4 * splits_kib(measure(4)),
                        KIB_OF_HUNDRED_SPLITS_OF_FOUR)

    def test_memory_grows_with_ranks_and_not_with_pairs(self):
        # With pairs, a rank's share would grow fourfold.
        self.assertLess(splits_kib(measure(16)), 2 * splits_kib(measure(4)))

    def test_a_wrong_flag_is_refused(self):
        done = subprocess.run([PROGRAM, "--ranks", "0"], text=True,
                              capture_output=True, timeout=60)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("--ranks", done.stderr + done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
