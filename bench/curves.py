"""Draws the efficiency over the number of ranks as SVG with readable diffs: projected lines and
published points."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from xml.sax.saxutils import escape

LEFT, TOP, WIDTH, HEIGHT, KEY = 60, 30, 620, 380, 330
COLOURS = ("#1b6ca8", "#c0392b", "#2e8b57", "#8e5aa8", "#b9770e", "#117a8b", "#5d6d7e")
LEAST = 0.5  # of the axis


def write(
    lines: Mapping[str, Sequence[tuple[int, float]]],
    points: Iterable[tuple[str, int, float]],
    path: str,
) -> None:
    """lines: name -> [(ranks, efficiency)]; points: [(name, ranks, efficiency)]."""
    most = max(ranks for line in lines.values() for ranks, _ in line)

    def x(ranks: float) -> float:
        return LEFT + WIDTH * math.log(ranks / 4) / math.log(most / 4)

    def y(efficiency: float) -> float:
        return TOP + HEIGHT * (1 - efficiency) / (1 - LEAST)

    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + KEY}"'
            f' height="{TOP + HEIGHT + 50}" font-family="sans-serif" font-size="12">'
        ),
        f'<rect width="{LEFT + WIDTH + KEY}" height="{TOP + HEIGHT + 50}" fill="white"/>',
        (
            f'<text x="{LEFT}" y="18" fill="#444">efficiency over ranks: lines are projected, rings'
            " are published</text>"
        ),
    ]
    for percent in range(50, 101, 10):
        parts.append(
            f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y(percent / 100):.1f}"'
            f' y2="{y(percent / 100):.1f}" stroke="#ddd"/>'
        )
        parts.append(
            f'<text x="{LEFT - 8}" y="{y(percent / 100) + 4:.1f}"'
            f' text-anchor="end">{percent}%</text>'
        )
    for ranks in (8, 32, 160, 480, 2048, 10000):
        parts.append(
            f'<line x1="{x(ranks):.1f}" x2="{x(ranks):.1f}" y1="{TOP}" y2="{TOP + HEIGHT}"'
            ' stroke="#eee"/>'
        )
        parts.append(
            f'<text x="{x(ranks):.1f}" y="{TOP + HEIGHT + 18}" text-anchor="middle">{ranks}</text>'
        )
    parts.append(
        f'<text x="{LEFT + WIDTH / 2}" y="{TOP + HEIGHT + 38}" text-anchor="middle">ranks</text>'
    )
    for number, (name, line) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        path_of = " ".join(
            f"{x(ranks):.1f},{y(max(efficiency, LEAST)):.1f}" for ranks, efficiency in line
        )
        parts.append(
            f'<polyline points="{path_of}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
        parts.append(
            f'<text x="{LEFT + WIDTH + 34}" y="{TOP + 20 + 18 * number}">{escape(name)}</text>'
        )
        parts.append(
            f'<line x1="{LEFT + WIDTH + 8}" x2="{LEFT + WIDTH + 28}" y1="{TOP + 16 + 18 * number}"'
            f' y2="{TOP + 16 + 18 * number}" stroke="{colour}" stroke-width="2"/>'
        )
    for name, ranks, efficiency in points:
        parts.append(
            f'<circle cx="{x(ranks):.1f}" cy="{y(max(efficiency, LEAST)):.1f}" r="5" fill="none"'
            f' stroke="#111"><title>{escape(name)}</title></circle>'
        )
        parts.append(
            f'<text x="{x(ranks) - 8:.1f}" y="{y(max(efficiency, LEAST)) - 8:.1f}" font-size="10"'
            f' text-anchor="middle">{100 * efficiency:.0f}%</text>'
        )
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(parts) + "\n</svg>\n")
