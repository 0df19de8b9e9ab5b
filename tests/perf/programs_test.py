# SPDX-License-Identifier: Apache-2.0
"""Runs one perf program and reads its table and its JSON.

usage: programs_test.py PROGRAM RANKS [CORRUPTING_LIBRARY]
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = pathlib.Path(sys.argv[1]).resolve()
RANKS = int(sys.argv[2])
CORRUPTING_LIBRARY = sys.argv[3] if len(sys.argv) > 3 else None
NAME = PROGRAM.name.removesuffix("_perf")
REDUCES = NAME in ("all_reduce", "reduce_scatter", "reduce")
ROOTED = NAME in ("broadcast", "reduce", "gather", "scatter")
IN_PLACE = NAME not in ("alltoall", "sendrecv")
TYPES = {"int8": 1, "uint8": 1, "int32": 4, "uint32": 4, "int64": 8,
         "uint64": 8, "half": 2, "float": 4, "double": 8, "bfloat16": 2,
         "f8e4m3": 1, "f8e5m2": 1}
FLOATS = {"half", "float", "double", "bfloat16", "f8e4m3", "f8e5m2"}
OPERATORS = ["sum", "prod", "max", "min", "avg", "mulsum"]
BITWISE = ["bitand", "bitor", "bitxor"]
DEADLINE = 200  # seconds


def bus_factor():
    parts = (RANKS - 1) / RANKS
    return {"all_reduce": 2 * parts, "broadcast": 1, "reduce": 1,
            "sendrecv": 1}.get(NAME, parts)


def run(*arguments, env=None):
    """The finished program, whatever its exit code."""
    return subprocess.run(
        [PROGRAM, "--ranks", str(RANKS), *arguments], text=True,
        capture_output=True, timeout=DEADLINE,
        env={**os.environ, **(env or {})})


def rows(output):
    """The table's lines as lists of columns."""
    return [line.split() for line in output.splitlines()
            if line and not line.startswith("#")]


class ProgramTest(unittest.TestCase):

    def run_right(self, *arguments):
        """The JSON of a run that must succeed, held against its table."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "results.json"
            done = run("-J", file, *arguments)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            result = json.loads(file.read_text())
        self.assertRegex(done.stdout, r"# Out of bounds values : 0 OK\n")
        self.assertTrue(result["out_of_bounds"]["okay"])
        self.assertEqual(result["errors"], [])
        table = rows(done.stdout)
        self.assertEqual(len(table), len(result["results"]))
        for columns, row in zip(table, result["results"]):
            self.assertEqual(len(columns), 13, columns)
            self.assertEqual(columns[:5], [
                str(row[key])
                for key in ("size", "count", "type", "redop", "root")])
        return result

    def test_every_type_and_operator(self):
        result = self.run_right("-b", "0", "-e", "4096", "-i", "1000",
                                "-n", "2", "-d", "all", "-o", "all",
                                *(["-r", "-1"] if ROOTED else []))
        seen = {(r["type"], r["redop"], r["root"]) for r in result["results"]}
        roots = range(RANKS) if ROOTED else [-1]
        self.assertEqual(seen, {
            (t, o, root) for t in TYPES for root in roots
            for o in (OPERATORS + ([] if t in FLOATS else BITWISE)
                      if REDUCES else ["none"])})
        for row in result["results"]:
            self.assertEqual(row["out_of_place"]["nwrong"], 0, row)
            if IN_PLACE:
                self.assertEqual(row["in_place"]["nwrong"], 0, row)
            else:
                self.assertIsNone(row["in_place"])

    def test_sizes_and_bandwidths(self):
        result = self.run_right("-b", "1K", "-e", "1M", "-f", "8")
        config = result["config"]
        self.assertEqual(config["nranks"], RANKS)
        self.assertEqual([d["rank"] for d in config["devices"]],
                         list(range(RANKS)))
        self.assertEqual(len({d["pid"] for d in config["devices"]}), RANKS)
        self.assertEqual([r["size"] for r in result["results"]],
                         [1024, 8192, 65536, 524288])
        for row in result["results"]:
            timing = row["out_of_place"]
            self.assertGreater(timing["time"], 0)
            self.assertAlmostEqual(
                timing["alg_bw"] * timing["time"] * 1000 / row["size"], 1)
            self.assertAlmostEqual(
                timing["bus_bw"], timing["alg_bw"] * bus_factor())

    def test_ways_to_run(self):
        for arguments in (
                "--buffers mapped -R 1", "-R 2 -u 3", "-m 4", "-y 0",
                "-y 0 -z 1", "-y 0 -z 2 -a 3", "-z 3 -a 0 -C 1", "--touch -a 2", "--no-pin",
                "-t 2", "-T 30 -w 0 -c 3"):
            with self.subTest(arguments):
                self.run_right("-b", "512", "-e", "32K", "-f", "64", "-n", "3",
                               *arguments.split())

    def test_statistics(self):
        result = self.run_right("-b", "64", "-e", "64", "-n", "7", "-I")
        samples = result["results"][0]["out_of_place"]["iterations"]
        self.assertEqual(len(samples), 7)
        self.assertAlmostEqual(
            sum(samples) / 7, result["results"][0]["out_of_place"]["time"])

    def test_cycles_repeat_the_table(self):
        result = self.run_right("-b", "64", "-e", "64", "-N", "3", "-c", "0")
        self.assertEqual(len(result["results"]), 3)
        self.assertIsNone(result["results"][0]["out_of_place"]["nwrong"])

    def test_refuses_what_it_cannot_do(self):
        for arguments, reason in (
                ("-g 2", "a thread drives one rank"), ("-G 1", "graphs"),
                ("-d int128", "none of all, int8"), ("-J table.csv", ".json"),
                ("-b 8 -e 4", "smaller than -b"), ("-b 0 -f 2", "never grow"),
                ("-N 0 -J table.json", "-N 0 has none"),
                ("--buffers shared", "private,mapped"),
                ("--unknown", "unknown"),
                *(() if ROOTED else (("-r 1", "has no root"),))):
            with self.subTest(arguments):
                done = run(*arguments.split())
                self.assertEqual(done.returncode, 2, done.stdout)
                self.assertIn(reason, done.stderr + done.stdout)

    def test_refuses_an_unknown_algorithm(self):
        done = run("-b", "64", "-e", "64", "--algorithm", "nonesuch")
        self.assertEqual(done.returncode, 2 if NAME == "sendrecv" else 1)
        self.assertIn("has none" if NAME == "sendrecv" else "nonesuch",
                      done.stderr)

    @unittest.skipUnless(ROOTED, "has no root")
    def test_refuses_a_root_beyond_the_ranks(self):
        done = run("-b", "64", "-e", "64", "-r", str(RANKS))
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"-r {RANKS} is no rank", done.stderr)

    def test_ends_when_a_rank_is_killed(self):
        program = subprocess.Popen(
            [PROGRAM, "--ranks", str(RANKS), "-b", "4K", "-e", "4K", "-N", "0"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            for line in program.stdout:
                if line.startswith("# ") or not line.strip():
                    continue
                victim = self.children(program.pid)[-1]
                os.kill(victim, signal.SIGKILL)
                break
            started = time.monotonic()
            _, errors = program.communicate(timeout=30)
        finally:
            program.kill()
            program.wait()
        self.assertLess(time.monotonic() - started, 30)
        self.assertEqual(program.returncode, 1, errors)
        self.assertRegex(errors, r"process \d+ (was ended by signal 9|ended)")

    @staticmethod
    def children(pid):
        text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
        return [int(child) for child in text.split()]

    @unittest.skipUnless(CORRUPTING_LIBRARY, "no corrupting library given")
    def test_finds_wrong_results(self):
        done = run("-b", "64", "-e", "64", "-d", "all",
                   env={"LD_PRELOAD": CORRUPTING_LIBRARY})
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"Out of bounds values : \d+ FAILED")
        for columns in rows(done.stdout):
            # One element of each rank.
            self.assertEqual([columns[8], columns[12]], [str(RANKS)] * 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
