"""Parses lists of hosts, and assigns ranks to hosts. Pure except for `is_local`."""

from __future__ import annotations

import dataclasses
import re
import socket
from collections.abc import Iterable, Sequence


class Wrong(ValueError):
    """An error in the command line or the hostfile."""


@dataclasses.dataclass(frozen=True)
class Host:
    name: str
    slots: int


@dataclasses.dataclass(frozen=True)
class Slot:
    host: str
    rank: int
    size: int
    local_rank: int
    local_size: int
    cross_rank: int
    cross_size: int


_HOST = re.compile(r"^(?P<name>\[[0-9a-fA-F:.]+\]|[\w.-]+)(?::(?P<slots>\d+))?$")


def _host(text: str, slots: int) -> Host:
    found = _HOST.match(text.strip())
    if not found:
        raise Wrong(f"invalid host '{text.strip()}': write HOST or HOST:SLOTS")
    count = int(found["slots"]) if found["slots"] else slots
    if count < 1:
        raise Wrong(f"invalid host {found['name']}: 0 slots")
    return Host(found["name"].strip("[]"), count)


def parse(text: str, slots: int = 1) -> list[Host]:
    """Parses "h1:2,h2:4". Hosts without a number have `slots` slots."""
    hosts = [_host(each, slots) for each in text.split(",") if each.strip()]
    if not hosts:
        raise Wrong("no hosts: pass -H or --hostfile")
    return merged(hosts)


def parse_file(text: str, slots: int = 1) -> list[Host]:
    """Parses a hostfile: a line is `HOST slots=N` or `HOST:N`; # begins a comment."""
    hosts = []
    for line in text.splitlines():
        words = line.split("#")[0].split()
        if not words:
            continue
        given = [word.split("=", 1)[1] for word in words[1:] if word.startswith("slots=")]
        if len(words) > 2 or (len(words) == 2 and (not given or not given[0].isdigit())):
            raise Wrong(f"invalid line '{line.strip()}' in the hostfile: write HOST slots=N")
        hosts.append(_host(words[0], int(given[0]) if given else slots))
    if not hosts:
        raise Wrong("the hostfile has no hosts: write HOST slots=N, one a line")
    return merged(hosts)


def merged(hosts: Iterable[Host]) -> list[Host]:
    """Merges repeated names: the host has the sum of their slots."""
    slots: dict[str, int] = {}
    for host in hosts:
        slots[host.name] = slots.get(host.name, 0) + host.slots
    return [Host(name, count) for name, count in slots.items()]


def assign(hosts: Sequence[Host], count: int) -> list[Slot]:
    """Assigns ranks to the first `count` slots, in the order of the hosts."""
    there = sum(host.slots for host in hosts)
    if count > there:
        raise Wrong(
            f"{count} ranks were requested, but the hosts have {there} slots:"
            f" {', '.join(f'{host.name}:{host.slots}' for host in hosts)}; use a smaller -np, or"
            " add slots to -H or --hostfile"
        )
    used, left = [], count
    for host in hosts:
        used.append((host.name, min(host.slots, left)))
        left -= used[-1][1]
    slots, rank = [], 0
    for place, (name, local_size) in enumerate(used):
        for local_rank in range(local_size):
            across = [other for other, (_, size) in enumerate(used) if size > local_rank]
            slots.append(
                Slot(name, rank, count, local_rank, local_size, across.index(place), len(across))
            )
            rank += 1
    return slots


def is_local(name: str) -> bool:
    if name in ("localhost", "127.0.0.1", "::1", socket.gethostname(), socket.getfqdn()):
        return True
    try:
        addresses = {str(each[4][0]) for each in socket.getaddrinfo(name, None)}
    except OSError:
        return False
    for address in addresses:
        if address.startswith("127.") or address == "::1":
            return True
        # An address belongs to this host if it can listen there.
        with socket.socket(
            socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM
        ) as probe:
            try:
                probe.bind((address, 0))
                return True
            except OSError:
                continue
    return False


def address_towards(names: Iterable[str]) -> str:
    """Returns the address of this host for connections from the other host: the one from which the
    kernel would send to it."""
    for name in names:
        if is_local(name):
            continue
        try:
            family, _, _, _, place = socket.getaddrinfo(name, 9, type=socket.SOCK_DGRAM)[0]
        except OSError as failure:
            raise Wrong(f"host {name}: {failure}") from failure
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(place)
            return str(probe.getsockname()[0])
    return "127.0.0.1"
