"""Loads libtrainyard_collectives, the C interface of Trainyard (src/compute/capi), by ctypes.

The library takes addresses, so it fits every torch and every TensorFlow. _declarations.py declares
its functions.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any, TypeVar

from trainyard import _declarations as c

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libtrainyard_collectives.so")
INSTALL = (
    "pip install --force-reinstall --no-cache-dir ./sdk/python ./sdk/python/trainyard-horovod (in a"
    " checkout of Trainyard)"
)

Struct = TypeVar("Struct", bound=ctypes.Structure)
_loaded: ctypes.CDLL | None = None


class Failure(Exception):
    """Raised when a function of the library fails."""

    def __init__(self, kind: int, message: str) -> None:
        super().__init__(message)
        self.kind = kind  # of trainyard_kind


def _check_version(here: int) -> None:
    if here != c.TRAINYARD_COLLECTIVES_ABI:
        raise ImportError(
            f"the compiled library of trainyard ({PATH}) has version {here} of the C interface, and"
            f" this Python needs version {c.TRAINYARD_COLLECTIVES_ABI}: they come from two"
            f" checkouts. Install all again: {INSTALL}"
        )


def load(path: str = PATH) -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(path)
    except OSError as failure:
        raise ImportError(
            f"the compiled library of trainyard cannot be loaded here: {failure}. It is compiled"
            f" for one kind of processor and system. Install it again: {INSTALL}"
        ) from failure
    _check_version(library.trainyard_collectives_abi())
    try:
        c.declare(library)
    except AttributeError as failure:
        raise ImportError(
            f"the compiled library of trainyard ({path}) lacks a function that this Python needs"
            f" ({failure}): they come from two checkouts. Install all again: {INSTALL}"
        ) from failure
    return library


def library() -> ctypes.CDLL:
    global _loaded
    if _loaded is None:
        _loaded = load()
    return _loaded


def sized(kind: type[Struct], **members: Any) -> Struct:
    """Returns a struct of the library whose member `size` is set."""
    return kind(size=ctypes.sizeof(kind), **members)


def call(name: str, *arguments: Any) -> None:
    """Calls a function whose last argument is the message. Raises Failure."""
    message = ctypes.create_string_buffer(c.TRAINYARD_ERROR_BYTES)
    kind = getattr(library(), name)(*arguments, message)
    if kind != c.TRAINYARD_OK:
        raise Failure(kind, message.value.decode(errors="replace"))


def text(name: str, *arguments: Any) -> str:
    """Calls a function that returns a text, which the caller frees."""
    address = getattr(library(), name)(*arguments)
    if not address:
        raise MemoryError(name)
    try:
        return ctypes.string_at(address).decode(errors="replace")
    finally:
        library().trainyard_text_free(address)
