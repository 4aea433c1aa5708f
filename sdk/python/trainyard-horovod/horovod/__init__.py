"""Scripts written for Horovod, over Trainyard's collectives.
The version is that of the interface they find here."""

from __future__ import annotations

from typing import Any

__version__ = "0.28.1+trainyard.0.1.0"


def run(*arguments: Any, **more: Any) -> list[Any]:
    """A function on several ranks, and what each returned: see horovod.runner.run."""
    from horovod import runner

    return runner.run(*arguments, **more)
