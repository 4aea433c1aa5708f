"""Who this rank is, from what started it. A pure function of the environment.

In this order: horovodrun (HOROVOD_RANK ..), Trainyard's own variables (TRAINYARD_RANK ..), Open
MPI, MPICH and its kin, torchrun, SageMaker's resourceconfig.json (a rank on each host);
else one rank alone.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping

# where hosts are named, but no port; c10d's backend and the C++ library take the next ones
MEETING_PORT = 7828
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


def _number(environ: Mapping[str, str], name: str) -> int:
    text = environ.get(name)
    if text is None:
        raise Unclear(f"{name} is not set")
    try:
        return int(text)
    except ValueError:
        raise Unclear(f"{name} is '{text}', which is not a number") from None


def _place(text: str, name: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        raise Unclear(f"{name} is '{text}', which is not HOST:PORT")
    return host.strip("[]"), int(port)


# told by, rank, size, local rank, local size
_LAUNCHERS = [
    (
        "TRAINYARD_RANK",
        "TRAINYARD_RANK",
        "TRAINYARD_RANKS",
        "TRAINYARD_LOCAL_RANK",
        "TRAINYARD_LOCAL_RANKS",
    ),
    (
        "Open MPI",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
    ),
    ("MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    ("torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
]
# Differs from run to run of one machine, best first.
_RUNS = [
    "TRAINYARD_SECRET",
    "TRAINING_JOB_ARN",
    "TORCHELASTIC_RUN_ID",
    "PMIX_NAMESPACE",
    "PMI_JOBID",
    "OMPI_MCA_ess_base_jobid",
]


def _port_of(run: str) -> int:
    digest = 0xCBF29CE484222325  # FNV-1a: all ranks of a run on this machine find the same one
    for byte in run.encode():
        digest = ((digest ^ byte) * 0x100000001B3) % 2**64
    return 20000 + digest % 20000


def read(environ: Mapping[str, str], resourceconfig: str = "") -> Launch:
    """`resourceconfig`: the file's text, empty where there is none."""
    hosts, current = [], ""
    if resourceconfig:
        try:
            config = json.loads(resourceconfig)
            hosts, current = list(config["hosts"]), config["current_host"]
            hosts.index(current)
        except (ValueError, KeyError, TypeError) as failure:
            raise Unclear(
                f"{RESOURCECONFIG} does not say which hosts there are: {failure}"
            ) from failure
    secret = next((environ[name] for name in _RUNS if environ.get(name)), "")[:256]

    if "HOROVOD_GLOO_RENDEZVOUS_ADDR" in environ:
        launch = Launch(
            "horovodrun",
            secret=environ.get("TRAINYARD_SECRET", ""),
            elastic=environ.get("HOROVOD_ELASTIC") == "1",
        )
        launch.service = (
            environ["HOROVOD_GLOO_RENDEZVOUS_ADDR"],
            _number(environ, "HOROVOD_GLOO_RENDEZVOUS_PORT"),
        )
        launch.rank = -1 if launch.elastic else _number(environ, "HOROVOD_RANK")
        launch.size = 0 if launch.elastic else _number(environ, "HOROVOD_SIZE")
        if not launch.elastic:
            launch.local_rank = _number(environ, "HOROVOD_LOCAL_RANK")
            launch.local_size = _number(environ, "HOROVOD_LOCAL_SIZE")
        return launch

    for told_by, rank, size, local_rank, local_size in _LAUNCHERS:
        if rank in environ and size in environ:
            launch = Launch(told_by, _number(environ, rank), _number(environ, size), secret=secret)
            if local_rank in environ and local_size in environ:
                launch.local_rank = _number(environ, local_rank)
                launch.local_size = _number(environ, local_size)
            break
    else:
        if not hosts:
            return Launch("no launcher: a single rank", local_rank=0, local_size=1)
        launch = Launch(
            "resourceconfig.json", hosts.index(current), len(hosts), 0, 1, secret=secret
        )
    if not 0 <= launch.rank < launch.size:
        raise Unclear(f"{launch.told_by} sets rank {launch.rank} of {launch.size}")
    if launch.size == 1:
        launch.local_rank, launch.local_size = 0, 1
        return launch

    meeting = environ.get("TRAINYARD_MEETING", "")
    if meeting.startswith("/"):
        launch.folder = meeting
    elif meeting:
        launch.meeting = _place(meeting, "TRAINYARD_MEETING")
    elif "MASTER_ADDR" in environ:
        # That port is torchrun's store's, the next one the C++ library's, and where it is 7777,
        # 7779 is that of the job's leading host.
        launch.meeting = (
            environ["MASTER_ADDR"],
            _number(environ, "MASTER_PORT") + 3 if "MASTER_PORT" in environ else MEETING_PORT,
        )
    elif hosts:
        launch.meeting = (hosts[0], MEETING_PORT)
    elif launch.local_size == launch.size:
        launch.meeting = ("127.0.0.1", _port_of(secret))
    else:
        raise Unclear(
            f"{launch.told_by} started {launch.size} ranks, but the address of their"
            " rendezvous is unknown: set TRAINYARD_MEETING to HOST:PORT of rank 0, or to a folder"
            " of this run that all ranks see"
        )
    return launch
