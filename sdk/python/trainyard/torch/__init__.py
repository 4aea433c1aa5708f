"""Trainyard's collectives as a backend of torch.distributed.

    import trainyard.torch
    torch.distributed.init_process_group("trainyard")

Ranks on one machine share memory, the others are reached over TCP; they find each other over
torch's own store, so torchrun, env://, tcp:// and file:// work as they do with any backend.
Tensors of the CPU.

Environment variables, equal on all ranks but the address (collectives/launch.hpp reads them):

    TRAINYARD_ADDRESS        the address at which the other hosts reach this one,
                             where the routes do not tell
    TRAINYARD_DETERMINISTIC  1: plans do not depend on measured costs,
                             so every run adds in the same order
    TRAINYARD_PLANS          which plan an operation takes: "allreduce=one_shot:0-64K,ring:64K-"
    TRAINYARD_SECRET         a value that only the ranks know; other peers are rejected without
                             it too,
                             since rank 0 makes a secret of its own,
                             but who can read the network can read that one
    TRAINYARD_ENCRYPT        1: TLS between hosts, with TRAINYARD_SECRET as its key
    TRAINYARD_ADOPT          0: large tensors that are reduced again and again are copied every
                             time; else the ranks of one machine map their
                             memory, where it lies
    TRAINYARD_SOCKETS        how many sockets carry large messages between two hosts (1):
                             more where one flow is slower than the link

A switch is off when it is 0, false, no, off or empty, in any case, and on with any other value.
"""

from __future__ import annotations

import atexit

import torch
import torch.distributed

from trainyard.torch import _built

BACKEND = "trainyard"


def _check_torch(built: str, here: str) -> None:
    """C++ objects go between torch and the backend: they must have been compiled from the same
    headers."""
    if not built:
        raise ImportError(
            "trainyard.torch was left out: there was no torch when it was installed. Where torch is"
            " installed, again: pip install --force-reinstall --no-cache-dir ./sdk/python (in a"
            " checkout of Trainyard)"
        )
    if built.split("+")[0] != here.split("+")[0]:
        raise ImportError(
            f"trainyard.torch was compiled against torch {built}, and this is torch {here}. Compile"
            " it again where this torch is installed: pip install --force-reinstall --no-cache-dir"
            " ./sdk/python (in a checkout of Trainyard)"
        )


_check_torch(_built.torch_version, torch.__version__)
try:
    from trainyard.torch import _backend
except ImportError as failure:
    raise ImportError(
        f"trainyard.torch was compiled against torch {_built.torch_version} and cannot be loaded"
        f" with this one ({torch.__version__}): {failure}. Compile it again: pip install"
        " --force-reinstall --no-cache-dir ./sdk/python"
    ) from failure


def _create(
    options: torch.distributed.DistributedBackendOptions, _: object = None
) -> torch.distributed.ProcessGroup:
    """Called by init_process_group and new_group, on every rank of the group."""
    world = (
        torch.distributed.get_world_size()
        if torch.distributed.is_initialized()
        else options.group_size
    )
    return _backend.create(
        options.store,
        options.group_rank,
        options.group_size,
        options.timeout,
        list(options.global_ranks_in_group) if options.group_size < world else [],
    )


def register(name: str) -> None:
    """Registers the backend under another name too, for scripts that name it."""
    if not hasattr(torch.distributed.Backend, name.upper()):
        more = {"devices": ["cpu"]} if int(torch.__version__.split(".")[0]) >= 2 else {}
        torch.distributed.Backend.register_backend(name, _create, extended_api=True, **more)


register(BACKEND)
atexit.register(_backend.settle)
