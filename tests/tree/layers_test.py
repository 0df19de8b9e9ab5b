# SPDX-License-Identifier: Apache-2.0
"""The layers of src/: which folder may include which.

A quoted include of src/ names a file from src/ ("base/status.h"), of the public
headers ("axon/axon.h"), of Abseil or of Highway. Everything else that a folder
includes must stand in ALLOWED. What is outside src/ sees the public headers
only, but for the programs that measure the inside.
"""

import pathlib
import re

import pytest
from project import CXX, ROOT, files

ALLOWED = {
    "base": set(),
    "topo": {"base"},
    "schedule": {"base"},
    "bootstrap": {"base"},
    "transport": {"base", "topo/machine.h"},
    "select": {"base", "topo", "schedule"},
    "engine": {"base", "schedule", "transport"},
    "comm": {"base", "topo", "schedule", "bootstrap", "transport", "select",
             "engine"},
    "api": {"base", "comm"},
}
LIBRARIES = {
    "absl": set(ALLOWED),
    "hwy": {"engine"},
    "axon": {"api"},  # the public headers
}
# Who sees the public headers only; other benchmarks measure the inside.
OUTSIDE = re.compile(r"(plugins|tools|benchmarks/perf)/|benchmarks/\w+_perf\.")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)


def wrong_include(layer, include):
    """Why a file of `layer` may not include "`include`"; None if it may."""
    head = include.split("/")[0]
    if head == layer:
        return None
    if head in LIBRARIES:
        return (None if layer in LIBRARIES[head]
                else f"{layer} does not use {head}")
    if head not in ALLOWED or "/" not in include:
        return "not a path from src/"
    if head in ALLOWED[layer] or include in ALLOWED[layer]:
        return None
    return f"{layer} may not include {head}"


def wrong_includes(source):
    """All forbidden includes of the layers in the folder `source`."""
    for path in sorted(source.rglob("*")):
        if path.suffix not in CXX:
            continue
        layer = path.relative_to(source).parts[0]
        assert layer in ALLOWED, f"{path}: unknown layer '{layer}'"
        for include in INCLUDE.findall(path.read_text()):
            if why := wrong_include(layer, include):
                yield f'{path}: #include "{include}": {why}'


def test_every_include_of_src_follows_the_table():
    assert not list(wrong_includes(ROOT / "src"))


def test_the_table_has_no_cycle():
    done = set()
    while len(done) < len(ALLOWED):
        ready = {layer for layer, below in ALLOWED.items() if layer not in done
                 and {name.split("/")[0] for name in below} <= done}
        assert ready, f"a cycle among {set(ALLOWED) - done}"
        done |= ready


def test_users_include_only_the_public_headers():
    wrong = []
    for path in files(*CXX):
        if not OUTSIDE.match(path.as_posix()):
            continue
        for include in INCLUDE.findall((ROOT / path).read_text()):
            if include.split("/")[0] in ALLOWED:
                wrong.append(f'{path}: #include "{include}"')
    assert not wrong


@pytest.mark.parametrize("file, include, allowed", [
    ("base/a.h", "base/b.h", True),
    ("base/a.h", "absl/strings/string_view.h", True),
    ("base/a.cc", "schedule/b.h", False),
    ("base/a.cc", "b.h", False),
    ("schedule/a.cc", "hwy/highway.h", False),
    ("engine/a.cc", "hwy/highway.h", True),
    ("engine/a.cc", "select/b.h", False),
    ("transport/shm/a.cc", "topo/machine.h", True),
    ("transport/shm/a.cc", "topo/order.h", False),
    ("comm/a.cc", "api/b.h", False),
    ("comm/a.cc", "axon/axon.h", False),
    ("api/a.cc", "axon/axon.h", True),
    ("api/a.cc", "engine/b.h", False),
])
def test_the_rule_sees_a_forbidden_include(tmp_path, file, include, allowed):
    path = tmp_path / pathlib.Path(file)
    path.parent.mkdir(parents=True)
    path.write_text(f'#include <vector>\n  #  include "{include}"  // why\n')
    assert (not list(wrong_includes(tmp_path))) == allowed
