"""Measures allreduce between hosts."""

from __future__ import annotations

from bench import progress
from bench.network import Network
from bench.peers import MIB
from bench.rows import Row, row

LINK_ROUNDS = 3


def links() -> list[Row]:
    """Measures allreduce between hosts with shaped links, next to the minimum time that the links
    allow: 2(n-1)/n x bytes / goodput."""
    rows = []
    for hosts, rate in ((2, "1gbit"), (4, "1gbit"), (2, "2.5gbit")):
        mine: dict[int, list[float]] = {16: [], 64: []}
        least: dict[int, list[float]] = {16: [], 64: []}
        with Network(hosts, rate) as network:
            for _ in progress.rounds(range(LINK_ROUNDS)):
                goodput = network.goodput()
                for mebibytes in mine:
                    mine[mebibytes].append(network.allreduce_seconds(mebibytes * MIB) * 1e3)
                    least[mebibytes].append(
                        2 * (hosts - 1) / hosts * mebibytes * MIB / goodput * 1e3
                    )
        rows += [
            row(
                "links",
                f"{hosts} hosts, {rate}, {mebibytes} MiB",
                "ms",
                mine[mebibytes],
                least[mebibytes],
                "iperf3's goodput both ways at once",
                "ratio <= 1.05",
                lambda a, b: a <= 1.05 * b,
            )
            for mebibytes in mine
        ]
    return rows
