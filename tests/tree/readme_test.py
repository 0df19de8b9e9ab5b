# SPDX-License-Identifier: Apache-2.0
"""The examples of README.md compile and run as they stand."""

import os
import re
import shlex
import socket
import subprocess
import sys

import pytest
from project import ROOT, compiler, run

pytestmark = pytest.mark.built


def example(language):
    """The one code block of README.md in a language."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```$",
                        (ROOT / "README.md").read_text(),
                        re.DOTALL | re.MULTILINE)
    assert len(blocks) == 1, f"{len(blocks)} blocks in {language}"
    return blocks[0]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def run_ranks(command, environments, seconds):
    """Runs one process for each environment; returns their outputs."""
    processes = [subprocess.Popen(
        [str(word) for word in command], env={**os.environ, **environment},
        text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT) for environment in environments]
    try:
        outputs = [process.communicate(timeout=seconds)[0]
                   for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    codes = [process.returncode for process in processes]
    assert codes == [0] * len(codes), f"{codes}\n" + "\n".join(outputs)
    return outputs


def test_c_example(installed, tmp_path):
    pkgconfig, = installed.glob("lib*/**/pkgconfig")
    flags = shlex.split(run(
        ["pkg-config", "--cflags", "--libs", "axon"],
        env=dict(os.environ, PKG_CONFIG_PATH=str(pkgconfig))))
    source, program = tmp_path / "sum.c", tmp_path / "sum"
    source.write_text(example("c"))
    run([compiler("c"), "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
         source, "-o", program, *flags])
    common = {"AXON_SIZE": "2", "AXON_COMM_ID": f"127.0.0.1:{free_port()}",
              "LD_LIBRARY_PATH": str(pkgconfig.parent)}
    outputs = run_ranks([program], [{**common, "AXON_RANK": str(rank)}
                                    for rank in range(2)], seconds=60)
    assert outputs == ["rank 0 of 2: 1\n", "rank 1 of 2: 1\n"]


def test_torch_example(tmp_path):
    source = tmp_path / "example.py"
    source.write_text(example("python"))
    common = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
              "MASTER_PORT": str(free_port()), "OMP_NUM_THREADS": "1"}
    outputs = run_ranks([sys.executable, source],
                        [{**common, "RANK": str(rank), "LOCAL_RANK": str(rank)}
                         for rank in range(2)], seconds=120)
    assert [text.splitlines()[-1] for text in outputs] == [
        "rank 0 of 2: ok", "rank 1 of 2: ok"]
