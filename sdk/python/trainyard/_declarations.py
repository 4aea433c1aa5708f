"""Declarations in ctypes, which sdk/python/declare.py generates: do not edit.

src/compute/capi/trainyard_collectives.h
src/compute/capi/trainyard_launch.h
src/compute/capi/trainyard_gradients.h
src/compute/capi/trainyard_membership.h
src/compute/capi/trainyard_parameters.h
src/compute/capi/trainyard_local_sgd.h
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
TRAINYARD_PROGRAM_COLLECTIVES = 0
TRAINYARD_PROGRAM_HOROVOD = 1
TRAINYARD_NAMED_ALLREDUCE = 0
TRAINYARD_NAMED_ADASUM = 1
TRAINYARD_NAMED_ALL_GATHER = 2
TRAINYARD_NAMED_BROADCAST = 3
TRAINYARD_NAMED_REDUCE_SCATTER = 4
TRAINYARD_NAMED_ALL_TO_ALL = 5
TRAINYARD_NAMED_BARRIER = 6
TRAINYARD_UNCOMPRESSED = 0
TRAINYARD_COMPRESSED_F16 = 1
TRAINYARD_COMPRESSED_BF16 = 2
TRAINYARD_COMPRESSED_INT8 = 3
TRAINYARD_COMPRESSED_LOW_RANK = 4
TRAINYARD_MEMBER_CAME = 0
TRAINYARD_GENERATION_FORMED = 1
TRAINYARD_MEMBER_DONE = 2
TRAINYARD_MEMBER_LOST = 3
TRAINYARD_MEMBER_DISMISSED = 4
TRAINYARD_MEMBERS_ADDED = 1
TRAINYARD_MEMBERS_REMOVED = 2
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
        ("peer_timeout_ms", ctypes.c_int64),
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


class LaunchSource(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("program", ctypes.c_int),
        ("variables", ctypes.POINTER(ctypes.c_char_p)),
        ("resourceconfig", ctypes.c_char_p),
    ]


class Launch(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("rank", ctypes.c_int),
        ("ranks", ctypes.c_int),
        ("local_rank", ctypes.c_int),
        ("local_ranks", ctypes.c_int),
        ("launcher", ctypes.c_char_p),
        ("rendezvous", ctypes.c_char_p),
        ("service_host", ctypes.c_char_p),
        ("service_port", ctypes.c_int),
        ("elastic", ctypes.c_int),
        ("host", ctypes.c_char_p),
        ("member", ctypes.c_char_p),
        ("secret", ctypes.c_char_p),
        ("encrypt", ctypes.c_int),
        ("sockets_per_peer", ctypes.c_int),
        ("plans", ctypes.c_char_p),
        ("deterministic", ctypes.c_int),
    ]


class NegotiatorOptions(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("fusion_bytes", ctypes.c_uint64),
        ("cycle_us", ctypes.c_uint32),
        ("cache_entries", ctypes.c_uint32),
        ("stall_report_ms", ctypes.c_int64),
        ("stall_fail_ms", ctypes.c_int64),
        ("reproducible", ctypes.c_int),
        ("autotune", ctypes.c_int),
        ("autotune_log", ctypes.c_char_p),
    ]


class Request(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("operation", ctypes.c_int),
        ("type", ctypes.c_int),
        ("reduction", ctypes.c_int),
        ("root", ctypes.c_int),
        ("set", ctypes.c_int),
        ("priority", ctypes.c_int),
        ("compression", ctypes.c_int),
        ("compression_rank", ctypes.c_uint32),
        ("input", ctypes.c_void_p),
        ("output", ctypes.c_void_p),
        ("input_count", ctypes.c_size_t),
        ("output_count", ctypes.c_size_t),
        ("shape", ctypes.POINTER(ctypes.c_uint64)),
        ("dimensions", ctypes.c_size_t),
        ("splits", ctypes.POINTER(ctypes.c_uint64)),
        ("splits_count", ctypes.c_size_t),
        ("prescale", ctypes.c_double),
        ("postscale", ctypes.c_double),
    ]


class MembershipOptions(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("host", ctypes.c_char_p),
        ("port", ctypes.c_int),
        ("secret", ctypes.c_char_p),
        ("ranks_min", ctypes.c_int),
        ("ranks_max", ctypes.c_int),
        ("settle_ms", ctypes.c_int64),
        ("generations_max", ctypes.c_int),
    ]


class MembershipEvent(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("kind", ctypes.c_int),
        ("name", ctypes.c_char_p),
        ("text", ctypes.c_char_p),
        ("generation", ctypes.c_uint64),
        ("ranks", ctypes.c_int),
    ]


class MemberOptions(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("service_host", ctypes.c_char_p),
        ("service_port", ctypes.c_int),
        ("secret", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("host", ctypes.c_char_p),
        ("wanted_rank", ctypes.c_int),
    ]


class Assignment(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("generation", ctypes.c_uint64),
        ("rank", ctypes.c_int),
        ("ranks", ctypes.c_int),
        ("local_rank", ctypes.c_int),
        ("local_ranks", ctypes.c_int),
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
    "trainyard_collectives_abi": (ctypes.c_int, []),
    "trainyard_group_join": (
        ctypes.c_int,
        [ctypes.POINTER(Join), ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p],
    ),
    "trainyard_group_free": (None, [ctypes.c_void_p]),
    "trainyard_group_rank": (ctypes.c_int, [ctypes.c_void_p]),
    "trainyard_group_size": (ctypes.c_int, [ctypes.c_void_p]),
    "trainyard_group_host": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int]),
    "trainyard_group_run": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(Call), ctypes.c_void_p]),
    "trainyard_group_start": (
        ctypes.c_int,
        [ctypes.c_void_p, ctypes.POINTER(Call), ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p],
    ),
    "trainyard_handle_done": (ctypes.c_int, [ctypes.c_void_p]),
    "trainyard_handle_wait": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p]),
    "trainyard_group_send": (
        ctypes.c_int,
        [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p],
    ),
    "trainyard_group_receive": (
        ctypes.c_int,
        [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p],
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
        [ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p],
    ),
    "trainyard_group_allocate": (
        ctypes.c_int,
        [ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p],
    ),
    "trainyard_group_free_memory": (None, [ctypes.c_void_p, ctypes.c_void_p]),
    "trainyard_group_table": (ctypes.c_void_p, [ctypes.c_void_p]),
    "trainyard_group_timeline": (ctypes.c_void_p, [ctypes.c_void_p]),
    "trainyard_group_under_way": (ctypes.c_void_p, [ctypes.c_void_p]),
    "trainyard_text_free": (None, [ctypes.c_void_p]),
    "trainyard_launch_read": (
        ctypes.c_int,
        [ctypes.POINTER(LaunchSource), ctypes.POINTER(ctypes.POINTER(Launch)), ctypes.c_void_p],
    ),
    "trainyard_launch_free": (None, [ctypes.POINTER(Launch)]),
    "trainyard_negotiator_start": (
        ctypes.c_int,
        [
            ctypes.c_void_p,
            ctypes.POINTER(NegotiatorOptions),
            ctypes.POINTER(ctypes.c_void_p),
            ctypes.c_void_p,
        ],
    ),
    "trainyard_negotiator_free": (None, [ctypes.c_void_p]),
    "trainyard_negotiator_submit": (
        ctypes.c_int,
        [
            ctypes.c_void_p,
            ctypes.POINTER(Request),
            ctypes.c_size_t,
            ctypes.POINTER(ctypes.c_int64),
            ctypes.c_void_p,
        ],
    ),
    "trainyard_negotiator_join": (ctypes.c_int64, [ctypes.c_void_p, ctypes.c_int]),
    "trainyard_negotiator_done": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int64]),
    "trainyard_negotiator_wait": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p]),
    "trainyard_negotiator_forget": (None, [ctypes.c_void_p, ctypes.c_int64]),
    "trainyard_negotiator_last_rank": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int64]),
    "trainyard_negotiator_rows": (
        ctypes.c_size_t,
        [ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(ctypes.c_uint64), ctypes.c_size_t],
    ),
    "trainyard_negotiator_copy_output": (
        ctypes.c_int,
        [ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p],
    ),
    "trainyard_negotiator_add_set": (
        ctypes.c_int,
        [
            ctypes.c_void_p,
            ctypes.POINTER(ctypes.c_int),
            ctypes.c_size_t,
            ctypes.POINTER(ctypes.c_int),
            ctypes.c_void_p,
        ],
    ),
    "trainyard_negotiator_remove_set": (
        ctypes.c_int,
        [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p],
    ),
    "trainyard_negotiator_start_timeline": (
        ctypes.c_int,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p],
    ),
    "trainyard_negotiator_stop_timeline": (None, [ctypes.c_void_p]),
    "trainyard_membership_start": (
        ctypes.c_int,
        [ctypes.POINTER(MembershipOptions), ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p],
    ),
    "trainyard_membership_free": (None, [ctypes.c_void_p]),
    "trainyard_membership_port": (ctypes.c_int, [ctypes.c_void_p]),
    "trainyard_membership_expect": (None, [ctypes.c_void_p, ctypes.c_char_p]),
    "trainyard_membership_gone": (None, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]),
    "trainyard_membership_host_leaves": (None, [ctypes.c_void_p, ctypes.c_char_p]),
    "trainyard_membership_host_returns": (None, [ctypes.c_void_p, ctypes.c_char_p]),
    "trainyard_membership_next": (
        ctypes.c_int,
        [ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(MembershipEvent)],
    ),
    "trainyard_membership_missing": (ctypes.c_void_p, [ctypes.c_void_p]),
    "trainyard_member_connect": (
        ctypes.c_int,
        [ctypes.POINTER(MemberOptions), ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p],
    ),
    "trainyard_member_free": (None, [ctypes.c_void_p]),
    "trainyard_member_next": (
        ctypes.c_int,
        [
            ctypes.c_void_p,
            ctypes.c_char_p,
            ctypes.c_int64,
            ctypes.POINTER(Assignment),
            ctypes.c_void_p,
        ],
    ),
    "trainyard_member_join": (
        ctypes.c_int,
        [ctypes.c_void_p, ctypes.POINTER(Join), ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p],
    ),
    "trainyard_member_changed": (ctypes.c_int, [ctypes.c_void_p]),
    "trainyard_member_done": (None, [ctypes.c_void_p]),
    "trainyard_serve": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(Service), ctypes.c_void_p]),
    "trainyard_worker_join": (
        ctypes.c_int,
        [
            ctypes.c_void_p,
            ctypes.POINTER(Service),
            ctypes.POINTER(ctypes.c_void_p),
            ctypes.c_void_p,
        ],
    ),
    "trainyard_worker_free": (None, [ctypes.c_void_p]),
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
    "trainyard_worker_end_round": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p]),
    "trainyard_worker_leave": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p]),
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
    "trainyard_regions_free": (None, [ctypes.c_void_p]),
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
    "trainyard_regions_finish": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p]),
    "trainyard_regions_round": (ctypes.c_uint64, [ctypes.c_void_p]),
    "trainyard_regions_charter": (ctypes.c_char_p, [ctypes.c_void_p]),
    "trainyard_regions_traffic": (
        None,
        [ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_uint64)],
    ),
}


def declare(library: ctypes.CDLL) -> None:
    for name, (result, takes) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, takes
