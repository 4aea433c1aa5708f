"""Starts and stops Horovod, and returns ranks and sizes, for all frameworks. All frameworks of a
process share one engine."""

from __future__ import annotations

import atexit
import os
import socket
import sys
import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from horovod.common import engine as engines
from horovod.common import launch as launches
from horovod.common.c_interface import declarations as c
from horovod.common.c_interface import library as c_library
from horovod.common.exceptions import HorovodInternalError

if TYPE_CHECKING:  # that module needs this one
    from horovod.common.process_sets import ProcessSet

_lock = threading.RLock()
_engine: engines.Engine | None = None
_generation = 0
_place: _Place | None = None
_elastic = False  # True: the set of ranks may change


class _Communicator(Protocol):
    """The part of mpi4py's communicators that init() uses."""

    def Get_rank(self) -> int: ...

    def Get_size(self) -> int: ...


class _Place:
    """The position of this rank among the ranks of its host, and among the hosts."""

    def __init__(self, engine: engines.Engine) -> None:
        locals_ = []
        for rank, place in enumerate(engine.places):
            mates = [
                other for other in range(engine.size) if engine.hosts[other] == engine.hosts[rank]
            ]
            locals_.append(place or (mates.index(rank), len(mates)))
        self.local_rank, self.local_size = locals_[engine.rank]
        across = [
            rank for rank, (local_rank, _) in enumerate(locals_) if local_rank == self.local_rank
        ]
        self.cross_rank, self.cross_size = across.index(engine.rank), len(across)
        self.homogeneous = len({local_size for _, local_size in locals_}) == 1


def _number(name: str, otherwise: float) -> float:
    text = os.environ.get(name, "")
    try:
        return float(text) if text else otherwise
    except ValueError:
        raise ValueError(f"{name} is '{text}', which is not a number") from None


def _flag(name: str) -> bool:
    """Reads a boolean variable of Horovod. As in collectives/launch.hpp, 0, false, no, off and the
    empty text are false."""
    return os.environ.get(name, "0").lower() not in ("", "0", "false", "no", "off")


def _join(launch: launches.Launch) -> c.Join:
    return c_library.sized(
        c.Join,
        rank=launch.rank,
        ranks=launch.size,
        rendezvous=launch.rendezvous.encode() or None,
        secret=launch.secret.encode(),
        encrypt=int(launch.encrypt),
        sockets_per_peer=launch.sockets,
        join_deadline_ms=int(1000 * _number("HOROVOD_START_TIMEOUT", 600)),
        peer_timeout_ms=int(1000 * _number("HOROVOD_GLOO_TIMEOUT_SECONDS", 600)),
        plans=launch.plans.encode(),
        deterministic=int(launch.deterministic),
    )


def _options(launch: launches.Launch) -> c.NegotiatorOptions:
    return c_library.sized(
        c.NegotiatorOptions,
        reproducible=int(launch.deterministic),
        fusion_bytes=int(_number("HOROVOD_FUSION_THRESHOLD", 128 << 20)),
        autotune=int(_flag("HOROVOD_AUTOTUNE")),
        autotune_log=os.environ.get("HOROVOD_AUTOTUNE_LOG", "").encode(),
        cycle_us=int(1000 * _number("HOROVOD_CYCLE_TIME", 1)),
        cache_entries=int(_number("HOROVOD_CACHE_CAPACITY", 1024)),
        stall_report_ms=0
        if _flag("HOROVOD_STALL_CHECK_DISABLE")
        else int(1000 * _number("HOROVOD_STALL_CHECK_TIME_SECONDS", 60)),
        stall_fail_ms=int(1000 * _number("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", 0)),
    )


def say(words: str) -> None:
    print(f"horovod: rank {_engine.rank if _engine else '?'}: {words}", file=sys.stderr, flush=True)


def _join_ranks(launch: launches.Launch) -> engines.Engine:
    """Returns the engine of ranks that have joined."""
    member = None
    while True:
        if launch.service:
            from horovod.common import member as members

            member = members.of_this_process(launch)
            assignment = member.next_assignment()
            launch.rank = assignment.rank
            launch.size = assignment.ranks
            launch.local_rank = assignment.local_rank
            launch.local_size = assignment.local_ranks
        place = None
        if launch.local_rank is not None and launch.local_size is not None:
            place = launch.local_rank, launch.local_size
        try:
            return engines.Engine(
                _join(launch), _options(launch), place, member.address if member else None
            )
        except HorovodInternalError as failure:
            if not launch.elastic or member is None:
                raise
            # a rank died during the rendezvous: the remaining ranks repeat it
            member.complaint = str(failure)[:1000]
            say(f"the ranks could not connect: {failure}")


def init(
    comm: Sequence[int] | _Communicator | None = None,
    process_sets: Iterable[ProcessSet | Sequence[int]] | str | None = None,
) -> None:
    """Connects to the other ranks. Later calls before shutdown() have no effect.

    comm: a list of the ranks that take part, or an mpi4py communicator of all of them.
    process_sets: ProcessSets to add at once.
    """
    global _engine, _generation, _place, _elastic
    with _lock:
        if _engine is not None:
            return
        launch = launches.read()
        if isinstance(comm, Sequence):
            members = sorted(comm)
            if members and members != list(range(launch.size)):
                if launch.rank not in members:
                    raise ValueError(
                        f"init(comm={list(comm)}) was called by rank {launch.rank}, which is not"
                        " in it"
                    )
                folder = launch.rendezvous.startswith("/")
                if launch.rendezvous and not folder and members[0] != 0:
                    if launch.local_size != launch.size:
                        raise ValueError(
                            "init(comm=[..]) without rank 0 needs all ranks on one host: its host"
                            " is where they find each other"
                        )
                    # next to those of rank 0
                    host, port = launch.rendezvous.rsplit(":", 1)
                    launch.rendezvous = f"{host}:{int(port) + members[0]}"
                launch.rank = members.index(launch.rank)
                launch.size = len(members)
                launch.local_rank = None
        elif comm is not None and (comm.Get_rank(), comm.Get_size()) != (launch.rank, launch.size):
            raise ValueError(
                f"init(comm=..) takes a communicator of all {launch.size} ranks, or a list of"
                f" ranks: in this communicator, rank {launch.rank} is rank {comm.Get_rank()} of"
                f" {comm.Get_size()}"
            )
        _generation += 1
        if launch.rendezvous.startswith("/"):
            # files of the previous rendezvous are not needed any longer
            launch.rendezvous = os.path.join(launch.rendezvous, f"horovod-{_generation}")
            os.makedirs(launch.rendezvous, exist_ok=True)
        if launch.secret:
            # a rank that is late by one init() must not join this generation
            launch.secret += f"#{_generation}" if not launch.service else ""
        joined = _join_ranks(launch)
        _place, _elastic = _Place(joined), launch.elastic
        _engine = joined
        from horovod.common import process_sets as sets

        # "dynamic" is Horovod's word for what is always the case here.
        for each in [] if process_sets is None or isinstance(process_sets, str) else process_sets:
            sets.add_process_set(each)
        _start_requested_timeline()


def _start_requested_timeline() -> None:
    """HOROVOD_TIMELINE: a file of rank 0. TRAINYARD_TIMELINES: a directory, a file of each rank."""
    path, folder = os.environ.get("HOROVOD_TIMELINE", ""), os.environ.get("TRAINYARD_TIMELINES", "")
    if folder and not path:
        os.makedirs(folder, exist_ok=True)
        again = f"-{_generation}" if _generation > 1 else ""
        path = os.path.join(folder, f"rank-{rank()}{again}.json")
    elif path == "DYNAMIC" or rank() != 0:
        return
    if path:
        start_timeline(path, _flag("HOROVOD_TIMELINE_MARK_CYCLES"))


def shutdown() -> None:
    """Ends the group of ranks; all ranks must call it. Outstanding operations of any rank fail."""
    global _engine, _place
    with _lock:
        leaving, _engine, _place = _engine, None, None
        if leaving is not None:
            from horovod.common import process_sets as sets

            sets.forget()
            leaving.leave()


@atexit.register
def _end() -> None:
    from horovod.common import member

    # Python records an exception that was not caught: then this rank is not done, and the others
    # continue without it.
    well = getattr(sys, "last_value", None) is None
    try:
        shutdown()
    finally:
        member.leave(done=well)


def is_initialized() -> bool:
    return _engine is not None


def engine() -> engines.Engine:
    current = _engine
    if current is None:
        raise ValueError("Horovod has not been initialized; use hvd.init().")
    return current


def generation() -> int:
    """Returns the number of calls of init()."""
    return _generation


def _where() -> _Place:
    engine()
    assert _place is not None
    return _place


def rank() -> int:
    return engine().rank


def size() -> int:
    return engine().size


def local_rank() -> int:
    return _where().local_rank


def local_size() -> int:
    return _where().local_size


def cross_rank() -> int:
    return _where().cross_rank


def cross_size() -> int:
    return _where().cross_size


def is_elastic() -> bool:
    """Returns whether the set of ranks may change at the next init()."""
    engine()
    return _elastic


def is_homogeneous() -> bool:
    """Returns whether all hosts have the same number of ranks."""
    return _where().homogeneous


def start_timeline(file_path: str | os.PathLike[str], mark_cycles: bool = False) -> None:
    engine().start_timeline(str(file_path), mark_cycles)


def stop_timeline() -> None:
    engine().stop_timeline()


# The next functions return which libraries Horovod was built with. The collectives are Trainyard's
# own, over shared memory and TCP, without MPI or any of the other libraries. gloo_* return True: it
# is Horovod's name for "works without MPI, over TCP", and scripts query whether that is available.
def mpi_threads_supported() -> bool:
    return False


def mpi_enabled() -> bool:
    return False


def mpi_built() -> bool:
    return False


def gloo_enabled() -> bool:
    return True


def gloo_built() -> bool:
    return True


def nccl_built() -> int:
    return 0


def ddl_built() -> bool:
    return False


def ccl_built() -> bool:
    return False


def cuda_built() -> bool:
    return False


def rocm_built() -> bool:
    return False


def check_extension(*_: object) -> None:
    """Loads the compiled library, or raises the reason why it cannot be loaded. Horovod checks by
    this function that its extension was built."""
    engines.library()


def host_name() -> str:
    return os.environ.get("HOROVOD_HOSTNAME") or socket.gethostname()
