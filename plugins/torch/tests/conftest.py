# SPDX-License-Identifier: Apache-2.0
"""Every test leaves /dev/shm as it found it."""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))

_SHM = pathlib.Path("/dev/shm")


def _ours():
    return {p.name for p in _SHM.glob("*axon*")} if _SHM.is_dir() else set()


@pytest.fixture(autouse=True)
def nothing_left_behind():
    before = _ours()
    yield
    left = _ours() - before
    assert not left, f"left in {_SHM}: {sorted(left)}"
