"""Horovod's interface for Python, over Trainyard's collectives. The version is that of the Horovod
whose interface this is."""

from __future__ import annotations

from typing import Any

__version__ = "0.28.1+trainyard.0.1.0"


def run(*arguments: Any, **more: Any) -> list[Any]:
    """Runs a function on several ranks and returns their results: see horovod.runner.run."""
    from horovod import runner

    return runner.run(*arguments, **more)
