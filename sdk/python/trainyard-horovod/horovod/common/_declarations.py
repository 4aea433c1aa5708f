"""Declarations in ctypes, which sdk/python/declare.py generates: do not edit.

sdk/python/engine/engine.h
sdk/python/engine/elastic.h
"""

from __future__ import annotations

import ctypes
from typing import Any

TRAINYARD_ENGINE_VERSION = 5


class Launch(ctypes.Structure):
    _fields_ = [
        ("rank", ctypes.c_int32),
        ("ranks", ctypes.c_int32),
        ("local_rank", ctypes.c_int32),
        ("local_ranks", ctypes.c_int32),
        ("meeting_host", ctypes.c_char_p),
        ("meeting_port", ctypes.c_int32),
        ("folder", ctypes.c_char_p),
        ("service_host", ctypes.c_char_p),
        ("service_port", ctypes.c_int32),
        ("elastic", ctypes.c_int32),
        ("secret", ctypes.c_char_p),
        ("told_by", ctypes.c_char_p),
    ]


class Options(ctypes.Structure):
    _fields_ = [
        ("rank", ctypes.c_int32),
        ("ranks", ctypes.c_int32),
        ("meeting_host", ctypes.c_char_p),
        ("meeting_port", ctypes.c_int32),
        ("folder", ctypes.c_char_p),
        ("member", ctypes.c_void_p),
        ("secret", ctypes.c_char_p),
        ("encrypt", ctypes.c_int32),
        ("sockets_per_peer", ctypes.c_int32),
        ("join_ms", ctypes.c_int64),
        ("silence_ms", ctypes.c_int64),
        ("plans", ctypes.c_char_p),
        ("deterministic", ctypes.c_int32),
        ("said", ctypes.c_char_p),
        ("fusion_bytes", ctypes.c_uint64),
        ("cycle_us", ctypes.c_uint32),
        ("cache_entries", ctypes.c_uint32),
        ("stall_report_ms", ctypes.c_int64),
        ("stall_fail_ms", ctypes.c_int64),
        ("reproducible", ctypes.c_int32),
        ("autotune", ctypes.c_int32),
        ("autotune_log", ctypes.c_char_p),
    ]


class Request(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("operation", ctypes.c_int32),
        ("type", ctypes.c_int32),
        ("reduction", ctypes.c_int32),
        ("root", ctypes.c_int32),
        ("set", ctypes.c_int32),
        ("priority", ctypes.c_int32),
        ("compression", ctypes.c_int32),
        ("compression_rank", ctypes.c_int32),
        ("input", ctypes.c_void_p),
        ("output", ctypes.c_void_p),
        ("input_count", ctypes.c_uint64),
        ("output_count", ctypes.c_uint64),
        ("dimensions", ctypes.c_int32),
        ("splits_count", ctypes.c_int32),
        ("shape", ctypes.POINTER(ctypes.c_uint64)),
        ("splits", ctypes.POINTER(ctypes.c_uint64)),
        ("prescale", ctypes.c_double),
        ("postscale", ctypes.c_double),
    ]


class Seat(ctypes.Structure):
    _fields_ = [
        ("generation", ctypes.c_uint64),
        ("rank", ctypes.c_int32),
        ("ranks", ctypes.c_int32),
        ("local_rank", ctypes.c_int32),
        ("local_ranks", ctypes.c_int32),
    ]


# name: what it returns, and what it takes
FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "engine_version": (
        ctypes.c_int32,
        [],
    ),
    "engine_error": (
        ctypes.c_char_p,
        [],
    ),
    "engine_read_launch": (
        ctypes.c_int32,
        [
            ctypes.POINTER(ctypes.c_char_p),
            ctypes.POINTER(ctypes.c_char_p),
            ctypes.c_int32,
            ctypes.POINTER(Launch),
        ],
    ),
    "engine_join": (
        ctypes.c_void_p,
        [
            ctypes.POINTER(Options),
        ],
    ),
    "engine_leave": (
        None,
        [
            ctypes.c_void_p,
        ],
    ),
    "engine_rank": (
        ctypes.c_int32,
        [
            ctypes.c_void_p,
        ],
    ),
    "engine_ranks": (
        ctypes.c_int32,
        [
            ctypes.c_void_p,
        ],
    ),
    "engine_host_of": (
        ctypes.c_int32,
        [
            ctypes.c_void_p,
            ctypes.c_int32,
        ],
    ),
    "engine_heard": (
        ctypes.c_char_p,
        [
            ctypes.c_void_p,
            ctypes.c_int32,
        ],
    ),
    "engine_submit": (
        ctypes.c_int32,
        [
            ctypes.c_void_p,
            ctypes.POINTER(Request),
            ctypes.c_int32,
            ctypes.POINTER(ctypes.c_int64),
        ],
    ),
    "engine_join_ranks": (
        ctypes.c_int64,
        [
            ctypes.c_void_p,
            ctypes.c_int32,
        ],
    ),
    "engine_done": (
        ctypes.c_int32,
        [
            ctypes.c_void_p,
            ctypes.c_int64,
        ],
    ),
    "engine_wait": (
        ctypes.c_int32,
        [
            ctypes.c_void_p,
            ctypes.c_int64,
        ],
    ),
    "engine_last": (
        ctypes.c_int32,
        [
            ctypes.c_void_p,
            ctypes.c_int64,
        ],
    ),
    "engine_rows": (
        ctypes.c_int32,
        [
            ctypes.c_void_p,
            ctypes.c_int64,
            ctypes.POINTER(ctypes.c_uint64),
            ctypes.c_int32,
        ],
    ),
    "engine_kept_bytes": (
        ctypes.c_uint64,
        [
            ctypes.c_void_p,
            ctypes.c_int64,
        ],
    ),
    "engine_take": (
        ctypes.c_int32,
        [
            ctypes.c_void_p,
            ctypes.c_int64,
            ctypes.c_void_p,
            ctypes.c_uint64,
        ],
    ),
    "engine_forget": (
        None,
        [
            ctypes.c_void_p,
            ctypes.c_int64,
        ],
    ),
    "engine_add_set": (
        ctypes.c_int32,
        [
            ctypes.c_void_p,
            ctypes.POINTER(ctypes.c_int32),
            ctypes.c_int32,
        ],
    ),
    "engine_remove_set": (
        ctypes.c_int32,
        [
            ctypes.c_void_p,
            ctypes.c_int32,
        ],
    ),
    "engine_timeline_start": (
        ctypes.c_int32,
        [
            ctypes.c_void_p,
            ctypes.c_char_p,
            ctypes.c_int32,
        ],
    ),
    "engine_timeline_stop": (
        ctypes.c_int32,
        [
            ctypes.c_void_p,
        ],
    ),
    "service_start": (
        ctypes.c_void_p,
        [
            ctypes.c_char_p,
            ctypes.c_int32,
            ctypes.c_char_p,
            ctypes.c_int32,
            ctypes.c_int32,
            ctypes.c_int64,
            ctypes.c_int32,
        ],
    ),
    "service_stop": (
        None,
        [
            ctypes.c_void_p,
        ],
    ),
    "service_port": (
        ctypes.c_int32,
        [
            ctypes.c_void_p,
        ],
    ),
    "service_expect": (
        None,
        [
            ctypes.c_void_p,
            ctypes.c_char_p,
        ],
    ),
    "service_gone": (
        None,
        [
            ctypes.c_void_p,
            ctypes.c_char_p,
            ctypes.c_char_p,
        ],
    ),
    "service_host": (
        None,
        [
            ctypes.c_void_p,
            ctypes.c_char_p,
            ctypes.c_int32,
        ],
    ),
    "service_next": (
        ctypes.c_int32,
        [
            ctypes.c_void_p,
            ctypes.c_int64,
            ctypes.POINTER(ctypes.c_char_p),
            ctypes.POINTER(ctypes.c_char_p),
            ctypes.POINTER(ctypes.c_uint64),
            ctypes.POINTER(ctypes.c_int32),
        ],
    ),
    "service_missing": (
        ctypes.c_char_p,
        [
            ctypes.c_void_p,
        ],
    ),
    "member_connect": (
        ctypes.c_void_p,
        [
            ctypes.c_char_p,
            ctypes.c_int32,
            ctypes.c_char_p,
            ctypes.c_char_p,
            ctypes.c_char_p,
            ctypes.c_int32,
        ],
    ),
    "member_leave": (
        None,
        [
            ctypes.c_void_p,
        ],
    ),
    "member_next": (
        ctypes.c_int32,
        [
            ctypes.c_void_p,
            ctypes.c_char_p,
            ctypes.c_int64,
            ctypes.POINTER(Seat),
        ],
    ),
    "member_changed": (
        ctypes.c_int32,
        [
            ctypes.c_void_p,
        ],
    ),
    "member_done": (
        None,
        [
            ctypes.c_void_p,
        ],
    ),
}


def declare(library: ctypes.CDLL) -> None:
    for name, (result, takes) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, takes
