# SPDX-License-Identifier: Apache-2.0
"""tests/ repeats src/: each source has a test, or a reason not to."""

import pathlib

import pytest
from project import files

# Source: the test that covers it, or why it needs none.
COVERED_ELSEWHERE = {
}


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


@pytest.mark.parametrize("source, where", COVERED_ELSEWHERE.items())
def test_exceptions_are_still_needed(source, where):
    assert source in names()
    assert expected_test(source).as_posix() not in names()
    if where.startswith("tests/"):
        assert where in names()


def test_the_rule_sees_a_missing_test():
    tree = {"src/base/a.cc", "src/base/b.cc", "tests/base/b_test.cc",
            "src/transport/shm/c.cc", "tests/transport/c_test.cc"}
    assert sorted(untested(tree)) == ["src/base/a.cc", "src/transport/shm/c.cc"]
