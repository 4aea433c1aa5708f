"""Makes the network of a control plane's tests: a bridge, to which the API server, the servers and
the pods are attached. Needs root."""

import os

from tests.network_commands import ip

BRIDGE = "tykube"
SUBNET = "10.219.78"
GATEWAY = f"{SUBNET}.1"  # this machine's address there
ADDRESSES = range(10, 250)  # of pods


def make_network() -> None:
    remove_network()
    ip("link", "add", BRIDGE, "type", "bridge")
    ip("address", "add", f"{GATEWAY}/24", "dev", BRIDGE)
    ip("link", "set", BRIDGE, "up")


def remove_network() -> None:
    for number in ADDRESSES:
        if os.path.exists(f"/run/netns/{BRIDGE}-{number}"):
            ip("netns", "delete", f"{BRIDGE}-{number}", check=False)
    ip("link", "delete", BRIDGE, check=False)
