"""Implements Horovod's Python interface with Trainyard's collectives. The version begins with the
version of Horovod that has this interface."""

from __future__ import annotations

from typing import Any

__version__ = "0.28.1+trainyard.0.1.0"


def run(*arguments: Any, **more: Any) -> list[Any]:
    """Runs a function on several ranks and returns their results: see horovod.runner.run."""
    from horovod import runner

    return runner.run(*arguments, **more)
