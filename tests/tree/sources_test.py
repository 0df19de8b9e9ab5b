# SPDX-License-Identifier: Apache-2.0
"""tests/ repeats src/: each source has a test, or a reason not to."""

import pathlib

import pytest
from project import files

# A test: the sources it covers besides its own namesake.
COVERS = {
    # Every row of the table of algorithms is proved for every number of ranks.
    "tests/schedule/algorithms_test.cc": [
        "src/schedule/binomial.cc", "src/schedule/bruck.cc",
        "src/schedule/dissemination.cc", "src/schedule/halving_doubling.cc",
        "src/schedule/mesh.cc", "src/schedule/one_shot.cc",
        "src/schedule/pairwise.cc", "src/schedule/recursive_doubling.cc",
        "src/schedule/ring.cc", "src/schedule/scatter_allgather.cc",
        "src/schedule/tree.cc"],
    # What the checker looks at first.
    "tests/schedule/check_test.cc": ["src/schedule/sound.cc"],
    # One table of kernels, filled by element type.
    "tests/engine/kernels_test.cc": [
        "src/engine/kernels_floats.cc", "src/engine/kernels_integers.cc",
        "src/engine/kernels_narrow.cc"],
    # The prover in three parts.
    "tests/engine/prove_test.cc": [
        "src/engine/prove_memory.cc", "src/engine/prove_pairs.cc"],
    "tests/base/settings_test.cc": ["src/base/settings_table.cc"],
    # A meeting is tested as a whole, from both ends.
    "tests/bootstrap/rendezvous_test.cc": [
        "src/bootstrap/connection.cc", "src/bootstrap/meeting.cc"],
    "tests/bootstrap/local_exchange_test.cc": [
        "src/bootstrap/fd_message.cc", "src/bootstrap/local_listener.cc"],
    "tests/bootstrap/socket_test.cc": ["src/bootstrap/address.cc"],
    "tests/bootstrap/unique_id_test.cc": ["src/bootstrap/random.cc"],
    # Communicators are tested from outside, by what they do and how they fail.
    "tests/api/communicators_test.cc": [
        "src/comm/communicator.cc", "src/comm/create.cc"],
    "tests/api/split_test.cc": ["src/comm/split.cc"],
    "tests/api/collectives_test.cc": ["src/comm/start.cc"],
    "tests/api/cycles_test.cc": ["src/comm/process.cc"],
    "tests/api/meeting_test.cc": ["src/comm/membership.cc"],
    "tests/api/messages_test.cc": ["src/comm/message_batch.cc",
                                   "src/comm/tasks.cc"],
    "tests/api/quick_test.cc": ["src/comm/quick.cc"],
    "tests/api/timeout_test.cc": ["src/comm/waiting.cc"],
}
COVERED_ELSEWHERE = {source: test for test, sources in COVERS.items()
                     for source in sources}


def expected_test(source):
    layer, *rest = pathlib.PurePosixPath(source).parts[1:]
    path = pathlib.PurePosixPath("tests", layer, *rest)
    return path.with_name(f"{path.stem}_test.cc")


def untested(names):
    """Sources of `names` without a test among `names`."""
    for name in names:
        if name.startswith("src/") and name.endswith(".cc"):
            if (name not in COVERED_ELSEWHERE
                    and expected_test(name).as_posix() not in names):
                yield name


def names():
    return {path.as_posix() for path in files()}


def test_every_source_has_a_test():
    assert not sorted(untested(names()))


@pytest.mark.parametrize("source, test", COVERED_ELSEWHERE.items())
def test_exceptions_are_still_needed(source, test):
    assert source in names()
    assert expected_test(source).as_posix() not in names()
    assert test in names()


def test_the_rule_sees_a_missing_test():
    tree = {"src/base/a.cc", "src/base/b.cc", "tests/base/b_test.cc",
            "src/transport/shm/c.cc", "tests/transport/c_test.cc"}
    assert sorted(untested(tree)) == ["src/base/a.cc", "src/transport/shm/c.cc"]
