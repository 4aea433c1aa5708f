"""Waits for campaigns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.trainyard_server import Server, wait_for

SECONDS_MAX = 120


def finished(
    describe: Callable[[Server, str], dict[str, Any]], server: Server, name: str
) -> dict[str, Any]:
    """Returns the campaign once all of its jobs have ended."""

    def over() -> dict[str, Any] | None:
        seen = describe(server, name)
        return seen if seen["Status"] not in ("InProgress", "Stopping") else None

    return wait_for(over, f"the campaign {name} to be over", SECONDS_MAX)
