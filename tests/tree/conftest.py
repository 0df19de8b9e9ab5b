# SPDX-License-Identifier: Apache-2.0
"""An installed Axon, for the tests of what users build against."""

import pytest
from project import ROOT, run

BUILD = ROOT / "build" / "release"


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """A prefix outside the tree into which the release build is installed."""
    assert (BUILD / "CMakeCache.txt").exists(), (
        f"{BUILD} is not configured; run ./dev build")
    prefix = tmp_path_factory.mktemp("installed axon")  # a space in the name
    run(["cmake", "--install", BUILD, "--prefix", prefix])
    return prefix
