"""Runs a rank that uses libtrainyard_collectives by ctypes, as a program in another language does.

collectives_rank.py DOES LIBRARY RANK RANKS PORT SECRET DEADLINE_MS ENCRYPT     DOES is `sum`,
`old`, `meet`, `folder`, `large` or `forever`; `folder` reads the variable FOLDER"""

import ctypes
import os
import random
import sys
from typing import Any

sys.path.insert(0, os.path.abspath(os.path.join(os.path.dirname(__file__), "../..")))
sys.path.insert(0, os.path.abspath(os.path.join(os.path.dirname(__file__), "../../sdk/python")))

from trainyard import _declarations as capi

from tests.large_buffers import ABOVE_2_GIB, ABOVE_4_GIB, PIECE, mapped

does, library_path, rank_text, ranks_text, port_text, secret, deadline_ms, encrypt = sys.argv[1:]
rank, ranks, port = int(rank_text), int(ranks_text), int(port_text)
library = ctypes.CDLL(library_path)
capi.declare(library)
message = ctypes.create_string_buffer(1024)


def join(fields_of: int = ctypes.sizeof(capi.Join), plans: bytes | None = None) -> ctypes.c_void_p:
    hosts = (ctypes.c_char_p * ranks)(*[b"127.0.0.1"] * ranks)
    ports = (ctypes.c_uint16 * ranks)(*[port + each for each in range(ranks)])
    given = capi.Join(
        fields_of,
        rank,
        ranks,
        hosts,
        ports,
        secret.encode(),
        int(deadline_ms),
        30000,
        1,
        plans,
        int(encrypt),
        2 if int(encrypt) else 0,
        1,
    )
    group = ctypes.c_void_p()
    kind = library.trainyard_group_join(ctypes.byref(given), ctypes.byref(group), message)
    if kind:
        sys.exit(f"{kind} {message.value.decode()}")
    return group


def join_at(rendezvous: bytes | None, from_launcher: int, secret: bytes | None) -> ctypes.c_void_p:
    given = capi.Join(
        size=ctypes.sizeof(capi.Join),
        rank=-1 if from_launcher else rank,
        ranks=0 if from_launcher else ranks,
        secret=secret,
        join_deadline_ms=int(deadline_ms),
        peer_timeout_ms=30000,
        deterministic=1,
        rendezvous=rendezvous,
        from_launcher=from_launcher,
    )
    group = ctypes.c_void_p()
    kind = library.trainyard_group_join(ctypes.byref(given), ctypes.byref(group), message)
    if kind:
        sys.exit(f"{kind} {message.value.decode()}")
    return group


def call(
    operation: int,
    buffer: ctypes.Array,
    count: int,
    type: int = capi.TRAINYARD_F32,
    reduction: int = capi.TRAINYARD_SUM,
    output_count: int | None = None,
) -> capi.Call:
    return capi.Call(
        ctypes.sizeof(capi.Call),
        operation,
        type,
        ctypes.addressof(buffer),
        ctypes.addressof(buffer),
        count,
        count if output_count is None else output_count,
        reduction,
        0.0,
        0,
        None,
        None,
        b"gradients",
    )


def good(kind: int) -> None:
    assert kind == 0, message.value


def text_of(function: Any, group: ctypes.c_void_p) -> bytes:
    function.restype = ctypes.c_void_p
    text = function(group)
    printed = ctypes.string_at(text)
    library.trainyard_text_free(ctypes.c_void_p(text))
    return printed


def sum_once() -> None:
    assert library.trainyard_collectives_abi() == 1
    group = join(plans=b"allreduce=tree:0-64K,ring:64K-")
    assert (
        library.trainyard_group_rank(group) == rank and library.trainyard_group_size(group) == ranks
    )
    values = (ctypes.c_float * 1000)(*[float(rank + 1)] * 1000)
    one = call(capi.TRAINYARD_ALLREDUCE, values, 1000)
    good(library.trainyard_group_run(group, ctypes.byref(one), message))
    assert values[999] == ranks * (ranks + 1) / 2

    handle = ctypes.c_void_p()
    good(library.trainyard_group_start(group, ctypes.byref(one), ctypes.byref(handle), message))
    good(library.trainyard_handle_wait(handle, message))
    assert values[0] == ranks * ranks * (ranks + 1) / 2

    flags = (ctypes.c_uint8 * 3)(1 << rank, 0, 128)
    good(
        library.trainyard_group_run(
            group,
            ctypes.byref(
                call(capi.TRAINYARD_ALLREDUCE, flags, 3, capi.TRAINYARD_U8, capi.TRAINYARD_BITS_OR)
            ),
            message,
        )
    )
    assert list(flags) == [(1 << ranks) - 1, 0, 128], "the last of the reductions is there too"

    assert (
        library.trainyard_group_run(
            group,
            ctypes.byref(call(capi.TRAINYARD_ALLREDUCE, values, 1000, output_count=999)),
            message,
        )
        == 1
    )
    assert (
        message.value
        == b"allreduce of gradients: the output holds 999 elements where 1000 are needed"
    ), message.value
    assert (
        library.trainyard_group_run(
            group, ctypes.byref(call(capi.TRAINYARD_ALLREDUCE, values, 1000, reduction=8)), message
        )
        == 1
    )
    good(
        library.trainyard_group_run(
            group, ctypes.byref(call(capi.TRAINYARD_BARRIER, values, 0)), message
        )
    )

    assert b"allreduce of gradients" in text_of(library.trainyard_group_timeline, group)

    mine, theirs = (ctypes.c_uint8 * 5)(*[rank] * 5), (ctypes.c_uint8 * 5)()
    handles = []
    for start, buffer, step in (
        (library.trainyard_group_start_send, mine, 1),
        (library.trainyard_group_start_receive, theirs, -1),
    ):
        handles.append(ctypes.c_void_p())
        good(
            start(
                group,
                (rank + step) % ranks,
                buffer,
                ctypes.c_size_t(5),
                ctypes.byref(handles[-1]),
                message,
            )
        )
    for handle in handles:
        good(library.trainyard_handle_wait(handle, message))
    assert list(theirs) == [(rank - 1) % ranks] * 5
    assert b"receive from rank" in text_of(library.trainyard_group_timeline, group)

    part = ctypes.c_void_p()
    good(library.trainyard_group_split(group, rank % 2, ctypes.byref(part), message))
    assert library.trainyard_group_size(part) == (ranks + 1 - rank % 2) // 2
    table = text_of(library.trainyard_group_table, part)
    assert b"allreduce=tree:0-64K  # requested" in table, table
    library.trainyard_group_free(part)
    library.trainyard_group_free(group)


def old_program() -> None:
    """Simulates a program that was compiled for an earlier version: it knows the options up to
    `plans`."""
    group = join(capi.Join.encrypt.offset)
    values = (ctypes.c_float * 10)(*[1.0] * 10)
    good(
        library.trainyard_group_run(
            group, ctypes.byref(call(capi.TRAINYARD_ALLREDUCE, values, 10)), message
        )
    )
    library.trainyard_group_free(group)


def sum_at(rendezvous: bytes) -> None:
    """Sums after a rendezvous at this address, then after the rendezvous of the launcher."""
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(ranks))
    for given in ((rendezvous, 0, secret.encode()), (None, 1, None)):
        group = join_at(*given)
        assert library.trainyard_group_rank(group) == rank
        values = (ctypes.c_float * 10)(*[1.0] * 10)
        good(
            library.trainyard_group_run(
                group, ctypes.byref(call(capi.TRAINYARD_ALLREDUCE, values, 10)), message
            )
        )
        assert list(values) == [float(ranks)] * 10
        library.trainyard_group_free(group)


def refused(given: capi.Join, *words: bytes) -> None:
    group = ctypes.c_void_p()
    kind = library.trainyard_group_join(ctypes.byref(given), ctypes.byref(group), message)
    assert kind == capi.TRAINYARD_INVALID and all(each in message.value for each in words), (
        message.value
    )


def sum_after_rendezvous() -> None:
    """Connects with the address of rank 0 only, as the launcher does, without a list of
    addresses."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port + ranks))
    place = f"127.0.0.1:{port}".encode()
    sum_at(place)
    wrong = capi.Join(size=ctypes.sizeof(capi.Join), rank=0, ranks=2, rendezvous=b"nowhere")
    refused(wrong, b"trainyard_join.rendezvous", b"HOST:PORT")
    wrong.rendezvous = None
    refused(wrong, b"no hosts and no rendezvous")
    # A list of addresses excludes all other options.
    wrong.hosts = (ctypes.c_char_p * 2)(b"127.0.0.1", b"127.0.0.1")
    wrong.ports = (ctypes.c_uint16 * 2)(port, port + 1)
    for rendezvous, from_launcher in ((place, 0), (b"/tmp", 0), (None, 1)):
        wrong.rendezvous, wrong.from_launcher = rendezvous, from_launcher
        refused(wrong, b"trainyard_join has hosts", b"set one of them")


def sum_after_rendezvous_in_a_folder() -> None:
    """Connects through a folder that all ranks see; the launcher uses another one."""
    given, of_launcher = (os.path.join(os.environ["FOLDER"], name) for name in ("one", "other"))
    for folder in (given, of_launcher):
        os.makedirs(folder, exist_ok=True)
    os.environ.update(TRAINYARD_RENDEZVOUS=of_launcher)
    sum_at(given.encode())
    for folder in (given, of_launcher):
        assert os.path.exists(os.path.join(folder, f"rank-{rank}")), "this rank's address"


def exchange_gib() -> None:
    """Two ranks reduce elements of 8 bytes, and send one message, of more than 4 GiB in total."""
    group = join()
    pattern = random.Random(1).randbytes(PIECE)
    buffer = mapped(ABOVE_4_GIB)
    if rank == 0:
        ctypes.memmove(buffer, pattern, PIECE)
    numbers = call(
        capi.TRAINYARD_ALLREDUCE,
        buffer,
        ABOVE_2_GIB // 8,
        capi.TRAINYARD_I64,
        capi.TRAINYARD_BITS_OR,
    )
    good(library.trainyard_group_run(group, ctypes.byref(numbers), message))
    assert ctypes.string_at(buffer, PIECE) == pattern
    if rank == 1:
        ctypes.memset(buffer, 0, PIECE)
    transfer = (library.trainyard_group_send, library.trainyard_group_receive)[rank]
    good(transfer(group, 1 - rank, buffer, ctypes.c_size_t(ABOVE_4_GIB), message))
    assert ctypes.string_at(buffer, PIECE) == pattern
    library.trainyard_group_free(group)


def sum_forever() -> None:
    """Reduces in registered memory, if available, until a rank dies; prints when it begins, and how
    it ended."""
    group = join()
    count = 100_000
    memory = ctypes.c_void_p()
    shared = (
        library.trainyard_group_allocate(
            group, ctypes.c_size_t(4 * count), ctypes.byref(memory), message
        )
        == 0
    )
    values = (
        (ctypes.c_float * count).from_address(memory.value)
        if shared
        else (ctypes.c_float * count)()
    )
    one = call(capi.TRAINYARD_ALLREDUCE, values, count)
    rounds = 0
    while not library.trainyard_group_run(group, ctypes.byref(one), message):
        rounds += 1
        if rounds == 3:
            print("works", flush=True)
    print("ended:", message.value.decode(), flush=True)
    # As a program that was notified and continues with other work; it is killed.
    sys.stdin.read()


{
    "sum": sum_once,
    "old": old_program,
    "meet": sum_after_rendezvous,
    "folder": sum_after_rendezvous_in_a_folder,
    "large": exchange_gib,
    "forever": sum_forever,
}[does]()
