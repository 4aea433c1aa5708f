"""How this process was launched: the compiled engine reads the variables of the launcher, as for
C++ (collectives/launch.hpp lists them). Without a launcher this is one rank alone."""

from __future__ import annotations

import ctypes
import dataclasses
import json
from collections.abc import Mapping

from horovod.common import engine

RESOURCECONFIG = "/opt/ml/input/config/resourceconfig.json"


@dataclasses.dataclass
class Launch:
    told_by: str
    rank: int = 0
    size: int = 1
    local_rank: int | None = None  # None: found out from who shares this machine's memory
    local_size: int | None = None
    meeting: tuple[str, int] | None = None  # host and port where rank 0 listens
    folder: str = ""  # or one that all ranks see
    service: tuple[str, int] | None = None  # or where horovodrun tells everyone who is there
    elastic: bool = False
    secret: str = ""


class Unclear(ValueError):
    """The variables contradict each other, or something is missing."""


def _texts(texts: list[str]) -> ctypes.Array[ctypes.c_char_p]:
    return (ctypes.c_char_p * (len(texts) + 1))(*[text.encode() for text in texts], None)


def _hosts(resourceconfig: str) -> tuple[list[str], int]:
    try:
        config = json.loads(resourceconfig)
        hosts = [str(host) for host in config["hosts"]]
        return hosts, hosts.index(config["current_host"])
    except (ValueError, KeyError, TypeError) as failure:
        raise Unclear(
            f"{RESOURCECONFIG} does not say which hosts there are: {failure}"
        ) from failure


def read(environ: Mapping[str, str], resourceconfig: str = "") -> Launch:
    """`resourceconfig`: the file's text, empty where there is none."""
    hosts, current = _hosts(resourceconfig) if resourceconfig else ([], 0)
    found = engine.Launch()
    variables = [f"{name}={value}" for name, value in environ.items()]
    failed = engine.library().engine_read_launch(
        _texts(variables), _texts(hosts) if hosts else None, current, ctypes.byref(found)
    )
    if failed:
        raise Unclear(engine.said())
    launch = Launch(found.told_by.decode(), found.rank, found.ranks)
    launch.local_rank = None if found.local_rank < 0 else found.local_rank
    launch.local_size = None if found.local_ranks < 0 else found.local_ranks
    if found.meeting_host:
        launch.meeting = (found.meeting_host.decode(), found.meeting_port)
    if found.service_host:
        launch.service = (found.service_host.decode(), found.service_port)
    launch.folder, launch.secret = found.folder.decode(), found.secret.decode()
    launch.elastic = bool(found.elastic)
    return launch
