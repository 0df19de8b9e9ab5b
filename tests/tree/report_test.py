# SPDX-License-Identifier: Apache-2.0
"""benchmarks/report.py: medians, texts and the shape of the document."""

import importlib.util

import pytest
from project import ROOT

_spec = importlib.util.spec_from_file_location(
    "report", ROOT / "benchmarks" / "report.py")
report = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(report)


def test_medians_keep_a_time_and_its_bandwidth_together():
    rounds = [{"a": (3.0, 30.0)}, {"a": (1.0, 99.0)}, {"a": (2.0, 7.0)}]
    assert report.medians(rounds) == {"a": (2.0, 7.0)}


@pytest.mark.parametrize("size, text", [
    (8, "8 B"), (1024, "1 KiB"), (64 << 20, "64 MiB"), (2 << 30, "2 GiB")])
def test_sizes(size, text):
    assert report.size_text(size) == text


@pytest.mark.parametrize("usec, text", [
    (0.1234, "0.123"), (12.34, "12.3"), (123.4, "123"), (12345.6, "12,346")])
def test_times(usec, text):
    assert report.usec_text(usec) == text


def test_document_shows_ratios_and_the_machine():
    perf = {(program, buffers, size): (usec, 1.5)
            for program in report.PROGRAMS
            for buffers, usec in (("private", 2.0), ("mapped", 1.0))
            for size in (8, 1024)}
    times = {("all_reduce", 8, "neuron"): 10.0, ("all_reduce", 8, "gloo"): 45.0}
    text = report.document(perf, times, 2, 3, "A machine")
    assert "A machine. 2 ranks" in text
    assert "| 8 B | 2 | 1.50 | 1 | 1.50 |" in text
    assert "| 8 B | 10 | 45 | 4.5 |" in text
    assert text.count("| 1 KiB |") == len(report.PROGRAMS)
