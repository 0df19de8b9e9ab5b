# SPDX-License-Identifier: Apache-2.0
"""Runs a function on several ranks, each a process of its own.

The processes come from a fork server that has torch loaded, so a test costs
tenths of a second. Each test has a deadline; when it passes, every rank prints
where it is and is killed.
"""

import faulthandler
import importlib.util
import inspect
import multiprocessing
import os
import time
import traceback
from datetime import timedelta

import torch
import torch.distributed as dist

DEADLINE = 60.0
GROUP_TIMEOUT = timedelta(seconds=30)

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(
    ["torch", "torch.distributed", "torch.nn.parallel", "torch_axon", "pytest"])


def _load(path, name):
    """The function `name` of a test file, whatever pytest calls the module."""
    spec = importlib.util.spec_from_file_location("ranks_of_a_test", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def _rank(path, name, rank, world, port, backend, timeout, deadline, args,
          pipe):
    faulthandler.dump_traceback_later(deadline - 2, exit=True)
    torch.set_num_threads(1)
    try:
        body = _load(path, name)
        store = dist.TCPStore(
            "127.0.0.1", port, is_master=False, timeout=GROUP_TIMEOUT)
        dist.init_process_group(
            backend, store=store, rank=rank, world_size=world, timeout=timeout)
        result = body(rank, world, *args)
        if dist.is_initialized():
            dist.destroy_process_group()
        pipe.send((True, result))
    except BaseException:  # noqa: BLE001
        pipe.send((False, traceback.format_exc()))
        os._exit(1)  # without a farewell to the peers, as a crash would


def run(world, body, *args, backend="axon", timeout=GROUP_TIMEOUT,
        deadline=DEADLINE, absent=()):
    """Calls body(rank, world, *args) on every rank; returns the results.

    Fails with the text of each rank that failed. A rank in `absent` may die.
    """
    store = dist.TCPStore(
        "127.0.0.1", 0, is_master=True, wait_for_workers=False)
    processes, pipes = [], []
    for rank in range(world):
        ours, theirs = _context.Pipe(duplex=False)
        process = _context.Process(
            target=_rank,
            args=(inspect.getfile(body), body.__name__, rank, world, store.port,
                  backend, timeout, deadline, args, theirs))
        process.start()
        theirs.close()
        processes.append(process)
        pipes.append(ours)
    end = time.monotonic() + deadline
    results, failures = [], []
    try:
        for rank, pipe in enumerate(pipes):
            result = None
            try:
                if not pipe.poll(max(0.0, end - time.monotonic())):
                    raise EOFError
                good, result = pipe.recv()
                if not good:
                    failures.append(f"--- rank {rank}\n{result}")
            except EOFError:
                if rank not in absent:
                    failures.append(f"--- rank {rank} died or hung")
            results.append(result)
        for process in processes:
            process.join(max(0.0, end - time.monotonic()))
    finally:
        for process in processes:
            if process.is_alive():
                process.kill()
            process.join()
    assert not failures, "\n".join(failures)
    return results
