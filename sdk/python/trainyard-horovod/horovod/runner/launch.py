"""horovodrun: starts the ranks of a script, here and over ssh, and ends them all when one fails.

horovodrun -np 4 python train.py
horovodrun -np 8 -H one:4,two:4 python train.py
horovodrun --min-np 2 --max-np 8 --host-discovery-script ./hosts.sh python train.py
"""

from __future__ import annotations

import functools
import os
import secrets
import signal
import sys
import time
import types
from collections.abc import Mapping, Sequence
from typing import NoReturn

from horovod.runner import hosts as places
from horovod.runner import processes
from horovod.runner import settings as options
from horovod.runner.service import FORMED, Service

BLAME_SECONDS = 0.3  # the time within which other ranks fail as a consequence of the first failure


def say(words: str) -> None:
    print(f"horovodrun: {words}", file=sys.stderr, flush=True)


class Interrupted(Exception):
    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def _interrupt(number: int, _: types.FrameType | None) -> NoReturn:
    raise Interrupted(number)


def hosts_of(settings: options.Settings) -> list[places.Host]:
    if settings.hostfile:
        with open(settings.hostfile, encoding="utf-8") as file:
            return places.parse_file(file.read(), settings.slots)
    if settings.hosts:
        return places.parse(settings.hosts, settings.slots)
    return [
        places.Host(
            "localhost", max(settings.np, settings.max_np or 0) if settings.elastic else settings.np
        )
    ]


def start(
    settings: options.Settings,
    watcher: processes.Watcher,
    host: str,
    local_rank: int,
    name: str,
    label: str,
    address: str,
    port: int,
    secret: str,
    variables: Mapping[str, str],
    outputs: str | None = None,
    catch: processes.Catch | None = None,
) -> processes.Process:
    """One rank's process."""
    ours = {
        **settings.variables,
        "HOROVOD_HOSTNAME": host,
        "HOROVOD_LOCAL_RANK": str(local_rank),
        "HOROVOD_GLOO_RENDEZVOUS_ADDR": address,
        "HOROVOD_GLOO_RENDEZVOUS_PORT": str(port),
        "HOROVOD_CONTROLLER": "gloo",
        "HOROVOD_CPU_OPERATIONS": "gloo",
        "HOROVOD_START_TIMEOUT": str(settings.start_timeout),
        "TRAINYARD_SECRET": secret,
        "TRAINYARD_MEMBER": name,
        "PYTHONUNBUFFERED": "1",
        **variables,
    }
    local = places.is_local(host)
    if not local:
        ours = {**options.forwarded(os.environ), **ours}
    return processes.Process(
        watcher,
        name,
        settings.command,
        ours,
        host=None if local else host,
        ssh=settings.ssh,
        label=label if settings.labels else "",
        outputs=outputs,
        timestamps=settings.timestamps,
        catch=catch,
    )


def run_static(settings: options.Settings) -> int:
    """Runs the ranks; returns 0, or the exit code of the rank that failed first."""
    hosts = hosts_of(settings)
    slots = places.assign(hosts, settings.np)
    names = [slot.host for slot in slots]
    address = places.address_towards(names)
    secret = secrets.token_hex(32)
    service = Service(
        "127.0.0.1" if address == "127.0.0.1" else "::" if ":" in address else "0.0.0.0",
        secret,
        settings.np,
        settings.np,
        settings.start_timeout,
    )
    running = {}
    watcher = processes.Watcher()
    try:
        for slot in slots:
            name = f"{slot.host}/{slot.local_rank}"
            service.expect(name)
            variables = {
                "HOROVOD_RANK": str(slot.rank),
                "HOROVOD_SIZE": str(slot.size),
                "HOROVOD_LOCAL_SIZE": str(slot.local_size),
                "HOROVOD_CROSS_RANK": str(slot.cross_rank),
                "HOROVOD_CROSS_SIZE": str(slot.cross_size),
            }
            outputs = (
                os.path.join(settings.outputs, f"rank.{slot.rank}") if settings.outputs else None
            )
            catch = functools.partial(settings.catch, slot.rank) if settings.catch else None
            running[slot.rank] = start(
                settings,
                watcher,
                slot.host,
                slot.local_rank,
                name,
                f"[{slot.rank}]",
                address,
                service.port,
                secret,
                variables,
                outputs,
                catch,
            )
        return watch(settings, slots, running, service)
    finally:
        processes.end_all(list(running.values()))
        watcher.stop()
        service.stop()


def watch(
    settings: options.Settings,
    slots: Sequence[places.Slot],
    running: Mapping[int, processes.Process],
    service: Service,
) -> int:
    left, met, deadline = dict(running), False, time.monotonic() + settings.start_timeout
    came = set()
    while left:
        event = service.next(0.05)
        while event:
            kind, name, text, _, _ = event
            if settings.verbose:
                say(text)
            met = met or kind == FORMED
            came.add(name)
            event = service.next(0)
        if any(process.poll() for process in left.values()):
            time.sleep(BLAME_SECONDS)
            # A killed rank is reported before ranks that failed because of it.
            codes = {rank: code for rank, process in left.items() if (code := process.poll())}
            rank = min(codes, key=lambda each: (codes[each] > 0, each))
            left[rank].drain()
            code = codes[rank]
            say(
                f"rank {rank} on {slots[rank].host} failed: {processes.how_it_ended(code)}. The"
                " other ranks are ended."
            )
            return code if code > 0 else 128 - code
        for rank in [rank for rank, process in left.items() if process.poll() == 0]:
            left.pop(rank).drain()
        # Ranks that never call init() need no peers.
        if not met and came and time.monotonic() > deadline:
            missing = [
                f"rank {slot.rank} on {slot.host}"
                for slot in slots
                if f"{slot.host}/{slot.local_rank}" not in came
            ]
            say(
                f"{', '.join(missing)} did not connect within {settings.start_timeout:.0f} s"
                " (--start-timeout)"
            )
            return 1
    return 0


def check_build() -> int:
    import importlib.util

    import horovod
    from horovod.common import basics, engine

    engine.library()

    def mark(there: object) -> str:
        return "[X]" if there else "[ ]"

    frameworks = [("TensorFlow", "tensorflow"), ("PyTorch", "torch")]
    print(f"Horovod v{horovod.__version__}:\n\nAvailable Frameworks:")
    for name, module in frameworks:
        print(f"    {mark(importlib.util.find_spec(module) is not None)} {name}")
    print("    [ ] MXNet\n\nAvailable Controllers:")
    print(
        f"    {mark(basics.mpi_built())} MPI\n    {mark(basics.gloo_built())} Gloo\n\nAvailable"
        " Tensor Operations:"
    )
    for name, there in (
        ("NCCL", basics.nccl_built()),
        ("DDL", basics.ddl_built()),
        ("CCL", basics.ccl_built()),
        ("MPI", basics.mpi_built()),
        ("Gloo", basics.gloo_built()),
    ):
        print(f"    {mark(there)} {name}")
    print(
        "\nGloo stands for collectives without MPI: here Trainyard's own, over shared memory and"
        " TCP."
    )
    return 0


def run(settings: options.Settings) -> int:
    for note in settings.notes:
        say(note)
    try:
        if settings.elastic:
            from horovod.runner import elastic

            return elastic.Driver(settings).run()
        return run_static(settings)
    except places.Wrong as failure:
        say(str(failure))
        return 2
    except Interrupted as interrupted:
        say(f"{interrupted}: all ranks are ended")
        return 128 + interrupted.number


def main(arguments: Sequence[str] | None = None) -> int:
    settings = options.parse(sys.argv[1:] if arguments is None else arguments)
    if settings.version:
        import horovod

        print(horovod.__version__)
        return 0
    if settings.check_build:
        return check_build()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    return run(settings)


if __name__ == "__main__":
    sys.exit(main())
