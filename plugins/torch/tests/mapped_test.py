# SPDX-License-Identifier: Apache-2.0
"""Tensors in shared memory behave as others do, and give the same results."""

import copy
import gc
import io
import os
import pickle
import subprocess
import sys
import threading

import pytest
import torch
import torch.distributed as dist
import torch_axon

import training_test
from harness import run

LARGE = 64 << 10  # bytes from which tensors are mapped, as a rule
COUNT = 50_001  # elements; an odd number, large in every type


def _backend():
    return dist.distributed_c10d._get_default_group()._get_backend(
        torch.device("cpu"))


def _used():
    return torch_axon.shared_memory_stats()["used_bytes"]


def _allocate_tensor(rank, world):
    before = _used()
    x = _backend().allocate_tensor(
        COUNT, dtype=torch.float32, device=torch.device("cpu"))
    assert torch_axon.is_mapped(x) and x.shape == (COUNT,)
    assert x.data_ptr() % 64 == 0
    x.fill_(rank + 1)
    dist.all_reduce(x)
    assert torch.all(x == world * (world + 1) / 2)
    x.resize_(4 * COUNT)
    assert torch_axon.is_mapped(x)
    assert torch.all(x[:COUNT] == world * (world + 1) / 2)
    view = x[10:20]
    dist.destroy_process_group()
    del x
    gc.collect()
    assert torch_axon.is_mapped(view) and _used() > before
    view.fill_(1)  # the memory outlives the group
    drop = [view]
    del view
    thread = threading.Thread(target=drop.clear)
    thread.start()
    thread.join()
    assert _used() == before


def _results(rank, world, dtype):
    """What each collective leaves in large tensors, in order."""
    generator = torch.Generator().manual_seed(rank)
    whole = torch.randn(COUNT * world, generator=generator).to(dtype)
    part = whole[:COUNT].clone()
    out = []
    for op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.MAX):
        x = whole.clone()
        dist.all_reduce(x, op)
        y = torch.empty_like(part)
        dist.reduce_scatter_tensor(y, whole, op)
        out += [x, y]
    for root in range(world):
        x = part.clone()
        dist.broadcast(x, root)
        z = part.clone()
        dist.reduce(z, root)
        out += [x] + ([z] if rank == root else [])
    gathered = torch.empty_like(whole)
    dist.all_gather_into_tensor(gathered, part)
    exchanged = torch.empty_like(whole)
    dist.all_to_all_single(exchanged, whole)
    lists = [torch.empty_like(part) for _ in range(world)]
    dist.all_gather(lists, part)
    strided = whole[::2].clone()[::3]
    dist.all_reduce(strided)
    work = dist.all_reduce(part, async_op=True)
    work.wait()
    return out + [gathered, exchanged, *lists, strided, part]


def _same_results(rank, world, dtype):
    """With all ranks' tensors mapped, with one rank's, with nobody's."""
    private = _results(rank, world, dtype)
    assert not torch_axon.is_mapped(private[0])
    for mapped in ([*range(world)], [0], [world - 1]):
        with torch_axon.use_shared_memory(rank in mapped):
            found = _results(rank, world, dtype)
        assert torch_axon.is_mapped(found[0]) == (rank in mapped)
        assert len(found) == len(private)
        for a, b in zip(found, private):
            assert torch.equal(a, b)


def _train(rank, world, body, arguments):
    with torch_axon.use_shared_memory(minimum_bytes=256):
        getattr(training_test, body)(rank, world, *arguments)
        steady = torch_axon.shared_memory_stats()["reserved"]
        getattr(training_test, body)(rank, world, *arguments)
    stats = torch_axon.shared_memory_stats()
    assert stats["refused"] == 0
    assert 0 < steady
    # What the first training freed serves the second.
    assert stats["reserved"] - steady <= steady // 4


@pytest.mark.parametrize("world", [1, 2, 3])
def test_allocate_tensor(world):
    run(world, _allocate_tensor)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("world", [2, 3])
def test_results_are_those_of_ordinary_memory(world, dtype):
    run(world, _same_results, dtype)


@pytest.mark.parametrize("body, arguments", [
    ("_ddp", ({"bucket_cap_mb": 0.1, "gradient_as_bucket_view": True},)),
    ("_ddp_hooks", ()), ("_fsdp", (False,)), ("_fsdp", (True,)),
    ("_tensor_parallel", ())])
def test_training(body, arguments):
    run(2, _train, body, arguments)


# The rest needs no group; each runs in a process of its own.

def _which_tensors():
    small = torch.ones(LARGE // 4 - 1)
    assert not torch_axon.is_mapped(torch.ones(LARGE // 4))
    with torch_axon.use_shared_memory() as memory:
        assert torch_axon.is_mapped(torch.ones(LARGE // 4))
        assert torch_axon.is_mapped(torch.nn.Linear(300, 300).weight)
        assert not torch_axon.is_mapped(torch.ones(LARGE // 4 - 1))
        assert not torch_axon.is_mapped(small)
        with torch_axon.use_shared_memory(minimum_bytes=100):
            assert torch_axon.is_mapped(torch.ones(25))
            with torch_axon.use_shared_memory(False):
                assert not torch_axon.is_mapped(torch.ones(LARGE))
            assert torch_axon.is_mapped(torch.ones(25))
        assert not torch_axon.is_mapped(torch.ones(25))
    assert not torch_axon.is_mapped(torch.ones(LARGE))
    torch_axon.use_shared_memory()
    assert torch_axon.is_mapped(torch.ones(LARGE))
    del memory
    assert torch_axon.is_mapped(torch.ones(LARGE))
    for wrong in ({"minimum_bytes": 0}, {"cache_bytes": -1}):
        with pytest.raises(ValueError, match="at least"):
            torch_axon.use_shared_memory(**wrong)


def _one_dnn():
    """It frees through the allocator of the moment what it got before."""
    data = torch.randn(100_000)
    before = torch.nn.functional.gelu(data)
    with torch_axon.use_shared_memory():
        assert torch.equal(torch.nn.functional.gelu(data.clone()), before)
        layer = torch.nn.Linear(300, 300).bfloat16()
        layer(torch.ones(400, 300, dtype=torch.bfloat16)).sum().backward()
    assert torch.equal(torch.nn.functional.gelu(data), before)


def _like_any_tensor():
    torch_axon.use_shared_memory()
    x = torch.arange(100_000)
    assert torch_axon.is_mapped(x) and x.data_ptr() % 64 == 0
    assert torch.equal(pickle.loads(pickle.dumps(x)), x)
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    assert torch.equal(torch.load(file), x)
    assert torch.equal(copy.deepcopy(x), x)
    assert torch.equal(torch.from_numpy(x.numpy().copy()), x)
    y = x.clone()
    y.resize_(300_000)
    assert torch_axon.is_mapped(y) and torch.equal(y[:100_000], x)
    y.resize_(10)
    y.untyped_storage().resize_(0)
    z = x.clone().share_memory_()
    assert z.is_shared() and not x.is_shared() and torch.equal(z, x)
    view = torch.from_numpy(x.numpy())  # keeps x's memory alive
    del x
    gc.collect()
    fill = [torch.zeros(100_000, dtype=torch.int64) for _ in range(4)]
    assert torch.equal(view, z) and len(fill) == 4


def _profile():
    torch_axon.use_shared_memory()
    with torch.profiler.profile(profile_memory=True) as profile:
        x = torch.empty(1 << 20)
        del x
    made = [e for e in profile.key_averages() if e.key == "aten::empty"]
    assert made[0].cpu_memory_usage == 4 << 20


def _cache():
    torch_axon.use_shared_memory()
    stats = torch_axon.shared_memory_stats
    for _ in range(5):  # as in a training loop
        kept = [torch.empty(1000 * n) for n in range(20, 60)]
        kept = [x + 1 for x in kept]
        del kept
        first = first if _ else stats()["reserved"]
    assert stats()["reserved"] <= first + 40
    steady = stats()["reserved"]
    for _ in range(50):
        kept = [torch.empty(1000 * n) for n in range(20, 60)]
        kept = [x + 1 for x in kept]
        del kept
    assert stats()["reserved"] == steady
    assert stats()["used_bytes"] == 0
    # Bounded, whatever the sizes: at most the most that was used, and half.
    for n in range(1, 150):
        torch.empty(n << 20, dtype=torch.uint8)
        assert stats()["kept_bytes"] <= max(64, 3 * (n + n // 8 + 1) / 2) * 2**20
    torch_axon.use_shared_memory(cache_bytes=1 << 20)
    assert stats()["kept_bytes"] <= 1 << 20
    torch.empty(8 << 20)
    assert stats()["kept_bytes"] <= 1 << 20
    torch_axon.use_shared_memory()
    torch.empty(8 << 20)
    for _ in range(2):  # turning it off and on costs nothing that was kept
        with torch_axon.use_shared_memory(False):
            assert stats()["kept_bytes"] >= 32 << 20
    torch_axon.use_shared_memory(False, cache_bytes=0)
    assert stats()["kept_bytes"] == 0


def _threads():
    torch_axon.use_shared_memory()
    wrong = []

    def work(seed):
        mine = []
        for i in range(400):
            n = 20_000 + 1000 * ((seed * 7 + i * 13) % 40)
            mine.append((torch.full((n,), seed * 1000 + i), seed * 1000 + i))
            if len(mine) > 8:
                x, value = mine.pop(i % 8)
                if not torch.all(x == value):
                    wrong.append(value)

    threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and _used() == 0


def _exhausted():
    torch_axon.use_shared_memory()
    stats = torch_axon.shared_memory_stats
    kept = []
    for _ in range(100):  # the arena has 16 MiB
        kept.append(torch.full((1 << 18,), float(len(kept))))
    mapped = sum(map(torch_axon.is_mapped, kept))
    assert 10 < mapped < 16 and stats()["refused"] == 100 - mapped
    assert all(torch.all(x == float(i)) for i, x in enumerate(kept))
    del kept
    assert torch_axon.is_mapped(torch.ones(1 << 18)), "what was kept"
    torch_axon.use_shared_memory(cache_bytes=0)
    assert stats()["kept_bytes"] == 0
    assert torch_axon.is_mapped(torch.ones(3 << 20)), "all is free again"


def _more_than_there_is():
    torch_axon.use_shared_memory()
    with open("/proc/meminfo", encoding="ascii") as file:
        available = next(int(line.split()[1]) << 10 for line in file
                         if line.startswith("MemAvailable"))
    x = torch.empty(available * 3 // 4, dtype=torch.uint8)  # never touched
    assert not torch_axon.is_mapped(x)


def _child(body):
    """Runs body() in a child of fork; its assertions count."""
    pid = os.fork()
    if pid == 0:
        try:
            body()
            os._exit(0)
        except BaseException as error:  # noqa: BLE001
            print(repr(error), flush=True)
            os._exit(1)
    return pid


def _ended(pid):
    assert os.waitpid(pid, 0)[1] == 0


def _fork():
    torch_axon.use_shared_memory()
    x = torch.ones(1 << 16)
    dropped = [torch.full((1 << 16,), 7.0)]
    (go, start), (done, finish) = os.pipe(), os.pipe()

    def body():
        os.close(start)
        mine = torch.zeros(1 << 16)
        assert not torch_axon.is_mapped(mine)
        x.fill_(2)  # the child's own
        os.write(finish, b"1")
        os.read(go, 1)  # the parent has dropped it, and made others
        assert torch.all(dropped[0] == 7) and torch.all(x == 2)
        dropped.clear()
        for _ in range(10):
            torch.zeros(1 << 16)

    pid = _child(body)
    os.read(done, 1)
    assert torch.all(x == 1)
    dropped.clear()
    assert torch_axon.shared_memory_stats()["held_bytes"] == 1 << 18
    others = [torch.zeros(1 << 16) for _ in range(8)]
    assert all(map(torch_axon.is_mapped, others))
    os.write(start, b"1")
    _ended(pid)
    assert torch.all(x == 1) and all(torch.all(o == 0) for o in others)
    assert torch_axon.shared_memory_stats()["held_bytes"] == 0


def _data_loader():
    torch_axon.use_shared_memory()
    data = torch.arange(1 << 18).reshape(16, -1)
    assert torch_axon.is_mapped(data)

    class Rows(torch.utils.data.Dataset):
        def __len__(self):
            return len(data)

        def __getitem__(self, i):
            data[i] += 1  # each worker's own
            assert not torch_axon.is_mapped(data[i].clone())
            return data[i]

    before = data.clone()
    for _ in range(2):
        loader = torch.utils.data.DataLoader(
            Rows(), batch_size=4, num_workers=2,
            multiprocessing_context="fork")
        got = torch.cat(list(loader))
        assert torch.equal(got, before + 1)
        assert torch.equal(data, before)
    _ended(_child(lambda: _ended(_child(lambda: data.fill_(0)))))
    assert torch.equal(data, before)


ALONE = [_which_tensors, _one_dnn, _like_any_tensor, _profile, _cache, _threads,
         _more_than_there_is, _fork, _data_loader]


def _alone(body, ending="", **environment):
    script = (f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})\n"
              "import torch; torch.set_num_threads(1)\n"
              f"import mapped_test\nmapped_test.{body.__name__}()\n{ending}")
    done = subprocess.run(
        [sys.executable, "-c", script], timeout=60, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, env=dict(
            os.environ, PYTHONFAULTHANDLER="1", **environment))
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.parametrize("body", ALONE, ids=lambda body: body.__name__[1:])
def test_alone(body):
    _alone(body)


def test_short_memory_is_no_error():
    text = _alone(_exhausted, AXON_ARENA_SIZE="16M")
    assert text.count("not enough shared memory") == 1, text


def test_tensors_may_be_the_last_to_go():
    _alone(_which_tensors, "import builtins; "
           "builtins.last = [torch.ones(1 << 16), torch.ones(1 << 20)]\n"
           "builtins.last.append(builtins.last)")
