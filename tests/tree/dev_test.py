# SPDX-License-Identifier: Apache-2.0
"""./dev and .ci/run: syntax, help, refusals, and what they promise to list."""

import os
import re
import shutil
import subprocess

import pytest
from project import ROOT, run


def dev(*arguments, **options):
    return subprocess.run(
        ["bash", options.pop("script", ROOT / "dev"), *arguments], text=True,
        capture_output=True, stdin=subprocess.DEVNULL, timeout=60, **options)


@pytest.mark.parametrize("script", ["dev", ".ci/run"])
def test_scripts_parse_and_are_executable(script):
    run(["bash", "-n", ROOT / script])
    assert os.access(ROOT / script, os.X_OK)


def test_help_lists_every_command():
    text = (ROOT / "dev").read_text()
    known = re.search(r"^  (demo \|.*)\) \"\$command\"", text, re.MULTILINE)
    done = dev("help")
    assert done.returncode == 0
    for command in known.group(1).split(" | ") + ["test"]:
        assert re.search(rf"^  {command}\b", done.stdout, re.MULTILINE), command


@pytest.mark.parametrize("arguments, complaint", [
    (["tset"], "no command 'tset'"),
    (["test", "--fast"], "not '--fast'"),
])
def test_mistakes_are_refused(arguments, complaint):
    done = dev(*arguments)
    assert done.returncode == 1
    assert complaint in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="changes its user")
@pytest.mark.skipif(not shutil.which("dpkg-query"), reason="not Debian's")
def test_without_root_it_names_what_to_install(tmp_path):
    """A stand-in for dpkg-query that knows of no package at all."""
    tmp_path.chmod(0o755)
    for parent in (tmp_path.parent, tmp_path.parent.parent):
        parent.chmod(0o755)
    query = tmp_path / "dpkg-query"
    query.write_text("#!/bin/sh\nexit 1\n")
    query.chmod(0o755)
    script = tmp_path / "dev"
    shutil.copy(ROOT / "dev", script)
    done = dev("build", script=script, user=65534, cwd=tmp_path, env={
        "PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": str(tmp_path)})
    assert done.returncode == 1
    assert "sudo apt-get install -y --no-install-recommends" in done.stderr
    assert "libabsl-dev" in done.stderr and "libmpich-dev" in done.stderr
