# SPDX-License-Identifier: Apache-2.0
"""torch.distributed on Axon: the backends "axon" and "neuron".

Importing torch is enough once this package is installed: its entry point
registers both names, and the library itself is loaded when a group is made.
"neuron" is left to whoever has registered it before (AWS's own package does, on
a Trainium host); "axon" is always there.
"""

import os

_TORCH = "2.13."  # the C++ interface of torch changes with every minor version
_core = None


def _load():
    """The C++ module, loaded at the first use."""
    global _core
    if _core is None:
        import torch

        if not torch.__version__.startswith(_TORCH):
            raise ImportError(
                f"torch_axon is built for torch {_TORCH}x and this is "
                f"torch {torch.__version__}: install the torch-axon that "
                f"belongs to it, or 'torch=={_TORCH}*'")
        from . import _C

        import atexit

        owner = os.getpid()

        def finish():  # a forked child owns none of the parent's groups
            if os.getpid() == owner:
                _C.shutdown_all()

        atexit.register(finish)
        _core = _C
    return _core


def _creator(name):
    """What torch calls to make a group of the backend `name`."""

    def create(group, options):
        core = _load()
        if options is not None and not isinstance(options, core.Options):
            raise TypeError(
                f"pg_options of backend {name!r} must be a "
                f"torch_axon.Options, not {type(options).__name__}")
        own = core.Options(name, group.timeout)
        own.group_name = group.group_id
        own.global_ranks_in_group = list(group.global_ranks_in_group)
        return core.ProcessGroupAxon(
            group.store, group.group_rank, group.group_size, own)

    return create


def register(name=None, force=False):
    """Registers the backends; with `name`, that one. Safe to repeat.

    A name that somebody else has registered is left alone unless `force`.
    """
    from torch.distributed import Backend

    for one in (name,) if name else ("axon", "neuron"):
        taken = Backend._plugins.get(one.upper())
        mine = getattr(taken and taken.creator_fn, "_torch_axon", False)
        if mine or (one in Backend.backend_list and not force):
            continue
        creator = _creator(one)
        creator._torch_axon = True
        Backend.register_backend(
            one, creator, extended_api=True, devices=["cpu"])


def _autoload():
    """Runs at the end of `import torch`, which it must never break."""
    try:
        import torch.distributed

        if torch.distributed.is_available():
            register()
    except Exception as error:  # noqa: BLE001
        import logging

        logging.getLogger(__name__).warning(
            "torch_axon could not register its backends: %s", error)


def __getattr__(name):
    if name in ("is_mapped", "shared_memory_stats", "use_shared_memory"):
        from . import memory

        return getattr(memory, name)
    if name in ("Options", "ProcessGroupAxon", "version"):
        return getattr(_load(), name)
    raise AttributeError(f"module 'torch_axon' has no attribute {name!r}")
