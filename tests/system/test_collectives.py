"""Tests the collectives as a shared library: the interface for programs in other languages, and
what ranks leave behind."""

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Sequence

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
LIBRARY = os.path.join(ROOT, "build", "release", "lib", "libtrainyard_collectives.so.1")
SECONDS_MAX = 60


def ranks(
    count: int,
    secrets: Sequence[str],
    does: str = "sum",
    deadline_ms: int = 30000,
    **variables: str,
) -> list[subprocess.Popen]:
    port = 20000 + os.getpid() % 12000  # below the ports that the kernel assigns to clients
    return [
        subprocess.Popen(
            [
                sys.executable,
                os.path.join(HERE, "collectives_rank.py"),
                does,
                LIBRARY,
                str(rank),
                str(count),
                str(port),
                secrets[rank],
                str(deadline_ms),
                "0",
            ],
            env=os.environ | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(count)
    ]


@pytest.mark.parametrize("does", ["sum", "old", "meet"])
def test_ranks_join_and_sum_through_the_c_interface(does: str) -> None:
    processes = ranks(3, ["same"] * 3, does)
    said = [process.communicate(timeout=SECONDS_MAX)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], said


def test_ranks_join_in_a_folder_through_the_c_interface(tmp_path: pathlib.Path) -> None:
    processes = ranks(3, ["same"] * 3, "folder", FOLDER=str(tmp_path))
    said = [process.communicate(timeout=SECONDS_MAX)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], said


def test_messages_of_more_than_4_gib_through_the_c_interface() -> None:
    processes = ranks(2, ["same"] * 2, "large")
    said = [process.communicate(timeout=3 * SECONDS_MAX)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], said


def test_a_wrong_secret_is_refused_by_name() -> None:
    processes = ranks(2, ["one", "other"], deadline_ms=3000)
    said = [process.communicate(timeout=SECONDS_MAX)[0] for process in processes]
    assert "rank 0" in said[1] and "secret" in said[1], said
    assert "rank 1" in said[0] and "did not join" in said[0], said


def test_only_the_c_interface_is_seen() -> None:
    names = subprocess.run(
        ["nm", "-D", "--defined-only", "--format=just-symbols", LIBRARY],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    assert names and all(
        name.startswith(("trainyard_", "TRAINYARD_COLLECTIVES_")) for name in names
    ), names


SDK = [os.path.join(ROOT, "sdk", "python", name) for name in ("", "trainyard-horovod")]
# Prints the launch that a C program reads, or the error.
IN_C = """
#include <stdio.h>
#include "capi/trainyard_collectives.h"
#include "capi/trainyard_gradients.h"
#include "capi/trainyard_launch.h"
#include "capi/trainyard_membership.h"
#include "capi/trainyard_parameters.h"
#include "capi/trainyard_local_sgd.h"

int main(int count, char** arguments) {
  char message[TRAINYARD_ERROR_BYTES];
  trainyard_launch_source source = {.size = sizeof source, .program = TRAINYARD_PROGRAM_HOROVOD,
                                    .resourceconfig = count > 1 ? arguments[1] : NULL};
  trainyard_launch* launch;
  if (trainyard_launch_read(&source, &launch, message) != TRAINYARD_OK) {
    puts(message);
    return 0;
  }
  printf("%s|%d|%d|%d|%d|%s|%s|%d|%d|%s|%s|%s|%d|%d|%s|%d\\n", launch->launcher, launch->rank,
         launch->ranks, launch->local_rank, launch->local_ranks, launch->rendezvous,
         launch->service_host, launch->service_port, launch->elastic, launch->host,
         launch->member, launch->secret, launch->encrypt, launch->sockets_per_peer,
         launch->plans, launch->deterministic);
  trainyard_launch_free(launch);
  return 0;
}
"""
# The same in the Python of horovod.
IN_PYTHON = """
import sys
from trainyard import _library
_library._loaded = _library.load(sys.argv[1])
from horovod.common import launch
try:
    found = launch.read(None, *sys.argv[2:])
    local = [-1 if each is None else each for each in (found.local_rank, found.local_size)]
    service = found.service or ("", 0)
    print(found.launcher, found.rank, found.size, *local, found.rendezvous, *service,
          int(found.elastic), found.host, found.member, found.secret, int(found.encrypt),
          found.sockets, found.plans, int(found.deterministic), sep="|")
except launch.Unclear as failure:
    print(failure)
"""
TORCHRUN = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
MASTER = {"MASTER_ADDR": "algo-1", "MASTER_PORT": "7777"}
OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "3",
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
}
HOROVODRUN = {
    "HOROVOD_GLOO_RENDEZVOUS_ADDR": "head",
    "HOROVOD_GLOO_RENDEZVOUS_PORT": "99",
    "HOROVOD_RANK": "0",
    "HOROVOD_SIZE": "2",
    "HOROVOD_LOCAL_RANK": "0",
    "HOROVOD_LOCAL_SIZE": "1",
}
ELASTIC = {"HOROVOD_ELASTIC": "1", "HOROVOD_HOSTNAME": "b", "TRAINYARD_MEMBER": "b/0 #1"}
SECRET = {"TRAINYARD_SECRET": "s"}
MPICH = {"PMI_RANK": "0", "PMI_SIZE": "2", "MASTER_ADDR": "::1"}
TWO_HOSTS = '{"current_host": "algo-2", "hosts": ["algo-1", "algo-2"]}'
SM_HOSTS = {"SM_HOSTS": '["algo-1", "algo-2"]', "SM_CURRENT_HOST": "algo-2"}
ALONE = "no launcher: a single rank|0|1|0|1||"


@pytest.mark.parametrize(
    "variables, resourceconfig, begin",
    [
        ({}, "", ALONE),
        (TORCHRUN | MASTER | {"TORCHELASTIC_RUN_ID": "r"}, "", "torchrun|1|2|1|2|algo-1:7780|"),
        ({"RANK": "0"}, "", ALONE),
        (TORCHRUN | {"RANK": "x"}, "", "RANK: "),
        (OPEN_MPI | TORCHRUN, TWO_HOSTS, "Open MPI|3|4|1|2|algo-1:7828|"),
        (OPEN_MPI, "", "Open MPI started 4 ranks"),
        (MPICH | {"TRAINYARD_SOCKETS": "3"}, "", "MPICH|0|2|-1|-1|::1:7828||0|0||||0|3||0"),
        ({}, TWO_HOSTS, "SageMaker|1|2|0|1|algo-1:7828|"),
        (SM_HOSTS, "", "SageMaker|1|2|0|1|algo-1:7828|"),
        ({}, "{", "resourceconfig.json: "),
        (
            HOROVODRUN | TORCHRUN | SECRET,
            "",
            "horovodrun|0|2|0|1||head|99|0|localhost|localhost/0|s|",
        ),
        (HOROVODRUN | ELASTIC, "", "horovodrun|-1|0|-1|-1||head|99|1|b|b/0 #1||0|"),
        (TORCHRUN | {"TRAINYARD_RENDEZVOUS": "/shared"}, "", "torchrun|1|2|1|2|/shared|"),
        (TORCHRUN | {"TRAINYARD_ENCRYPT": "yes"}, "", "TRAINYARD_ENCRYPT needs TRAINYARD_SECRET"),
        (
            SECRET
            | {"TRAINYARD_ENCRYPT": "On", "TRAINYARD_DETERMINISTIC": "no"}
            | {"TRAINYARD_PLANS": "allreduce=ring:0-"},
            "",
            f"{ALONE}|0|0|||s|1|0|allreduce=ring:0-|0",
        ),
    ],
)
def test_c_and_python_read_the_same_launch(
    in_c: str, variables: dict[str, str], resourceconfig: str, begin: str
) -> None:
    said = [
        subprocess.run(
            [*command, resourceconfig],
            env={"PYTHONPATH": os.pathsep.join(SDK), **variables},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for command in ([in_c], [sys.executable, "-c", IN_PYTHON, LIBRARY])
    ]
    assert said[0] == said[1] and said[0].startswith(begin), said


@pytest.fixture(scope="module")
def in_c(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Makes a C program, compiled with only the headers of the C interface."""
    folder = tmp_path_factory.mktemp("launch")
    (folder / "launch.c").write_text(IN_C)
    options = [
        "-std=c11",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-I",
        os.path.join(ROOT, "src", "compute"),
    ]
    program = str(folder / "launch")
    subprocess.run(
        ["gcc", *options, "-o", program, str(folder / "launch.c"), LIBRARY]
        + [f"-Wl,-rpath,{os.path.dirname(LIBRARY)}"],
        check=True,
    )
    return program


def test_nothing_is_left_of_ranks_that_are_killed() -> None:
    """No file, memory, listener or process is left, if all ranks die at once or one dies first,
    with shared memory or without."""
    run = subprocess.run(
        [
            "unshare",
            "--mount",
            "--net",
            "--ipc",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
            sys.executable,
            os.path.join(HERE, "killed_ranks.py"),
            LIBRARY,
        ],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    for play, seen in json.loads(run.stdout).items():
        assert seen["said"][:3] == ["works"] * 3, (play, seen)
        if "first" in play:
            name = f"rank {play.split()[-2]} ("
            assert all(line.startswith("ended: ") and name in line for line in seen["said"][3:]), (
                play,
                seen,
            )
        # Otherwise the snapshot would miss what the test checks.
        assert {"listening", "processes", "memory without a name"} <= set(seen["working"]), (
            play,
            seen,
        )
        assert ("memory of several processes" in seen["working"]) == play.startswith(
            "shared memory"
        ), (play, seen)
        assert "files in /dev/shm" not in seen["working"], "no name is there that could be left"
        assert seen["left"] == {}, (play, seen)
