"""Measures allreduce between ranks of this machine."""

from __future__ import annotations

from collections.abc import Callable

from bench import progress
from bench.peers import MIB, gloo, mpich, open_mpi, ours
from bench.rows import Row, row

COLLECTIVE_ROUNDS = 9

Measure = Callable[[], float]
# (name, our measure, peers); a peer is (measure, name, maximum ratio or None).
Case = tuple[str, Measure, list[tuple[Measure, str, float | None]]]


def at_most(bound: float | None) -> Callable[[float, float], bool]:
    return lambda our, their: bound is None or our <= bound * their


def below(bound: float) -> Callable[[float, float], bool]:
    return lambda our, _: our < bound


def collectives() -> list[Row]:
    """Measures allreduce, interleaved with Open MPI, MPICH and Gloo; float32 sums by default."""
    cases: list[Case] = [
        (
            "2 ranks, 1 KiB",
            ours(2, 1024),
            [(open_mpi(2, 1024), "Open MPI", 1.0), (mpich(2, 1024), "MPICH", None)],
        ),
        (
            "2 ranks, 1 MiB",
            ours(2, MIB),
            [(open_mpi(2, MIB), "Open MPI", 0.9), (mpich(2, MIB), "MPICH", None)],
        ),
        (
            "2 ranks, 25 MiB",
            ours(2, 25 * MIB),
            [
                (open_mpi(2, 25 * MIB), "Open MPI", 0.47),
                (mpich(2, 25 * MIB), "MPICH", None),
                (gloo(2, 25 * MIB), "Gloo", 0.16),
            ],
        ),
        (
            "2 ranks, 25 MiB, registered",
            ours(2, 25 * MIB, links="registered"),
            [(open_mpi(2, 25 * MIB), "Open MPI", 0.2)],
        ),
        ("2 ranks, 100 MiB", ours(2, 100 * MIB), [(open_mpi(2, 100 * MIB), "Open MPI", 0.3)]),
        (
            "2 ranks, 25 MiB, f16",
            ours(2, 25 * MIB, "f16"),
            [(ours(2, 25 * MIB), "f32, as many bytes", 1.3)],
        ),
        (
            "2 ranks, 25 MiB, bf16",
            ours(2, 25 * MIB, "bf16"),
            [(ours(2, 25 * MIB), "f32, as many bytes", 1.3)],
        ),
        ("4 ranks, 1 KiB", ours(4, 1024), [(open_mpi(4, 1024), "Open MPI", 1.0)]),
        ("4 ranks, 25 MiB", ours(4, 25 * MIB), [(open_mpi(4, 25 * MIB), "Open MPI", 1.0)]),
        ("8 ranks, 1 KiB", ours(8, 1024), [(open_mpi(8, 1024), "Open MPI", 1.0)]),
        ("8 ranks, 25 MiB", ours(8, 25 * MIB), [(open_mpi(8, 25 * MIB), "Open MPI", 1.0)]),
        (
            "2 ranks, TCP, 1 KiB",
            ours(2, 1024, links="tcp"),
            [(open_mpi(2, 1024, "tcp"), "Open MPI over TCP", 1.0)],
        ),
        (
            "2 ranks, TCP, 25 MiB",
            ours(2, 25 * MIB, links="tcp"),
            [(open_mpi(2, 25 * MIB, "tcp"), "Open MPI over TCP", 1.0)],
        ),
    ]
    mine: dict[str, list[float]] = {name: [] for name, *_ in cases}
    theirs: dict[tuple[str, str], list[float]] = {
        (name, peer): [] for name, _, peers in cases for _, peer, _ in peers
    }
    starts: dict[int, list[float]] = {16: [], 64: []}
    for _ in progress.rounds(range(COLLECTIVE_ROUNDS)):
        for name, measure, peers in cases:
            mine[name].append(measure())
            for measure_peer, peer, _ in peers:
                theirs[name, peer].append(measure_peer())
        for ranks, seconds in starts.items():
            seconds.append(ours(ranks, 64, links="start")() / 1e6)
    return [
        row(
            "collectives",
            name,
            "us",
            mine[name],
            theirs[name, peer],
            peer,
            f"ratio <= {bound}" if bound else "shown",
            at_most(bound),
        )
        for name, _, peers in cases
        for _, peer, bound in peers
    ] + [
        row(
            "collectives",
            f"start of {ranks} ranks",
            "s",
            starts[ranks],
            None,
            None,
            f"< {bound} s",
            below(bound),
        )
        for ranks, bound in ((16, 1), (64, 3))
    ]
