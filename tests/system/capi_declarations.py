"""Declarations in ctypes, which sdk/python/declare.py generates: do not edit.

src/compute/capi/trainyard_collectives.h
src/compute/capi/trainyard_parameters.h
src/compute/capi/trainyard_regions.h
"""

from __future__ import annotations

import ctypes
from typing import Any

TRAINYARD_COLLECTIVES_ABI = 1
TRAINYARD_ERROR_BYTES = 1024
TRAINYARD_OK = 0
TRAINYARD_INVALID = 1
TRAINYARD_DENIED = 2
TRAINYARD_NOT_FOUND = 3
TRAINYARD_CONFLICT = 4
TRAINYARD_EXHAUSTED = 5
TRAINYARD_UNAVAILABLE = 6
TRAINYARD_CANCELLED = 7
TRAINYARD_CORRUPT = 8
TRAINYARD_INTERNAL = 9
TRAINYARD_ALLREDUCE = 0
TRAINYARD_REDUCE_SCATTER = 1
TRAINYARD_ALL_GATHER = 2
TRAINYARD_BROADCAST = 3
TRAINYARD_REDUCE = 4
TRAINYARD_GATHER = 5
TRAINYARD_SCATTER = 6
TRAINYARD_ALL_TO_ALL = 7
TRAINYARD_BARRIER = 8
TRAINYARD_F64 = 0
TRAINYARD_F32 = 1
TRAINYARD_F16 = 2
TRAINYARD_BF16 = 3
TRAINYARD_F8E4M3 = 4
TRAINYARD_F8E5M2 = 5
TRAINYARD_I64 = 6
TRAINYARD_I32 = 7
TRAINYARD_I16 = 8
TRAINYARD_I8 = 9
TRAINYARD_U8 = 10
TRAINYARD_BOOL = 11
TRAINYARD_SUM = 0
TRAINYARD_AVERAGE = 1
TRAINYARD_MINIMUM = 2
TRAINYARD_MAXIMUM = 3
TRAINYARD_PRODUCT = 4
TRAINYARD_BITS_AND = 5
TRAINYARD_BITS_OR = 6
TRAINYARD_BITS_XOR = 7
TRAINYARD_RULE_SUM = 0
TRAINYARD_SGD = 1
TRAINYARD_MOMENTUM = 2
TRAINYARD_ADAGRAD = 3
TRAINYARD_SYNCHRONOUS = 0
TRAINYARD_BOUNDED = 1
TRAINYARD_ASYNCHRONOUS = 2


class Join(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("rank", ctypes.c_int),
        ("ranks", ctypes.c_int),
        ("hosts", ctypes.POINTER(ctypes.c_char_p)),
        ("ports", ctypes.POINTER(ctypes.c_uint16)),
        ("secret", ctypes.c_char_p),
        ("join_deadline_ms", ctypes.c_int64),
        ("silence_max_ms", ctypes.c_int64),
        ("deterministic", ctypes.c_int),
        ("plans", ctypes.c_char_p),
        ("encrypt", ctypes.c_int),
        ("sockets_per_peer", ctypes.c_int),
        ("timeline", ctypes.c_int),
        ("rendezvous", ctypes.c_char_p),
        ("from_launcher", ctypes.c_int),
    ]


class Call(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("operation", ctypes.c_int),
        ("type", ctypes.c_int),
        ("input", ctypes.c_void_p),
        ("output", ctypes.c_void_p),
        ("input_count", ctypes.c_size_t),
        ("output_count", ctypes.c_size_t),
        ("reduction", ctypes.c_int),
        ("prescale", ctypes.c_double),
        ("root", ctypes.c_int),
        ("counts", ctypes.POINTER(ctypes.c_size_t)),
        ("received_counts", ctypes.POINTER(ctypes.c_size_t)),
        ("name", ctypes.c_char_p),
    ]


class Table(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("rows", ctypes.c_uint64),
        ("width", ctypes.c_uint32),
        ("rule", ctypes.c_int),
        ("learning_rate", ctypes.c_float),
        ("momentum", ctypes.c_float),
    ]


class Service(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("tables", ctypes.POINTER(Table)),
        ("tables_count", ctypes.c_size_t),
        ("servers", ctypes.POINTER(ctypes.c_int)),
        ("servers_count", ctypes.c_size_t),
        ("consistency", ctypes.c_int),
        ("staleness", ctypes.c_uint64),
    ]


class RegionsJoin(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("region", ctypes.c_int),
        ("regions", ctypes.c_int),
        ("hosts", ctypes.POINTER(ctypes.c_char_p)),
        ("ports", ctypes.POINTER(ctypes.c_uint16)),
        ("secret", ctypes.c_char_p),
        ("learning_rate", ctypes.c_float),
        ("momentum", ctypes.c_float),
        ("coding", ctypes.c_char_p),
        ("charter", ctypes.c_char_p),
        ("regions_min", ctypes.c_int),
        ("join_deadline_ms", ctypes.c_int64),
        ("round_timeout_ms", ctypes.c_int64),
        ("encrypt", ctypes.c_int),
    ]


class Round(ctypes.Structure):
    _fields_ = [
        ("number", ctypes.c_uint64),
        ("regions", ctypes.c_int),
        ("adopted", ctypes.c_int),
    ]


# name: what it returns, and what it takes
FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "trainyard_collectives_abi": (
        ctypes.c_int,
        [],
    ),
    "trainyard_group_join": (
        ctypes.c_int,
        [
            ctypes.POINTER(Join),
            ctypes.POINTER(ctypes.c_void_p),
            ctypes.c_void_p,
        ],
    ),
    "trainyard_group_free": (
        None,
        [
            ctypes.c_void_p,
        ],
    ),
    "trainyard_group_rank": (
        ctypes.c_int,
        [
            ctypes.c_void_p,
        ],
    ),
    "trainyard_group_size": (
        ctypes.c_int,
        [
            ctypes.c_void_p,
        ],
    ),
    "trainyard_group_run": (
        ctypes.c_int,
        [
            ctypes.c_void_p,
            ctypes.POINTER(Call),
            ctypes.c_void_p,
        ],
    ),
    "trainyard_group_start": (
        ctypes.c_int,
        [
            ctypes.c_void_p,
            ctypes.POINTER(Call),
            ctypes.POINTER(ctypes.c_void_p),
            ctypes.c_void_p,
        ],
    ),
    "trainyard_handle_done": (
        ctypes.c_int,
        [
            ctypes.c_void_p,
        ],
    ),
    "trainyard_handle_wait": (
        ctypes.c_int,
        [
            ctypes.c_void_p,
            ctypes.c_void_p,
        ],
    ),
    "trainyard_group_send": (
        ctypes.c_int,
        [
            ctypes.c_void_p,
            ctypes.c_int,
            ctypes.c_void_p,
            ctypes.c_size_t,
            ctypes.c_void_p,
        ],
    ),
    "trainyard_group_receive": (
        ctypes.c_int,
        [
            ctypes.c_void_p,
            ctypes.c_int,
            ctypes.c_void_p,
            ctypes.c_size_t,
            ctypes.c_void_p,
        ],
    ),
    "trainyard_group_start_send": (
        ctypes.c_int,
        [
            ctypes.c_void_p,
            ctypes.c_int,
            ctypes.c_void_p,
            ctypes.c_size_t,
            ctypes.POINTER(ctypes.c_void_p),
            ctypes.c_void_p,
        ],
    ),
    "trainyard_group_start_receive": (
        ctypes.c_int,
        [
            ctypes.c_void_p,
            ctypes.c_int,
            ctypes.c_void_p,
            ctypes.c_size_t,
            ctypes.POINTER(ctypes.c_void_p),
            ctypes.c_void_p,
        ],
    ),
    "trainyard_group_split": (
        ctypes.c_int,
        [
            ctypes.c_void_p,
            ctypes.c_int,
            ctypes.POINTER(ctypes.c_void_p),
            ctypes.c_void_p,
        ],
    ),
    "trainyard_group_allocate": (
        ctypes.c_int,
        [
            ctypes.c_void_p,
            ctypes.c_size_t,
            ctypes.POINTER(ctypes.c_void_p),
            ctypes.c_void_p,
        ],
    ),
    "trainyard_group_free_memory": (
        None,
        [
            ctypes.c_void_p,
            ctypes.c_void_p,
        ],
    ),
    "trainyard_group_table": (
        ctypes.c_void_p,
        [
            ctypes.c_void_p,
        ],
    ),
    "trainyard_group_timeline": (
        ctypes.c_void_p,
        [
            ctypes.c_void_p,
        ],
    ),
    "trainyard_group_under_way": (
        ctypes.c_void_p,
        [
            ctypes.c_void_p,
        ],
    ),
    "trainyard_text_free": (
        None,
        [
            ctypes.c_void_p,
        ],
    ),
    "trainyard_serve": (
        ctypes.c_int,
        [
            ctypes.c_void_p,
            ctypes.POINTER(Service),
            ctypes.c_void_p,
        ],
    ),
    "trainyard_worker_join": (
        ctypes.c_int,
        [
            ctypes.c_void_p,
            ctypes.POINTER(Service),
            ctypes.POINTER(ctypes.c_void_p),
            ctypes.c_void_p,
        ],
    ),
    "trainyard_worker_free": (
        None,
        [
            ctypes.c_void_p,
        ],
    ),
    "trainyard_worker_assign": (
        ctypes.c_int,
        [
            ctypes.c_void_p,
            ctypes.c_uint32,
            ctypes.POINTER(ctypes.c_float),
            ctypes.c_size_t,
            ctypes.c_void_p,
        ],
    ),
    "trainyard_worker_push": (
        ctypes.c_int,
        [
            ctypes.c_void_p,
            ctypes.c_uint32,
            ctypes.POINTER(ctypes.c_uint64),
            ctypes.c_size_t,
            ctypes.POINTER(ctypes.c_float),
            ctypes.c_size_t,
            ctypes.c_void_p,
        ],
    ),
    "trainyard_worker_pull": (
        ctypes.c_int,
        [
            ctypes.c_void_p,
            ctypes.c_uint32,
            ctypes.POINTER(ctypes.c_uint64),
            ctypes.c_size_t,
            ctypes.POINTER(ctypes.c_float),
            ctypes.c_size_t,
            ctypes.c_void_p,
        ],
    ),
    "trainyard_worker_end_round": (
        ctypes.c_int,
        [
            ctypes.c_void_p,
            ctypes.c_void_p,
        ],
    ),
    "trainyard_worker_leave": (
        ctypes.c_int,
        [
            ctypes.c_void_p,
            ctypes.c_void_p,
        ],
    ),
    "trainyard_regions_open": (
        ctypes.c_int,
        [
            ctypes.POINTER(RegionsJoin),
            ctypes.POINTER(ctypes.c_float),
            ctypes.c_size_t,
            ctypes.POINTER(ctypes.c_void_p),
            ctypes.c_void_p,
        ],
    ),
    "trainyard_regions_free": (
        None,
        [
            ctypes.c_void_p,
        ],
    ),
    "trainyard_regions_average": (
        ctypes.c_int,
        [
            ctypes.c_void_p,
            ctypes.POINTER(ctypes.c_float),
            ctypes.c_size_t,
            ctypes.c_double,
            ctypes.POINTER(Round),
            ctypes.c_void_p,
        ],
    ),
    "trainyard_regions_finish": (
        ctypes.c_int,
        [
            ctypes.c_void_p,
            ctypes.c_void_p,
        ],
    ),
    "trainyard_regions_round": (
        ctypes.c_uint64,
        [
            ctypes.c_void_p,
        ],
    ),
    "trainyard_regions_charter": (
        ctypes.c_char_p,
        [
            ctypes.c_void_p,
        ],
    ),
    "trainyard_regions_traffic": (
        None,
        [
            ctypes.c_void_p,
            ctypes.POINTER(ctypes.c_uint64),
            ctypes.POINTER(ctypes.c_uint64),
        ],
    ),
}


def declare(library: ctypes.CDLL) -> None:
    for name, (result, takes) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, takes
