# SPDX-License-Identifier: Apache-2.0
"""The training example and the torch benchmark run, and notice errors."""

import json
import os
import subprocess
import sys

import pytest
from project import ROOT, run

DIGITS = ROOT / "plugins" / "torch" / "examples" / "digits_ddp.py"
COLLECTIVES = ROOT / "benchmarks" / "torch_collectives.py"


@pytest.mark.slow
@pytest.mark.built
def test_digits_train_to_the_same_parameters():
    text = run([sys.executable, DIGITS], timeout=180)
    assert text.count("parameters differ") == 2  # neuron and gloo
    assert text.splitlines()[-1] == "ok"


@pytest.mark.slow
def test_digits_notice_that_nothing_was_learned():
    """One epoch is too short: the accuracy check must end the run with 1."""
    done = subprocess.run(
        [sys.executable, DIGITS, "--backend", "gloo", "--epochs", "1"],
        capture_output=True, text=True, timeout=180, stdin=subprocess.DEVNULL)
    assert done.returncode != 0
    assert "FAILED" in done.stdout


@pytest.mark.slow
@pytest.mark.built
def test_torch_collectives_write_their_times(tmp_path):
    file = tmp_path / "times.json"
    run([sys.executable, COLLECTIVES, "--json", file], timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1"})
    rows = json.loads(file.read_text())["rows"]
    assert {row["collective"] for row in rows} == {
        "all_reduce", "all_gather", "reduce_scatter"}
    assert all(set(row["usec"]) == {"neuron", "gloo"}
               and min(row["usec"].values()) > 0 for row in rows)
