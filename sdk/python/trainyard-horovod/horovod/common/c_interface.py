"""Imports the C interface of Trainyard from the distribution trainyard."""

from __future__ import annotations

try:
    from trainyard import _declarations as declarations
    from trainyard import _library as library
except ImportError as failure:
    raise ImportError(
        f"trainyard-horovod needs the distribution trainyard of the same checkout: {failure}."
        " Install both again: pip install --force-reinstall --no-cache-dir ./sdk/python"
        " ./sdk/python/trainyard-horovod (in a checkout of Trainyard)"
    ) from failure

__all__ = ["declarations", "library"]
