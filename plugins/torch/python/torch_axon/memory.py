# SPDX-License-Identifier: Apache-2.0
"""Tensors in memory that the ranks of one machine read where it lies."""

import sys

import torch_axon

MINIMUM_BYTES = 64 << 10
_NONE = sys.maxsize * 2 + 1  # C's SIZE_MAX


class use_shared_memory:  # noqa: N801, used like a function
    """Puts large CPU tensors into shared memory, which makes calls faster.

    From now on, in all threads of this process, new CPU tensors of at least
    `minimum_bytes` lie in memory that the other ranks of this machine can read:
    parameters, gradients, DDP's buckets, FSDP2's buffers. Their collectives
    copy nothing on the way. All else stays as it is: smaller tensors, those
    that exist, and all results.

        torch_axon.use_shared_memory()        # before the model is made

        with torch_axon.use_shared_memory():  # or for some tensors only
            model = Model()

    `enable=False` turns it off; the end of a `with` block restores what was
    before it. Freed memory is kept for the next tensors, at most half as much
    again as tensors ever had at one time, and at most `cache_bytes` where that
    is given: 0 gives back what is kept. Where shared memory runs short, tensors
    get ordinary memory, and a warning says so once.

    Shared memory is reserved when a tensor is made, not when it is written. A
    child of fork, such as a DataLoader's worker, gets ordinary memory, and
    what it writes into tensors that it inherited is its own; it sees, however,
    what its parent writes into them later.
    """

    def __init__(self, enable=True, *, minimum_bytes=MINIMUM_BYTES,
                 cache_bytes=None):
        if minimum_bytes < 1:
            raise ValueError(f"minimum_bytes is {minimum_bytes}; "
                             "it must be at least 1")
        if cache_bytes is not None and cache_bytes < 0:
            raise ValueError(f"cache_bytes is {cache_bytes}; "
                             "it must be at least 0")
        self._core = torch_axon._load()
        self._before = (self._core.minimum_mapped_bytes(),
                        self._core.most_kept_bytes())
        self._set(minimum_bytes if enable else _NONE,
                  _NONE if cache_bytes is None else cache_bytes)

    def _set(self, minimum, kept):
        self._core.set_most_kept_bytes(min(kept, _NONE))
        self._core.set_minimum_mapped_bytes(min(minimum, _NONE))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._set(*self._before)


def is_mapped(tensor):
    """Whether `tensor` lies in memory that the other ranks can read."""
    return torch_axon._load().is_mapped(tensor)


def shared_memory_stats():
    """What this process has of such memory, as a dict.

    used_bytes  of tensors
    kept_bytes  freed, kept for the next tensors
    held_bytes  freed, and left alone as children of fork may look at them
    reserved    how often the system gave memory
    refused     how often it had none, and a tensor got ordinary memory
    """
    return torch_axon._load().memory_stats()
