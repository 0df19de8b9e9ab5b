# SPDX-License-Identifier: Apache-2.0
"""Where the project's files are, for the tests of the tree itself."""

import functools
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
CXX = (".cc", ".cpp", ".h", ".c")


@functools.cache
def _listed():
    """Files that git tracks or would track, relative to the root."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, check=True, capture_output=True, text=True, timeout=60)
    return sorted({pathlib.Path(name)
                   for name in listing.stdout.split("\0") if name})


def files(*suffixes, under=""):
    """The project's files below `under` with one of `suffixes` (none: all)."""
    return [path for path in _listed()
            if path.as_posix().startswith(under)
            and (not suffixes or path.suffix in suffixes)
            and (ROOT / path).is_file()]


def run(command, **options):
    """Runs a command with a deadline; its output is shown when it fails."""
    done = subprocess.run([str(word) for word in command], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL,
                          **{"timeout": 300, **options})
    assert done.returncode == 0, (
        f"{command} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def compiler(language):
    """The compiler of a language ("c" or "c++"), by its usual names."""
    names = {"c": ("cc", "gcc"), "c++": ("c++", "g++")}[language]
    return next(path for name in names if (path := shutil.which(name)))
