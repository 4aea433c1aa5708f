"""Finds ports for servers of tests."""

import socket


def free_port() -> int:
    """Returns a port of the loopback interface that no program uses."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
