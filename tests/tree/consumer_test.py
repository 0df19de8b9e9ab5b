# SPDX-License-Identifier: Apache-2.0
"""Programs outside the tree find, link and run an installed Axon."""

import os
import pathlib
import shlex
import shutil

import pytest
from project import ROOT, compiler, run

pytestmark = pytest.mark.built
CONSUMER = ROOT / "tests" / "tree" / "consumer"


def library_folder(prefix):
    """The folder of libaxon.so below `prefix`."""
    found = list(prefix.glob("lib*/**/libaxon.so"))
    assert len(found) == 1, f"libaxon.so below {prefix}: {found}"
    return found[0].parent


def test_cmake_package(installed, tmp_path):
    source, build = tmp_path / "source", tmp_path / "build"
    shutil.copytree(CONSUMER, source)
    run(["cmake", "-S", source, "-B", build, "-G", "Ninja",
         f"-DCMAKE_PREFIX_PATH={installed}"])
    run(["cmake", "--build", build])
    assert "works from C\n" in run([build / "c_consumer"], timeout=60)
    assert "works from C++\n" in run([build / "cxx_consumer"], timeout=60)


def test_cmake_refuses_another_version(installed, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(other LANGUAGES C)\n"
        "find_package(axon 0.99 REQUIRED)\n")
    with pytest.raises(AssertionError, match="0.99"):
        run(["cmake", "-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja",
             f"-DCMAKE_PREFIX_PATH={installed}"])


def pkg_config(module, prefix):
    """The compiler's flags for an installed module."""
    environment = dict(os.environ, PKG_CONFIG_PATH=str(
        library_folder(prefix) / "pkgconfig"))
    return shlex.split(run(["pkg-config", "--cflags", "--libs", module],
                           env=environment))


def library_path(prefix):
    return dict(os.environ, LD_LIBRARY_PATH=str(library_folder(prefix)))


@pytest.mark.parametrize("language, standard, source", [
    ("c", "c99", "consumer.c"), ("c++", "c++20", "consumer.cc")])
def test_pkg_config(installed, tmp_path, language, standard, source):
    program = tmp_path / "program"
    run([compiler(language), f"-std={standard}", CONSUMER / source, "-o",
         program, *pkg_config("axon", installed), "-pthread"])
    run([program], timeout=60, env=library_path(installed))


@pytest.mark.parametrize("flavour, launcher", [
    ("openmpi", ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"]),
    ("mpich", ["mpiexec.mpich"])])
def test_mpi_program(installed, tmp_path, flavour, launcher):
    if not shutil.which(launcher[0]):
        pytest.skip(f"no {launcher[0]}")
    program = tmp_path / "program"
    run([compiler("c"), "-std=c99", CONSUMER / "mpi.c", "-o", program,
         *pkg_config(f"axon_mpi_{flavour}", installed)])
    text = run([*launcher, "-n", "2", program], timeout=60,
               env=library_path(installed))
    assert "rank 0 of 2 is right" in text and "rank 1 of 2 is right" in text


def test_library_has_a_soname_and_hides_its_inside(installed):
    library = library_folder(installed) / "libaxon.so"
    assert "[libaxon.so.0]" in run(["readelf", "-d", library])
    symbols = [line.split()[-1].split("@")[0] for line in run(
        ["nm", "-D", "--defined-only", library]).splitlines()]
    assert "axonAllReduce" in symbols
    assert not [name for name in symbols if not name.startswith("axon")]


def test_installed_programs_find_their_library(installed):
    programs = list((installed / "bin").glob("*_perf"))
    assert installed / "bin" / "all_reduce_perf" in programs
    for program in programs:
        assert "usage" in run([program, "--help"], timeout=60).lower()


def test_headers_are_all_there(installed):
    ours = {path.name for path in (ROOT / "include" / "axon").glob("*.h")}
    assert {path.name for path in pathlib.Path(
        installed, "include", "axon").iterdir()} == ours
