# SPDX-License-Identifier: Apache-2.0
"""benchmarks/compare: labels, medians, ratios, targets, the document."""
import importlib
import subprocess
import sys

import pytest

from project import ROOT


@pytest.fixture(scope="module")
def compare():
    """The modules of the folder by name, as its program imports them."""
    folder = str(ROOT / "benchmarks" / "compare")
    sys.path.insert(0, folder)
    try:
        yield {name: importlib.import_module(name) for name in (
            "cells", "document", "rivals", "rounds", "targets")}
    finally:
        sys.path.remove(folder)


def row(name, usec, *, collective="all_reduce", size=65536, ranks=2,
        kind="float32", label="near"):
    return {"round": 0, "label": label, "name": name, "collective": collective,
            "type": kind, "ranks": str(ranks), "bytes": str(size),
            "median_us": str(usec), "p10_us": str(usec), "calls": "7"}


@pytest.mark.parametrize("nanoseconds, label", [
    (30, "near"), (79, "near"), (100, "mixed"), (121, "far")])
def test_labels(compare, nanoseconds, label):
    assert compare["rounds"].label(nanoseconds) == label


def test_medians_are_of_equal_labels_only(compare):
    found = compare["cells"].medians(
        [row("ompi", 1), row("ompi", 3), row("ompi", 8),
         row("ompi", 99, label="far")])
    assert sorted(found.values()) == [3, 99]


def table(compare, rows, label="near"):
    cells = compare["cells"]
    return cells.Table(cells.medians(rows), label)


def test_ratios_are_to_the_best_rival(compare):
    found = table(compare, [row("axon", 2), row("axon-mapped", 1),
                            row("ompi", 9), row("impi", 6),
                            row("floor-push", 0.5), row("floor-pull", 0.8)])
    assert found.ratio("axon", "all_reduce", 2, 65536) == 3
    assert found.over_floor("axon-mapped", "all_reduce", 2, 65536) == 2
    assert found.ratio("axon", "all_reduce", 4, 65536) is None
    assert found.ratio("axon", "broadcast", 2, 65536) is None


def verdict(compare, rows, what, target, vectors="AVX2"):
    found = [v for v in compare["targets"].near(
        table(compare, rows), vectors)
             if v.what == what and v.target == target]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("usec, met", [(5, True), (5.2, False)])
def test_a_target_is_met_or_missed(compare, usec, met):
    what = "private all-reduce at 64 KiB, 4 MiB, 64 MiB"
    found = verdict(compare, [row("axon", usec), row("impi", 6.1)], what,
                    "at least 1.2×")
    assert found.met is met
    assert "all_reduce, 65536 B" in found.value


def test_what_was_not_measured_is_neither(compare):
    found = verdict(compare, [], "private reduce-scatter from 64 KiB",
                    "at least 1.3×")
    assert found.met is None
    assert found.value == "not measured"


def test_smoothness_is_by_doubling(compare):
    # 16 times the time over 4 times the size: 4 a doubling.
    found = verdict(compare, [row("axon", 1, size=4096),
                              row("axon", 16, size=16384)],
                    "smoothness", "a doubling costs at most 3.5×")
    assert found.value.startswith("4.00×")
    assert found.met is False


@pytest.mark.parametrize("flags, vectors, limit", [
    ("sse4_2 avx2 avx512f", "AVX-512", 0.8), ("sse4_2 avx2", "AVX2", 0.6)])
def test_bfloat16_is_to_reach_what_the_cpu_allows(compare, flags, vectors,
                                                   limit):
    assert compare["targets"].vectors(f"flags\t: fpu {flags}\n") == vectors
    for half, met in ((100 / limit - 1, True), (100 / limit + 1, False)):
        found = verdict(
            compare, [row("axon-mapped", 100),
                      row("axon-mapped", half, kind="bfloat16")],
            "bfloat16 sums, bytes a second of float32's, mapped",
            f"at least {limit}× with {vectors}", vectors)
        assert found.met is met


def test_bfloat16_has_no_target_without_avx2(compare):
    assert compare["targets"].vectors("flags\t: fpu sse4_2\n") == "SSE4"
    assert compare["targets"].half_types(table(compare, []), "SSE4") == []


def torch_row(size, **usec):
    return {"collective": "all_reduce", "type": "float32", "size": size,
            "usec": usec}


@pytest.mark.parametrize("neuron, met", [(5.5, True), (5.6, False)])
def test_torch_targets(compare, neuron, met):
    over, small, *rest = compare["targets"].torch(
        [torch_row(8, neuron=neuron, gloo=100.0, fake=2.5)])
    assert over.met is met
    assert small.met is (100 / neuron >= 20)
    assert {row.met for row in rest} == {None}


LIBRARY = """
#include "method.h"
struct Alone : compare::Library {
  int rank() const override { return 0; }
  int ranks() const override { return 1; }
  void Barrier() override {}
  void Max(std::vector<double>*) override {}
  bool Has(compare::Kind kind, compare::Type) const override {
    return kind == compare::kAllGather;
  }
  void Run(compare::Kind, compare::Type, const void* in, void* out,
           size_t count, int) override {
    std::memcpy(out, in, count * 4 - (count > 9999 ? LACKS : 0));
  }
};
int main() {
  Alone alone;
  compare::Options options;
  options.seconds = 0;
  compare::Measurement(alone, options).All();
}
"""


def compiled(source, program, *flags):
    folder = ROOT / "benchmarks" / "compare"
    subprocess.run(["g++", "-std=c++17", "-O1", "-mavx2", f"-I{folder}", *flags,
                    source, "-o", program], check=True, timeout=120)
    return program


@pytest.mark.slow
@pytest.mark.parametrize("lacks", [0, 4])
def test_a_wrong_result_ends_the_program(tmp_path, lacks):
    source = tmp_path / "alone.cc"
    source.write_text(LIBRARY)
    done = subprocess.run(
        [compiled(source, tmp_path / "alone", f"-DLACKS={lacks}")],
        capture_output=True, text=True, timeout=120)
    assert (done.returncode != 0) == (lacks != 0)
    assert ("all_gather of 16384 elements" in done.stderr) == (lacks != 0)


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["push", "pull"])
def test_the_floor_is_right(tmp_path, variant):
    source = ROOT / "benchmarks" / "compare" / "floor.cc"
    done = subprocess.run(
        [compiled(source, tmp_path / "floor"), "floor", "0", "float32", "2",
         variant], capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 5 * 13 + 1


def test_the_document_has_every_part(compare):
    rows = [row(name, 2, ranks=ranks, label=label)
            for name in ("axon", "axon-mapped", "impi", "floor-push")
            for ranks in (2, 4) for label in ("near", "far")]
    rows.append(row("axon", 3, kind="bfloat16"))
    torch = {"label": "near", "left_out": {"neuron-mapped": "no memory"},
             "rows": [torch_row(8, neuron=4.0, gloo=400.0, fake=2.5)]}
    text = compare["document"].document(
        compare["cells"].medians(rows), "A machine", 3, {"mpich": "no\nluck"},
        torch, "AVX2")
    for heading in ("Targets, near", "Targets, far", "2 ranks, near, float32",
                    "4 ranks, far, float32", "2 ranks, near, bfloat16",
                    "torch.distributed", "What did not run"):
        assert f"## {heading}" in text
    assert ("| all_reduce | 64 KiB | 2.00 | 2.00 | 2.00 | 2.00 | impi | 1.00× "
            "| 1.00× | 1.00× |") in text
    assert "| 64 KiB | 1.00× / 1.00× |" in text
    assert "neuron-mapped is left out: no memory" in text
    assert "- mpich: no luck" in text
    assert "| 100.0× |" in text


def test_a_busy_machine_is_told_of(compare):
    cells = compare["cells"].medians([row("axon", 1, label="busy")])
    text = compare["document"].document(cells, "A machine", 1, {}, None,
                                          "AVX2")
    assert "Nothing can be compared" in text


def test_each_rank_of_axon_is_a_process_and_rivals_start_themselves(compare):
    entries = compare["rivals"].entries("/folder", 0.01)
    for entry in entries:
        assert len(entry.commands) == (
            entry.ranks if entry.axon or entry.name == "gloo" else 1)
    assert [(e.name, e.ranks) for e in entries[:2]] == [("axon", 2)] * 2
    names = {(entry.name, entry.ranks) for entry in entries}
    assert ("impi", 4) in names and ("mpich", 4) not in names
    half = {entry.name for entry in entries
            if any("bfloat16" in words for words in entry.commands)}
    assert half == {"axon", "axon-mapped", "impi", "mpich5", "oneccl"}


class Idle:
    """Patience for a machine that is always idle, or never."""

    def __init__(self, idle):
        self.await_idle = lambda: idle


def test_all_bursts_share_the_patience(compare, monkeypatch):
    rounds = compare["rounds"]
    clock = iter(range(0, 100, 2))
    monkeypatch.setattr(rounds.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(rounds, "looks_idle", lambda: False)
    patience = rounds.Patience(10)
    assert not patience.await_idle()
    assert patience.seconds == 0
    monkeypatch.setattr(rounds, "looks_idle", lambda: True)
    assert patience.await_idle()


def test_a_program_that_fails_is_told_of(compare, tmp_path, monkeypatch):
    rounds = compare["rounds"]
    monkeypatch.setattr(rounds, "line_nanoseconds", lambda folder: 40)
    entry = compare["rivals"].Entry("bad", 2, (
        ("sh", "-c", "echo a,b,c,2,8,1,1,7; echo why >&2; exit 3"),))
    _, rows, where, error = rounds.burst(tmp_path, entry, Idle(True))
    assert rows == [["a", "b", "c", "2", "8", "1", "1", "7"]]
    assert (where, error) == ("near", "why")


def test_a_program_that_hangs_is_ended(compare, tmp_path, monkeypatch):
    rounds = compare["rounds"]
    monkeypatch.setattr(rounds, "line_nanoseconds", lambda folder: 40)
    entry = compare["rivals"].Entry("hangs", 2, (("sleep", "100"),), limit=0.5)
    _, rows, where, error = rounds.burst(tmp_path, entry, Idle(False))
    assert (rows, where) == ([], "busy")
    assert "did not end" in error


def test_a_rival_that_is_not_there_is_told_of(compare, tmp_path, monkeypatch):
    rounds = compare["rounds"]
    monkeypatch.setattr(rounds, "line_nanoseconds", lambda folder: 40)
    entry = compare["rivals"].Entry("gone", 2, (("/no/such/mpiexec",),))
    one = rounds.burst(tmp_path, entry, Idle(True))
    assert (one.rows, one.error) == ([], "/no/such/mpiexec is missing")


def bursts_of(compare, placements, late=lambda: False):
    """What one_round makes of entries, each with the labels of its runs in
    turn (its last one again and again), by name; and how many runs it took."""
    ran = {name: 0 for name in placements}

    def run(entry):
        labels = placements[entry.name]
        label = labels[min(ran[entry.name], len(labels) - 1)]
        ran[entry.name] += 1
        error = "why" if label == "failed" else ""
        return compare["rounds"].Burst(entry, [[entry.name]], label, error)

    entries = [compare["rivals"].Entry(name, int(name[-1]), ())
               for name in placements]
    found = compare["rounds"].one_round(entries, run, late)
    assert [one.entry for one in found] == entries[:len(found)]
    return {one.entry.name: one.label for one in found}, ran


def test_bursts_apart_from_their_round_are_run_again(compare):
    found, ran = bursts_of(compare, {
        "a2": ["near"], "b2": ["far", "far", "near"], "c2": ["near"],
        "d2": ["busy", "near"], "e4": ["far"], "f4": ["mixed", "far"]})
    assert found == {"a2": "near", "b2": "near", "c2": "near", "d2": "near",
                     "e4": "far", "f4": "far"}
    assert ran == {"a2": 1, "b2": 3, "c2": 1, "d2": 2, "e4": 1, "f4": 2}


def test_bursts_are_run_again_a_few_times_and_then_left_out(compare):
    found, ran = bursts_of(compare, {"a2": ["near"], "b2": ["near"],
                                     "c2": ["far"], "d2": ["mixed"]})
    assert found["c2"] == "far apart" and found["d2"] == "mixed"
    assert ran["c2"] == ran["d2"] == 1 + compare["rounds"].AGAIN
    cells = compare["cells"].medians([row("axon", 1, label=found["c2"])])
    assert table(compare, [row("axon", 1, label=found["c2"])], "far").get(
        "axon", "all_reduce", 2, 65536) is None and len(cells) == 1


def test_what_failed_neither_counts_nor_is_run_again(compare):
    found, ran = bursts_of(compare, {"a2": ["failed"], "b2": ["failed"],
                                     "c2": ["far"]})
    assert found["c2"] == "far"
    assert ran == {"a2": 1, "b2": 1, "c2": 1}


def test_a_round_without_a_placement_is_left_as_it_is(compare):
    assert bursts_of(compare, {"a2": ["busy"], "b2": ["mixed"]})[1] == {
        "a2": 1, "b2": 1}


def test_a_round_ends_when_it_is_late(compare):
    looks = iter([False, False, True] + 9 * [True])
    found, _ = bursts_of(compare, {"a2": ["near"], "b2": ["far"],
                                   "c2": ["far"]}, lambda: next(looks))
    assert list(found) == ["a2", "b2"]
