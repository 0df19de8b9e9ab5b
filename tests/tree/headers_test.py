# SPDX-License-Identifier: Apache-2.0
"""Every header compiles alone, and the public ones also as C99."""

import concurrent.futures
import os
import shlex
import shutil

import pytest
from project import ROOT, compiler, files, run

CXX_FLAGS = ["-std=c++20", "-Isrc", "-Iinclude", "-I."]
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def header_names():
    """All but those that Highway includes once for each vector unit."""
    found = files(".h", under="src/") + files(".h", under="include/")
    found += files(".h", under="tests/")
    return [path.as_posix() for path in found
            if not path.name.endswith("-inl.h")]


def mpi_flags():
    """How to find mpi.h, or None on a machine without MPI."""
    for wrapper, flag in (("mpicc.openmpi", "--showme:compile"),
                          ("mpicc.mpich", "-compile-info")):
        if shutil.which(wrapper):
            words = shlex.split(run([wrapper, flag]))
            return [word for word in words if word.startswith("-I")]
    return None


def compile_alone(name, language, flags, cwd=ROOT):
    """The compiler's complaint about a file with only this include."""
    if 'include <mpi.h>' in (cwd / name).read_text():
        extra = mpi_flags()
        if extra is None:
            return ""
        flags = flags + extra
    try:
        run([compiler(language), *flags, "-fsyntax-only", "-x", language,
             "-include", name, "/dev/null"], cwd=cwd)
    except AssertionError as error:
        return f"{name}: {error}"
    return ""


def complaints(names, language, flags):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda name: compile_alone(name, language, flags),
                         names)
        return [text for text in found if text]


@pytest.mark.slow
def test_every_header_stands_alone():
    assert not complaints(header_names(), "c++", CXX_FLAGS)


def test_public_headers_are_strict_c99():
    names = [path.as_posix() for path in files(".h", under="include/")]
    assert names
    assert not complaints(names, "c", ["-std=c99", "-Iinclude", *STRICT])


def test_the_rule_sees_a_header_that_leans_on_another(tmp_path):
    (tmp_path / "a.h").write_text("inline std::vector<int> F() { return {}; }")
    (tmp_path / "b.h").write_text("#include <vector>\n#include \"a.h\"\n")
    assert "vector" in compile_alone("a.h", "c++", ["-I."], tmp_path)
    assert not compile_alone("b.h", "c++", ["-I."], tmp_path)
