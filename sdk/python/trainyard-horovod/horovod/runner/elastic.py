"""Runs an elastic training job: discovers hosts repeatedly, starts processes in free slots, and
restarts failed processes until their host is blacklisted.

`Fleet` decides which processes to start, without side effects; `Driver` starts them.
"""

from __future__ import annotations

import dataclasses
import os
import secrets
import subprocess
import time
from collections.abc import Iterable

from horovod.runner import hosts as places
from horovod.runner import processes
from horovod.runner.service import DISMISSED, FORMED, Service
from horovod.runner.settings import Settings

LOOK_SECONDS = 1.0  # between two discoveries of hosts
DISCOVERY_SECONDS_MAX = 60  # a discovery script that takes longer has failed
RESTART_SECONDS = 1.0  # before a slot is filled again; the remaining ranks continue meanwhile
# A host is blacklisted after this many failures of its processes without a new generation.
FAILURES_MAX = 3
TICK_SECONDS = 0.1


@dataclasses.dataclass
class HostRecord:
    """The known state of a host."""

    slots: int = 0  # 0: the host was removed
    failures: int = 0  # of its processes, since the last generation was formed
    times_blacklisted: int = 0
    again_at: float | None = None  # end of the cooldown of a blacklisted host; None: never
    blacklisted: bool = False


@dataclasses.dataclass
class Worker:
    name: str
    host: str
    slot: int
    leave_requested: bool = False


class Fleet:
    """Decides which worker processes should run, at most `most` at a time. Times are in seconds, of
    any one clock. `cooldown`: the shortest and the longest time for which a host is blacklisted;
    None: for good."""

    def __init__(self, most: int, cooldown: tuple[float, float] | None = None) -> None:
        self.most, self.cooldown = most, cooldown
        # both by name
        self.records: dict[str, HostRecord] = {}
        self.workers: dict[str, Worker] = {}
        # (host, slot) -> when it may be filled again
        self.ready_at: dict[tuple[str, int], float] = {}
        self.started = 0
        self.done = False

    def update_hosts(self, hosts: Iterable[places.Host]) -> tuple[list[str], list[str]]:
        """Updates the hosts. Returns (hosts that were removed, hosts that have returned)."""
        there = {host.name: host.slots for host in hosts}
        went = [name for name, record in self.records.items() if record.slots and name not in there]
        back = [name for name in there if name in self.records and not self.records[name].slots]
        for name in went:
            self.records[name].slots = 0
        for name, slots in there.items():
            self.records.setdefault(name, HostRecord()).slots = slots
        return went, back

    def to_start(self, now: float) -> list[Worker]:
        """Returns the workers to start now, and records them as started."""
        if self.done:
            return []
        started: list[Worker] = []
        taken = {(worker.host, worker.slot) for worker in self.workers.values()}
        for host, record in self.records.items():
            if record.blacklisted and record.again_at is not None and now >= record.again_at:
                record.blacklisted, record.failures = False, 0
            if record.blacklisted:
                continue
            for slot in range(record.slots):
                if len(self.workers) >= self.most:
                    return started
                # A host that lost slots may have workers in slots that no longer exist.
                if sum(worker.host == host for worker in self.workers.values()) >= record.slots:
                    break
                if (host, slot) in taken or now < self.ready_at.get((host, slot), now):
                    continue
                self.started += 1
                worker = Worker(f"{host}/{slot} #{self.started}", host, slot)
                self.workers[worker.name] = worker
                started.append(worker)
        return started

    def ended(self, name: str, failed: bool, now: float) -> str | None:
        """Records the end of a worker. Returns its host if this blacklists the host."""
        worker = self.workers.pop(name)
        record = self.records[worker.host]
        self.ready_at[(worker.host, worker.slot)] = now + RESTART_SECONDS
        if not failed:
            # A rank that was requested to leave also ends with 0; any other rank with 0 has
            # finished.
            self.done = self.done or not worker.leave_requested
            return None
        record.failures += 1
        if record.failures < FAILURES_MAX or record.blacklisted:
            return None
        record.blacklisted, record.again_at = True, None
        if self.cooldown:
            record.again_at = now + min(
                self.cooldown[0] * 2**record.times_blacklisted, self.cooldown[1]
            )
        record.times_blacklisted += 1
        return worker.host

    def generation_formed(self) -> None:
        """Resets the failures of the hosts that are not blacklisted."""
        for record in self.records.values():
            if not record.blacklisted:
                record.failures = 0

    def slots(self) -> int:
        """Returns the number of slots on hosts that are not blacklisted."""
        return sum(record.slots for record in self.records.values() if not record.blacklisted)

    def may_come(self) -> bool:
        """Returns whether a blacklisted host will be used again after its cooldown."""
        return any(
            record.blacklisted and record.again_at is not None and record.slots > 0
            for record in self.records.values()
        )


class Driver:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        assert settings.min_np is not None and settings.max_np is not None
        self._min_np, self._max_np = settings.min_np, settings.max_np
        self._fleet = Fleet(self._max_np, settings.cooldown)
        self._processes: dict[str, processes.Process] = {}
        self._secret = secrets.token_hex(32)
        self._complained = False
        self._generation_ranks = 0

    def run(self) -> int:
        hosts = self._wait_for_hosts()
        names = [host.name for host in hosts]
        # The script may discover remote hosts later, which must be able to reach this host.
        local = not self._settings.discovery and all(places.is_local(name) for name in names)
        self._address = places.address_towards(names)
        settings = self._settings
        self._service = Service(
            "127.0.0.1" if local else "0.0.0.0",
            self._secret,
            self._min_np,
            self._max_np,
            settings.elastic_timeout,
            settings.reset_limit + 1 if settings.reset_limit else 0,
        )
        self._watcher = processes.Watcher()
        try:
            return self._loop()
        finally:
            processes.end_all(list(self._processes.values()))
            self._watcher.stop()
            self._service.stop()

    def _discover(self) -> list[places.Host] | None:
        """Returns the hosts, or None if the script failed; then the hosts stay as they are."""
        if not self._settings.discovery:
            from horovod.runner import launch

            return launch.hosts_of(self._settings)
        try:
            output = subprocess.run(
                (
                    [self._settings.discovery]
                    if os.path.exists(self._settings.discovery)
                    else ["sh", "-c", self._settings.discovery]
                ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                timeout=DISCOVERY_SECONDS_MAX,
                check=True,
            ).stdout.decode()
            lines = [line for line in output.splitlines() if line.strip()]
            return places.merged([places.parse(line, self._settings.slots)[0] for line in lines])
        except (OSError, subprocess.SubprocessError, places.Wrong) as failure:
            if not self._complained:
                self._say(f"discovering hosts: {failure}")
            self._complained = True
            return None

    def _wait_for_hosts(self) -> list[places.Host]:
        deadline = time.monotonic() + self._settings.elastic_timeout
        while True:
            hosts = self._discover() or []
            if hosts:
                return hosts
            if time.monotonic() > deadline:
                raise places.Wrong(
                    f"no host was found within {self._settings.elastic_timeout:.0f} s"
                    " (--elastic-timeout)"
                )
            time.sleep(LOOK_SECONDS)

    def _loop(self) -> int:
        look_at, few_since, first = 0.0, None, True
        while True:
            now = time.monotonic()
            if now >= look_at:
                self._look(first)
                look_at, first = now + LOOK_SECONDS, False
            self._start(now)
            self._hear()
            self._collect(now)
            if not self._processes:
                if self._fleet.done:
                    return 0
                if (
                    self._fleet.slots() == 0
                    and not self._fleet.may_come()
                    and not self._settings.discovery
                ):
                    self._say("no host is left: all are blacklisted after failures")
                    return 1
            few_since = (few_since or now) if not self._fleet.done and self._few() else None
            if few_since and now - few_since > self._settings.elastic_timeout:
                self._say(
                    f"fewer than {self._min_np} ranks for"
                    f" {self._settings.elastic_timeout:.0f} s (--elastic-timeout):"
                    f" {self._service.missing() or 'none connected'}"
                )
                return 1

    def _few(self) -> bool:
        return (
            self._generation_ranks < self._min_np
            or self._service.missing() != ""
            or not self._processes
        )

    def _look(self, first: bool) -> None:
        hosts = self._discover()
        if hosts is None:
            return
        went, back = self._fleet.update_hosts(hosts)
        for host in went:
            self._say(f"lost host {host}: the discovery script no longer lists it")
            self._service.host_leaves(host)
            for worker in self._fleet.workers.values():
                worker.leave_requested = worker.leave_requested or worker.host == host
        for host in back:
            self._service.host_returns(host)
        if not first and self._settings.verbose and (went or back):
            self._say(f"hosts: {', '.join(f'{host.name}:{host.slots}' for host in hosts)}")

    def _start(self, now: float) -> None:
        from horovod.runner import launch

        for worker in self._fleet.to_start(now):
            # The first generation waits for these processes. Processes that are started later are
            # admitted when they connect.
            if self._generation_ranks == 0:
                self._service.expect(worker.name)
            number = worker.name.rsplit("#", 1)[1]
            outputs = (
                os.path.join(self._settings.outputs, f"worker.{number}")
                if self._settings.outputs
                else None
            )
            self._processes[worker.name] = launch.start(
                self._settings,
                self._watcher,
                worker.host,
                worker.slot,
                worker.name,
                f"[{worker.name}]",
                self._address,
                self._service.port,
                self._secret,
                {
                    "HOROVOD_ELASTIC": "1",
                    "HOROVOD_ELASTIC_TIMEOUT": str(self._settings.elastic_timeout + 60),
                },
                outputs,
            )

    def _hear(self) -> None:
        event = self._service.next(TICK_SECONDS)
        while event:
            kind, name, text, _, ranks = event
            if kind == FORMED:
                self._generation_ranks = ranks
                self._fleet.generation_formed()
            if kind == DISMISSED and name in self._fleet.workers:
                self._fleet.workers[name].leave_requested = True
            if self._settings.verbose or kind in (FORMED, DISMISSED):
                self._say(text)
            event = self._service.next(0)

    def _collect(self, now: float) -> None:
        for name, process in list(self._processes.items()):
            code = process.poll()
            if code is None:
                continue
            process.drain()
            process.kill()
            del self._processes[name]
            why = processes.how_it_ended(code)
            worker = self._fleet.workers[name]
            self._service.gone(name, why)
            if why and not self._fleet.done:
                self._say(f"{name} failed: {why}")
            host = self._fleet.ended(name, bool(why) and not worker.leave_requested, now)
            if host:
                record = self._fleet.records[host]
                left = "" if record.again_at is None else f" for {record.again_at - now:.0f} s"
                self._say(
                    f"host {host} is blacklisted{left}: {FAILURES_MAX} of its processes failed"
                )

    @staticmethod
    def _say(text: str) -> None:
        from horovod.runner import launch

        launch.say(text)
