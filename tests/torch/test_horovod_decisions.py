"""Tests the decisions of horovodrun: the rendezvous of ranks, the host of each rank, and the
processes to run."""

import json
from collections.abc import Iterable
from typing import Any

import pytest
from horovod.common import basics, launch
from horovod.runner import elastic, hosts, settings

OMPI = {
    "OMPI_COMM_WORLD_RANK": "3",
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
}
TWO_HOSTS = json.dumps({"hosts": ["algo-1", "algo-2"], "current_host": "algo-2"})


@pytest.mark.parametrize(
    "environ, resourceconfig, rank, size, local, rendezvous",
    [
        ({}, "", 0, 1, (0, 1), ""),
        (OMPI, TWO_HOSTS, 3, 4, (1, 2), "algo-1:7828"),
        (
            {**OMPI, "MASTER_ADDR": "one", "MASTER_PORT": "7777"},
            TWO_HOSTS,
            3,
            4,
            (1, 2),
            "one:7780",
        ),
        ({**OMPI, "TRAINYARD_RENDEZVOUS": "[::1]:99"}, "", 3, 4, (1, 2), "::1:99"),
        (
            {**OMPI, "TRAINYARD_RANK": "0", "TRAINYARD_RANKS": "2", "TRAINYARD_RENDEZVOUS": "h:1"},
            "",
            0,
            2,
            (None, None),
            "h:1",
        ),
        (
            {"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "1"},
            TWO_HOSTS,
            1,
            2,
            (0, 1),
            "algo-1:7828",
        ),
        (
            {
                "RANK": "1",
                "WORLD_SIZE": "2",
                "LOCAL_RANK": "1",
                "LOCAL_WORLD_SIZE": "2",
                "MASTER_ADDR": "a",
                "MASTER_PORT": "5",
            },
            "",
            1,
            2,
            (1, 2),
            "a:8",
        ),
        ({}, TWO_HOSTS, 1, 2, (0, 1), "algo-1:7828"),
    ],
)
def test_rank_and_rendezvous_are_read_from_the_environment(
    environ: dict[str, str],
    resourceconfig: str,
    rank: int,
    size: int,
    local: tuple[Any, ...],
    rendezvous: str,
) -> None:
    found = launch.read(environ, resourceconfig)
    assert (found.rank, found.size, (found.local_rank, found.local_size), found.rendezvous) == (
        rank,
        size,
        local,
        rendezvous,
    )


def test_ranks_of_one_machine_meet_at_a_port_of_their_run() -> None:
    local = {**OMPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "4"}
    one, same, other = (
        launch.read({**local, "PMIX_NAMESPACE": name}, "").rendezvous for name in ("a", "a", "b")
    )
    assert one == same != other and one.startswith("127.0.0.1:")


@pytest.mark.parametrize(
    "environ, resourceconfig, words",
    [
        (OMPI, "", "the address of their rendezvous is unknown"),
        ({**OMPI, "OMPI_COMM_WORLD_RANK": "4"}, "", "rank 4 of 4"),
        ({**OMPI, "OMPI_COMM_WORLD_RANK": "x"}, "", "OMPI_COMM_WORLD_RANK"),
        ({**OMPI, "TRAINYARD_RENDEZVOUS": "nowhere"}, "", "HOST:PORT"),
        ({"HOROVOD_GLOO_RENDEZVOUS_ADDR": "a"}, "", "HOROVOD_GLOO_RENDEZVOUS_PORT is not set"),
        ({}, "{", "resourceconfig"),
    ],
)
def test_unclear_environments_are_rejected(
    environ: dict[str, str], resourceconfig: str, words: str
) -> None:
    with pytest.raises(launch.Unclear, match=words):
        launch.read(environ, resourceconfig)


@pytest.mark.parametrize("value", ["", "0", "false", "False", "NO", "off", "1", "yes", "ture"])
def test_switches_are_parsed_the_same_everywhere(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    wanted = value in ("1", "yes", "ture")  # what is not understood leaves no run open
    variables = {"TRAINYARD_ENCRYPT": value, "TRAINYARD_SECRET": "between us"}
    monkeypatch.setenv("HOROVOD_AUTOTUNE", value)
    found = launch.read(variables, "")
    assert found.encrypt == bool(basics._join(found).encrypt) == wanted
    assert basics._options(found).autotune == wanted
    del variables["TRAINYARD_SECRET"]
    if wanted:
        with pytest.raises(ValueError, match="TRAINYARD_ENCRYPT needs TRAINYARD_SECRET"):
            launch.read(variables, "")
    else:
        assert not launch.read(variables, "").encrypt


def test_hosts_are_accepted_in_both_notations() -> None:
    assert hosts.parse("a:2, b:4,[::1]:3") == [
        hosts.Host("a", 2),
        hosts.Host("b", 4),
        hosts.Host("::1", 3),
    ]
    assert hosts.parse("a,a:2", slots=3) == [hosts.Host("a", 5)]
    assert hosts.parse_file("# ours\na slots=2\n\nb:4  # new\nc\n", slots=8) == [
        hosts.Host("a", 2),
        hosts.Host("b", 4),
        hosts.Host("c", 8),
    ]
    for wrong in ("", "a:0", "a b", "a:x"):
        with pytest.raises(hosts.Wrong):
            hosts.parse(wrong)
    for wrong in ("", "a slots=x", "a b c"):
        with pytest.raises(hosts.Wrong):
            hosts.parse_file(wrong)


def test_slots_are_filled_host_by_host() -> None:
    slots = hosts.assign([hosts.Host("a", 2), hosts.Host("b", 4)], 5)
    assert [
        (slot.host, slot.rank, slot.local_rank, slot.local_size, slot.cross_rank, slot.cross_size)
        for slot in slots
    ] == [
        ("a", 0, 0, 2, 0, 2),
        ("a", 1, 1, 2, 0, 2),
        ("b", 2, 0, 3, 1, 2),
        ("b", 3, 1, 3, 1, 2),
        ("b", 4, 2, 3, 0, 1),
    ]
    with pytest.raises(hosts.Wrong, match="7 ranks were requested, but the hosts have 6 slots"):
        hosts.assign([hosts.Host("a", 2), hosts.Host("b", 4)], 7)


def test_options_become_variables() -> None:
    given = settings.parse(
        [
            "-np",
            "2",
            "--fusion-threshold-mb",
            "32",
            "--cycle-time-ms",
            "3.5",
            "--timeline-mark-cycles",
            "--mpi-args=--x",
            "python",
            "train.py",
            "-np",
            "9",
        ]
    )
    assert given.command == ["python", "train.py", "-np", "9"] and not given.elastic
    assert given.variables == {
        "HOROVOD_FUSION_THRESHOLD": str(32 << 20),
        "HOROVOD_CYCLE_TIME": "3.5",
        "HOROVOD_TIMELINE_MARK_CYCLES": "1",
    }
    assert given.notes == ["--mpi-args has no effect here"]
    tuned = settings.parse(["-np", "2", "--autotune", "--autotune-log-file", "tries", "x"])
    assert (
        tuned.variables == {"HOROVOD_AUTOTUNE": "1", "HOROVOD_AUTOTUNE_LOG": "tries"}
        and tuned.notes == []
    )
    assert settings.parse(["-np", "2", "--no-autotune", "x"]).variables == {"HOROVOD_AUTOTUNE": "0"}
    assert (
        settings.parse(["--min-np", "2", "x"]).np == 2
        and settings.parse(["--min-np", "2", "x"]).elastic
    )


def names(workers: Iterable[elastic.Worker]) -> list[str]:
    return [worker.name for worker in workers]


def test_slots_are_filled_again_after_a_pause() -> None:
    fleet = elastic.Fleet(most=3)
    fleet.update_hosts([hosts.Host("a", 2), hosts.Host("b", 2)])
    assert names(fleet.to_start(0)) == ["a/0 #1", "a/1 #2", "b/0 #3"]
    assert fleet.ended("a/1 #2", True, 10) is None
    assert names(fleet.to_start(10)) == ["b/1 #4"], "another host has free slots"
    assert fleet.ended("b/0 #3", True, 11) is None
    assert names(fleet.to_start(11.5)) == ["a/1 #5"]
    assert names(fleet.to_start(99)) == []


def test_a_host_that_shrinks_is_not_filled_beyond_its_slots() -> None:
    fleet = elastic.Fleet(most=9)
    fleet.update_hosts([hosts.Host("a", 2)])
    fleet.to_start(0)
    fleet.update_hosts([hosts.Host("a", 1)])
    fleet.ended("a/0 #1", True, 1)
    assert fleet.to_start(9) == [], "the other worker is in slot 1"
    fleet.ended("a/1 #2", True, 10)
    assert names(fleet.to_start(20)) == ["a/0 #3"]


def test_a_host_that_fails_repeatedly_is_excluded_and_retried_later() -> None:
    fleet = elastic.Fleet(most=9, cooldown=(10, 15))
    fleet.update_hosts([hosts.Host("a", 3)])
    assert [fleet.ended(worker.name, True, 0) for worker in fleet.to_start(0)] == [None, None, "a"]
    assert fleet.to_start(9) == [] and fleet.slots() == 0 and fleet.may_come()
    assert len(fleet.to_start(10)) == 3
    assert [fleet.ended(name, True, 20) for name in list(fleet.workers)][-1] == "a"
    assert fleet.to_start(34) == [] and len(fleet.to_start(35)) == 3, (
        "longer each time, up to the limit"
    )
    fleet.generation_formed()
    assert [fleet.ended(name, True, 40) for name in list(fleet.workers)[:2]] == [None, None], (
        "a new generation resets the failures"
    )


def test_hosts_may_leave_and_return() -> None:
    fleet = elastic.Fleet(most=9)
    assert fleet.update_hosts([hosts.Host("a", 1), hosts.Host("b", 1)]) == ([], [])
    fleet.to_start(0)
    assert fleet.update_hosts([hosts.Host("a", 2)]) == (["b"], [])
    fleet.workers["b/0 #2"].leave_requested = True
    assert fleet.ended("b/0 #2", False, 1) is None and not fleet.done
    assert names(fleet.to_start(5)) == ["a/1 #3"]
    assert fleet.update_hosts([hosts.Host("a", 2), hosts.Host("b", 1)]) == ([], ["b"])
    assert names(fleet.to_start(5)) == ["b/0 #4"]
    fleet.ended("a/0 #1", False, 6)
    assert fleet.done and fleet.to_start(99) == []
