"""Trainyard's collectives as a backend of torch.distributed.

    import trainyard.torch
    torch.distributed.init_process_group("trainyard")

Ranks on one machine share memory and connect to other machines over TCP. They find each other
through torch's store, so torchrun, env://, tcp:// and file:// work as with any backend. Tensors
must be on the CPU.

Environment variables, which must be equal on all ranks except the address (collectives/launch.hpp
reads them):

    TRAINYARD_ADDRESS        the address at which other hosts reach this one,
                             if it cannot be found from the routes
    TRAINYARD_DETERMINISTIC  1: plans do not depend on measured costs,
                             so every run adds in the same order
    TRAINYARD_PLANS          plans by operation and size: "allreduce=one_shot:0-64K,ring:64K-"
    TRAINYARD_SECRET         a secret of the ranks. Without it rank 0 makes one, so other peers
                             are still rejected, but an eavesdropper can read it
    TRAINYARD_ENCRYPT        1: TLS between hosts, with TRAINYARD_SECRET as its key
    TRAINYARD_IN_PLACE       0: large tensors that are reduced repeatedly are copied each time;
                             otherwise the ranks of one machine map their memory
    TRAINYARD_SOCKETS        the number of sockets for large messages between two hosts (default 1);
                             use more if one flow is slower than the link

A switch is off when it is 0, false, no, off or empty, in any case, and on with any other value.
"""

from __future__ import annotations

import atexit

import torch
import torch.distributed

from trainyard.torch import _built

BACKEND = "trainyard"


def _check_torch(built: str, here: str) -> None:
    """Checks that the backend was compiled against this torch: they exchange C++ objects."""
    if not built:
        raise ImportError(
            "trainyard.torch was not compiled, since torch was not installed. Install torch, then"
            " run in a checkout of Trainyard: pip install --force-reinstall --no-cache-dir"
            " ./sdk/python"
        )
    if built.split("+")[0] != here.split("+")[0]:
        raise ImportError(
            f"trainyard.torch was compiled against torch {built}, but the installed torch is"
            f" {here}. Compile it again, in a checkout of Trainyard: pip install --force-reinstall"
            " --no-cache-dir ./sdk/python"
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
    """Creates a process group, for init_process_group and new_group, on each of its ranks."""
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
    """Registers the backend as `name`: "trainyard", or a name that scripts expect, such as
    "smddp"."""
    if not hasattr(torch.distributed.Backend, name.upper()):
        more = {"devices": ["cpu"]} if int(torch.__version__.split(".")[0]) >= 2 else {}
        torch.distributed.Backend.register_backend(name, _create, extended_api=True, **more)


register(BACKEND)
atexit.register(_backend.settle)  # waits for running operations before Python exits
