"""Tests hosts with different networks: each finds an address at which the others reach it, by
routes and by attempts, never by names of interfaces."""

import contextlib
import os
import subprocess
from collections.abc import Iterator, Sequence

import pytest

from tests.torch import ranks

HOSTS = 3
# Misleading interfaces: one of a single host that comes first, is up, and leads nowhere; one that
# two hosts have with the same address, like bridges of container runtimes; and names of which no
# two hosts have the same.
DEAD_ENDS = {
    0: ["192.168.77.1/24", "fd77::1/64"],
    1: ["172.17.0.1/16", "fd17::1/64"],
    2: ["172.17.0.1/16", "fd17::1/64"],
}
NETWORKS = {
    "IPv4": ["10.214.9.{}/24"],
    "IPv6": ["fd09::{}/64"],
    "both": ["10.214.9.{}/24", "fd09::{}/64"],
}


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def hosts(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """Makes network namespaces on one bridge, with the addresses of the parameter; returns their
    names."""
    names = [f"unlike{os.getpid()}-{number}" for number in range(HOSTS)]
    switch = f"unlike{os.getpid()}-switch"
    with contextlib.ExitStack() as made:
        for name in [switch, *names]:
            ip("netns", "add", name)
            made.callback(ip, "netns", "del", name)
        ip("-n", switch, "link", "add", "bridge", "type", "bridge")
        ip("-n", switch, "link", "set", "bridge", "up")
        for number, name in enumerate(names):

            def add(addresses: Sequence[str], device: str, name: str = name) -> None:
                ip("-n", name, "link", "set", device, "up")
                for address in addresses:
                    ip(
                        "-n",
                        name,
                        "addr",
                        "add",
                        address,
                        "dev",
                        device,
                        *(["nodad"] if ":" in address else []),
                    )

            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "link", "add", f"dead{number}", "type", "veth", "peer", "name", "end")
            ip("-n", name, "link", "set", "end", "up")
            add(DEAD_ENDS[number], f"dead{number}")
            ip(
                "-n",
                name,
                "link",
                "add",
                f"net{number}",
                "type",
                "veth",
                "peer",
                "name",
                f"port{number}",
                "netns",
                switch,
            )
            ip("-n", switch, "link", "set", f"port{number}", "master", "bridge", "up")
            add([address.format(number + 1) for address in NETWORKS[request.param]], f"net{number}")
            if number == 0:  # its default route does not lead to the other hosts
                ip("-n", name, "route", "add", "default", "via", "192.168.77.2")
        yield names


@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
@pytest.mark.parametrize("hosts", NETWORKS, indirect=True)
def test_hosts_with_unlike_interfaces_find_each_other(hosts: str) -> None:
    results = ranks.run(
        "beyond_gloo", HOSTS, within=lambda rank: ["ip", "netns", "exec", hosts[rank]]
    )
    assert results == ["good"] * HOSTS
