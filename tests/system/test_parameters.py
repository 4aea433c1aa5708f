"""Parameter servers and regions as programs see them that are not C++:
through the shared library."""

import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIBRARY = os.path.join(ROOT, "build", "release", "lib", "libtrainyard_collectives.so.1")
SECONDS_MAX = 60

SHARED = """
import ctypes, sys
from ctypes import byref, c_char_p, c_double, c_float, c_int, c_size_t, c_uint16, c_uint32, c_uint64, c_void_p, sizeof
from tests.system import capi_declarations as capi
library = ctypes.CDLL(sys.argv[1])
capi.declare(library)
rank, ranks, port = int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
why = ctypes.create_string_buffer(1024)
hosts = (c_char_p * ranks)(*[b"127.0.0.1"] * ranks)
ports = (c_uint16 * ranks)(*[port + r for r in range(ranks)])

def ok(kind):
    if kind:
        sys.exit(f"{kind} {why.value.decode()}")
"""

PARAMETERS = (
    SHARED
    + """

group = c_void_p()
ok(library.trainyard_group_join(byref(capi.Join(sizeof(capi.Join), rank, ranks, hosts, ports, b"secret", 30000, 30000, 1, None)), byref(group), why))
tables = (capi.Table * 2)(capi.Table(sizeof(capi.Table), b"rows", 1000, 4, 0, 0.0, 0.0), capi.Table(sizeof(capi.Table), b"bias", 3, 1, 1, 0.5, 0.0))
service = capi.Service(sizeof(capi.Service), tables, 2, (c_int * 1)(0), 1, 0, 0)
if rank == 0:
    ok(library.trainyard_serve(group, byref(service), why))
else:
    worker = c_void_p()
    ok(library.trainyard_worker_join(group, byref(service), byref(worker), why))
    if rank == 1:
        ok(library.trainyard_worker_assign(worker, c_uint32(1), (c_float * 3)(1, 2, 3), c_size_t(3), why))
    ok(library.trainyard_worker_end_round(worker, why))
    rows, values = (c_uint64 * 2)(7, 999), (c_float * 8)(*[float(rank)] * 8)
    ok(library.trainyard_worker_push(worker, c_uint32(0), rows, c_size_t(2), values, c_size_t(8), why))
    ok(library.trainyard_worker_push(worker, c_uint32(1), None, c_size_t(0), (c_float * 3)(1, 1, 1), c_size_t(3), why))
    ok(library.trainyard_worker_end_round(worker, why))
    ok(library.trainyard_worker_pull(worker, c_uint32(0), rows, c_size_t(2), values, c_size_t(8), why))
    assert list(values) == [3.0] * 8, list(values)  # of ranks 1 and 2
    bias = (c_float * 3)()
    ok(library.trainyard_worker_pull(worker, c_uint32(1), None, c_size_t(0), bias, c_size_t(3), why))
    assert list(bias) == [0.0, 1.0, 2.0], list(bias)  # 0.5 * (1 + 1) less
    assert library.trainyard_worker_pull(worker, c_uint32(2), None, c_size_t(0), bias, c_size_t(3), why) == 1 and b"unknown table 2" in why.value
    ok(library.trainyard_worker_leave(worker, why))
    library.trainyard_worker_free(worker)
library.trainyard_group_free(group)
"""
)

REGIONS = (
    SHARED
    + """

regions, parameters = c_void_p(), (c_float * 4)(8, 8, 8, 8)
join = capi.RegionsJoin(sizeof(capi.RegionsJoin), rank, ranks, hosts, ports, b"secret", 1.0, 0.0, b"f32", b"three rounds", 0, 30000, 30000, 1)
ok(library.trainyard_regions_open(byref(join), parameters, c_size_t(4), byref(regions), why))
assert library.trainyard_regions_charter(regions) == b"three rounds"
while library.trainyard_regions_round(regions) < 3:
    for i in range(4):
        parameters[i] -= 1 + rank
    round = capi.Round()
    ok(library.trainyard_regions_average(regions, parameters, c_size_t(4), c_double(1), byref(round), why))
    assert (round.regions, round.adopted) == (ranks, 0)
assert list(parameters) == [8 - 3 * 1.5] * 4, list(parameters)
ok(library.trainyard_regions_finish(regions, why))
sent, received = c_uint64(), c_uint64()
library.trainyard_regions_traffic(regions, byref(sent), byref(received))
assert sent.value > 3 * 16 and received.value > 3 * 16
library.trainyard_regions_free(regions)
"""
)


def play(program: str, count: int) -> None:
    port = 20000 + (os.getpid() * 7 + count) % 20000
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, LIBRARY, str(rank), str(count), str(port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": ROOT},
            text=True,
        )
        for rank in range(count)
    ]
    said = [process.communicate(timeout=SECONDS_MAX)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * count, said


def test_workers_push_and_pull_rows_through_the_c_interface() -> None:
    play(PARAMETERS, 3)


def test_regions_average_through_the_c_interface() -> None:
    play(REGIONS, 2)
