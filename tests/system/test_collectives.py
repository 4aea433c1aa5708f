"""The collectives as a shared library: what a program that is not C++ sees of them."""

import ctypes
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIBRARY = os.path.join(ROOT, "build", "release", "lib", "libtrainyard_collectives.so.1")
SECONDS_MAX = 60

RANK = """
import ctypes, os, sys
library = ctypes.CDLL(sys.argv[1])
rank, ranks, port = int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
secret, deadline_ms = sys.argv[5].encode(), int(sys.argv[6])

class Join(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("rank", ctypes.c_int), ("ranks", ctypes.c_int), ("hosts", ctypes.POINTER(ctypes.c_char_p)),
                ("ports", ctypes.POINTER(ctypes.c_uint16)), ("secret", ctypes.c_char_p), ("join_deadline_ms", ctypes.c_int64),
                ("silence_max_ms", ctypes.c_int64), ("deterministic", ctypes.c_int), ("plans", ctypes.c_char_p)]

class Call(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("operation", ctypes.c_int), ("type", ctypes.c_int), ("input", ctypes.c_void_p),
                ("output", ctypes.c_void_p), ("input_count", ctypes.c_size_t), ("output_count", ctypes.c_size_t), ("reduction", ctypes.c_int),
                ("prescale", ctypes.c_double), ("root", ctypes.c_int), ("counts", ctypes.c_void_p), ("received_counts", ctypes.c_void_p),
                ("name", ctypes.c_char_p)]

assert library.trainyard_collectives_abi() == 1
why = ctypes.create_string_buffer(1024)
hosts = (ctypes.c_char_p * ranks)(*[b"127.0.0.1"] * ranks)
ports = (ctypes.c_uint16 * ranks)(*[port + r for r in range(ranks)])
join = Join(ctypes.sizeof(Join), rank, ranks, hosts, ports, secret, deadline_ms, 30000, 1, None)
group = ctypes.c_void_p()
kind = library.trainyard_group_join(ctypes.byref(join), ctypes.byref(group), why)
if kind:
    sys.exit(f"{kind} {why.value.decode()}")
assert library.trainyard_group_rank(group) == rank and library.trainyard_group_size(group) == ranks

values = (ctypes.c_float * 1000)(*[float(rank + 1)] * 1000)
call = Call(ctypes.sizeof(Call), 0, 1, ctypes.addressof(values), ctypes.addressof(values), 1000, 1000, 0, 0.0, 0, None, None, b"gradients")
assert library.trainyard_group_run(group, ctypes.byref(call), why) == 0, why.value
assert values[999] == ranks * (ranks + 1) / 2

handle = ctypes.c_void_p()
assert library.trainyard_group_start(group, ctypes.byref(call), ctypes.byref(handle), why) == 0
assert library.trainyard_handle_wait(handle, why) == 0
assert values[0] == ranks * ranks * (ranks + 1) / 2

call.output_count = 999
assert library.trainyard_group_run(group, ctypes.byref(call), why) == 1
assert why.value == b"allreduce of gradients: the output holds 999 elements where 1000 are needed", why.value
call.operation, call.output_count = 8, 1000
assert library.trainyard_group_run(group, ctypes.byref(call), why) == 0, why.value
library.trainyard_group_free(group)
"""


def ranks(count, secrets, deadline_ms=30000):
    port = 20000 + os.getpid() % 20000
    return [subprocess.Popen([sys.executable, "-c", RANK, LIBRARY, str(rank), str(count), str(port), secrets[rank], str(deadline_ms)],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for rank in range(count)]


def test_ranks_join_and_sum_through_the_c_interface():
    processes = ranks(3, ["same"] * 3)
    said = [process.communicate(timeout=SECONDS_MAX)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], said


def test_a_wrong_secret_is_refused_by_name():
    processes = ranks(2, ["one", "other"], deadline_ms=3000)
    said = [process.communicate(timeout=SECONDS_MAX)[0] for process in processes]
    assert "rank 0" in said[1] and "secret" in said[1], said
    assert "rank 1" in said[0] and "did not come" in said[0], said


def test_only_the_c_interface_is_seen():
    names = subprocess.run(["nm", "-D", "--defined-only", "--format=just-symbols", LIBRARY], check=True, capture_output=True, text=True).stdout.split()
    assert names and all(name.startswith(("trainyard_", "TRAINYARD_COLLECTIVES_")) for name in names), names
