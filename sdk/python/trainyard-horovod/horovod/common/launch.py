"""Reads the launcher's variables (listed in collectives/launch.hpp), through the C interface.
Without a launcher this process is the only rank."""

from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Mapping

from horovod.common import engine
from horovod.common.c_interface import declarations as c
from horovod.common.c_interface import library as c_library


@dataclasses.dataclass
class Launch:
    launcher: str  # the source of rank and size: "torchrun"
    rank: int = 0
    size: int = 1
    local_rank: int | None = None  # None: determined by the ranks that share this machine's memory
    local_size: int | None = None
    rendezvous: str = ""  # HOST:PORT where rank 0 listens, or a folder that all ranks see
    service: tuple[str, int] | None = (
        None  # the service of horovodrun, which sends each rank the addresses of the others
    )
    elastic: bool = False
    host: str = ""  # names for the service
    member: str = ""
    secret: str = ""
    encrypt: bool = False
    sockets: int = 0  # 0: the default
    plans: str = ""
    deterministic: bool = False


class Unclear(ValueError):
    """The launcher's variables contradict each other or are incomplete."""


def read(variables: Mapping[str, str] | None = None, resourceconfig: str | None = None) -> Launch:
    """Reads the environment and SageMaker's file, or the given values. `resourceconfig`: the text
    of the file; "" = no file."""
    source = c_library.sized(c.LaunchSource, program=c.TRAINYARD_PROGRAM_HOROVOD)
    if variables is not None:
        texts = [f"{name}={value}".encode() for name, value in variables.items()]
        source.variables = (ctypes.c_char_p * (len(texts) + 1))(*texts, None)
    if resourceconfig is not None:
        source.resourceconfig = resourceconfig.encode()
    found = ctypes.POINTER(c.Launch)()
    try:
        c_library.call("trainyard_launch_read", ctypes.byref(source), ctypes.byref(found))
    except c_library.Failure as failure:
        raise Unclear(str(failure)) from None
    try:
        return _from(found.contents)
    finally:
        engine.library().trainyard_launch_free(found)


def _from(found: c.Launch) -> Launch:
    launch = Launch(found.launcher.decode(), found.rank, found.ranks)
    launch.local_rank = None if found.local_rank < 0 else found.local_rank
    launch.local_size = None if found.local_ranks < 0 else found.local_ranks
    launch.rendezvous = found.rendezvous.decode()
    if found.service_host:
        launch.service = (found.service_host.decode(), found.service_port)
    launch.elastic = bool(found.elastic)
    launch.host, launch.member = found.host.decode(), found.member.decode()
    launch.secret, launch.encrypt = found.secret.decode(), bool(found.encrypt)
    launch.sockets = found.sockets_per_peer
    launch.plans, launch.deterministic = found.plans.decode(), bool(found.deterministic)
    return launch
