# SPDX-License-Identifier: Apache-2.0
"""The interpreter ends cleanly, whatever is left open or in flight."""

import os
import socket
import subprocess
import sys

import pytest

START = """
import os, sys, time, torch, torch.distributed as dist
torch.set_num_threads(1)
dist.init_process_group("axon")
rank, world = dist.get_rank(), dist.get_world_size()
x = torch.ones(1000)
dist.all_reduce(x)
assert x[0] == world
"""

ENDINGS = {
    "no destroy": "",
    "queued": """
works = [dist.all_reduce(torch.ones(1000), async_op=True) for _ in range(20)]
""",
    "callbacks": """
for _ in range(20):
    dist.all_reduce(x, async_op=True).get_future().then(lambda f: f.value())
""",
    "never matched": """
dist.barrier()
if rank == 0:
    work = dist.isend(torch.ones(2_000_000), 1)
    future = dist.all_reduce(x, async_op=True).get_future()
    future.then(lambda f: f.value())
""",
    "thread inside a call": """
import threading
if rank == 0:
    def late():
        try:
            dist.all_reduce(x)
        except Exception:
            pass
    threading.Thread(target=late, daemon=True).start()
    time.sleep(0.3)
else:
    time.sleep(0.5)
""",
    "dropped group": """
group = dist.new_group([0, 1])
work = dist.all_reduce(x, group=group, async_op=True)
del group
dist.destroy_process_group()
""",
    "exception": """
try:
    1 / 0
except ZeroDivisionError:
    sys.exit(0)
""",
    "forked child": """
pid = os.fork()
if pid == 0:
    sys.exit(0)
assert os.waitpid(pid, 0)[1] == 0
dist.all_reduce(x)
dist.destroy_process_group()
""",
}


def _port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _run(script):
    port = str(_port())
    ranks = [subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
        env=dict(os.environ, RANK=str(r), WORLD_SIZE="2",
                 MASTER_ADDR="127.0.0.1", MASTER_PORT=port,
                 PYTHONFAULTHANDLER="1")) for r in range(2)]
    try:
        for rank in ranks:
            text, _ = rank.communicate(timeout=60)
            assert rank.returncode == 0, (rank.returncode, text)
    finally:
        for rank in ranks:
            if rank.poll() is None:
                rank.kill()
                rank.communicate()


@pytest.mark.parametrize("ending", ENDINGS)
def test_exit(ending):
    _run(START + ENDINGS[ending])


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["callbacks", "never matched"])
def test_exit_is_clean_each_time(ending):
    for _ in range(4):
        _run(START + ENDINGS[ending])
