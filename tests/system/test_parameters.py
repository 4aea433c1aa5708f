"""Tests parameter servers, local SGD, named tensors and elastic ranks through the shared library,
as programs in other languages use them."""

import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIBRARY = os.path.join(ROOT, "build", "release", "lib", "libtrainyard_collectives.so.1")
SECONDS_MAX = 60

SHARED = """
import ctypes, sys
from ctypes import byref, c_char_p, c_double, c_float, c_int, c_int64, c_size_t, c_uint16, c_uint32, c_uint64, c_void_p, sizeof
from trainyard import _declarations as capi
library = ctypes.CDLL(sys.argv[1])
capi.declare(library)
rank, ranks, port = int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
message = ctypes.create_string_buffer(1024)
hosts = (c_char_p * ranks)(*[b"127.0.0.1"] * ranks)
ports = (c_uint16 * ranks)(*[port + r for r in range(ranks)])

def ok(kind):
    if kind:
        sys.exit(f"{kind} {message.value.decode()}")
"""

PARAMETERS = (
    SHARED
    + """

group = c_void_p()
ok(library.trainyard_group_join(byref(capi.Join(sizeof(capi.Join), rank, ranks, hosts, ports, b"secret", 30000, 30000, 1, None)), byref(group), message))
tables = (capi.Table * 2)(capi.Table(sizeof(capi.Table), b"rows", 1000, 4, 0, 0.0, 0.0), capi.Table(sizeof(capi.Table), b"bias", 3, 1, 1, 0.5, 0.0))
service = capi.Service(sizeof(capi.Service), tables, 2, (c_int * 1)(0), 1, 0, 0)
if rank == 0:
    ok(library.trainyard_serve(group, byref(service), message))
else:
    worker = c_void_p()
    ok(library.trainyard_worker_join(group, byref(service), byref(worker), message))
    if rank == 1:
        ok(library.trainyard_worker_assign(worker, c_uint32(1), (c_float * 3)(1, 2, 3), c_size_t(3), message))
    ok(library.trainyard_worker_end_round(worker, message))
    rows, values = (c_uint64 * 2)(7, 999), (c_float * 8)(*[float(rank)] * 8)
    ok(library.trainyard_worker_push(worker, c_uint32(0), rows, c_size_t(2), values, c_size_t(8), message))
    ok(library.trainyard_worker_push(worker, c_uint32(1), None, c_size_t(0), (c_float * 3)(1, 1, 1), c_size_t(3), message))
    ok(library.trainyard_worker_end_round(worker, message))
    ok(library.trainyard_worker_pull(worker, c_uint32(0), rows, c_size_t(2), values, c_size_t(8), message))
    assert list(values) == [3.0] * 8, list(values)  # of ranks 1 and 2
    bias = (c_float * 3)()
    ok(library.trainyard_worker_pull(worker, c_uint32(1), None, c_size_t(0), bias, c_size_t(3), message))
    assert list(bias) == [0.0, 1.0, 2.0], list(bias)  # 0.5 * (1 + 1) less
    assert library.trainyard_worker_pull(worker, c_uint32(2), None, c_size_t(0), bias, c_size_t(3), message) == 1 and b"unknown table 2" in message.value
    ok(library.trainyard_worker_leave(worker, message))
    library.trainyard_worker_free(worker)
library.trainyard_group_free(group)
"""
)

REGIONS = (
    SHARED
    + """

regions, parameters = c_void_p(), (c_float * 4)(8, 8, 8, 8)
join = capi.RegionsJoin(sizeof(capi.RegionsJoin), rank, ranks, hosts, ports, b"secret", 1.0, 0.0, b"f32", b"three rounds", 0, 30000, 30000, 1)
ok(library.trainyard_regions_open(byref(join), parameters, c_size_t(4), byref(regions), message))
assert library.trainyard_regions_charter(regions) == b"three rounds"
while library.trainyard_regions_round(regions) < 3:
    for i in range(4):
        parameters[i] -= 1 + rank
    round = capi.Round()
    ok(library.trainyard_regions_average(regions, parameters, c_size_t(4), c_double(1), byref(round), message))
    assert (round.regions, round.adopted) == (ranks, 0)
assert list(parameters) == [8 - 3 * 1.5] * 4, list(parameters)
ok(library.trainyard_regions_finish(regions, message))
sent, received = c_uint64(), c_uint64()
library.trainyard_regions_traffic(regions, byref(sent), byref(received))
assert sent.value > 3 * 16 and received.value > 3 * 16
library.trainyard_regions_free(regions)
"""
)

NAMED = (
    SHARED
    + """

member, group, negotiator, number = c_void_p(), c_void_p(), c_void_p(), (c_int64 * 1)()
if rank == 0:
    options = capi.MembershipOptions(sizeof(capi.MembershipOptions), b"127.0.0.1", port, b"s", ranks, ranks, 30000, 0)
    membership = c_void_p()
    ok(library.trainyard_membership_start(byref(options), byref(membership), message))
    assert library.trainyard_membership_port(membership) == port
options = capi.MemberOptions(sizeof(capi.MemberOptions), b"127.0.0.1", port, b"s", b"member %d" % rank, b"host", rank)
ok(library.trainyard_member_connect(byref(options), byref(member), message))
place = capi.Assignment(sizeof(capi.Assignment))
ok(library.trainyard_member_next(member, None, 30000, byref(place), message))
assert (place.generation, place.rank, place.ranks, place.local_rank) == (1, rank, ranks, rank), place.rank
ok(library.trainyard_member_join(member, byref(capi.Join(sizeof(capi.Join), deterministic=1)), byref(group), message))
assert library.trainyard_group_host(group, 0) == library.trainyard_group_host(group, rank) and library.trainyard_group_host(group, ranks) == -1

options = capi.NegotiatorOptions(sizeof(capi.NegotiatorOptions), 1 << 20, 1000, 16)
ok(library.trainyard_negotiator_start(group, byref(options), byref(negotiator), message))
values, shape = (c_float * 4)(*[rank + 1.0] * 4), (c_uint64 * 1)(4)
request = capi.Request(sizeof(capi.Request), b"layer", capi.TRAINYARD_NAMED_ALL_GATHER, capi.TRAINYARD_F32, input=ctypes.addressof(values), input_count=4, shape=shape, dimensions=1, prescale=1, postscale=1)
ok(library.trainyard_negotiator_submit(negotiator, byref(request), 1, number, message))
ok(library.trainyard_negotiator_wait(negotiator, number[0], message))
rows, output = (c_uint64 * ranks)(), (c_float * (4 * ranks))()
assert library.trainyard_negotiator_rows(negotiator, number[0], rows, ranks) == ranks and list(rows) == [4] * ranks
ok(library.trainyard_negotiator_copy_output(negotiator, number[0], output, sizeof(output), message))
assert list(output) == [float(1 + each // 4) for each in range(4 * ranks)], list(output)
assert library.trainyard_negotiator_copy_output(negotiator, number[0], output, 1 << 20, message) == capi.TRAINYARD_INVALID
library.trainyard_negotiator_forget(negotiator, number[0])
assert library.trainyard_negotiator_wait(negotiator, number[0], message) == capi.TRAINYARD_NOT_FOUND and b"not found" in message.value
request.type = 99
assert library.trainyard_negotiator_submit(negotiator, byref(request), 1, number, message) == capi.TRAINYARD_INVALID and b"unknown type 99" in message.value
request.size = 8
assert library.trainyard_negotiator_submit(negotiator, byref(request), 1, number, message) == capi.TRAINYARD_INVALID and b"trainyard_request.size" in message.value
ended = library.trainyard_negotiator_join(negotiator, 0)
ok(library.trainyard_negotiator_wait(negotiator, ended, message))
assert 0 <= library.trainyard_negotiator_last_rank(negotiator, ended) < ranks
library.trainyard_negotiator_free(negotiator)

library.trainyard_member_done(member)
library.trainyard_member_free(member)
kinds, event = [], capi.MembershipEvent(sizeof(capi.MembershipEvent))
while rank == 0 and kinds.count(capi.TRAINYARD_MEMBER_DONE) < ranks:
    assert library.trainyard_membership_next(membership, 30000, byref(event)), kinds
    kinds.append(event.kind)
if rank == 0:
    assert kinds.count(capi.TRAINYARD_GENERATION_FORMED) == 1, kinds
    library.trainyard_membership_free(membership)
"""
)


def play(program: str, count: int) -> None:
    # Below the ports that the kernel assigns to clients.
    port = 20000 + (os.getpid() * 7 + count) % 12000
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, LIBRARY, str(rank), str(count), str(port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": os.path.join(ROOT, "sdk", "python")},
            text=True,
        )
        for rank in range(count)
    ]
    printed = [process.communicate(timeout=SECONDS_MAX)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * count, printed


def test_workers_push_and_pull_rows_through_the_c_interface() -> None:
    play(PARAMETERS, 3)


def test_regions_average_through_the_c_interface() -> None:
    play(REGIONS, 2)


def test_ranks_of_a_membership_gather_named_tensors_through_the_c_interface() -> None:
    play(NAMED, 2)
