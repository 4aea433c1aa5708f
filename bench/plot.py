"""Draws a bar for each row of a bench that has a peer: our time divided by the peer's time, with a
line at 1.

The SVG is written without a library, so that it has no dependencies and a readable diff.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from xml.sax.saxutils import escape

from bench.rows import Row

LINE, LEFT, WIDTH, RIGHT, TOP = 22, 460, 420, 90, 40
RATIO_MIN = 0.01  # smaller ratios are drawn as this one


def write(rows: Iterable[Row], path: str) -> None:
    bars = [(row, row["peer"][1]) for row in rows if row["peer"] and row["peer"][1]]
    ratio_max = max(2.0, *(row["ours"][2] / peer for row, peer in bars))

    def x(ratio: float) -> float:
        return LEFT + WIDTH * (math.log(max(ratio, RATIO_MIN)) - math.log(RATIO_MIN)) / (
            math.log(ratio_max) - math.log(RATIO_MIN)
        )

    height = TOP + LINE * len(bars) + 30
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + RIGHT}"'
            f' height="{height}" font-family="sans-serif" font-size="12">'
        ),
        f'<rect width="{LEFT + WIDTH + RIGHT}" height="{height}" fill="white"/>',
        (
            f'<text x="{LEFT}" y="16" fill="#444">ours / peer, medians (thin line: ours from least'
            " to most; red tick: target)</text>"
        ),
    ]
    for mark in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10):
        if mark <= ratio_max:
            parts.append(
                f'<line x1="{x(mark):.1f}" x2="{x(mark):.1f}" y1="{TOP - 8}" y2="{height - 24}"'
                f' stroke="{"#222" if mark == 1 else "#ddd"}"/>'
            )
            parts.append(
                f'<text x="{x(mark):.1f}" y="{height - 8}" text-anchor="middle"'
                f' fill="#444">{mark:g}</text>'
            )
    for number, (row, peer) in enumerate(bars):
        y = TOP + LINE * number
        low, middle, high = (value / peer for value in row["ours"])
        parts.append(
            f'<text x="{LEFT - 8}" y="{y + 12}" text-anchor="end">{escape(row["case"])} /'
            f" {escape(row['peer_name'] or '')}</text>"
        )
        parts.append(
            f'<rect x="{LEFT}" y="{y + 2}" width="{max(1, x(middle) - LEFT):.1f}" height="12"'
            f' fill="{"#4878a8" if row["met"] else "#c06030"}"/>'
        )
        parts.append(
            f'<line x1="{x(low):.1f}" x2="{x(high):.1f}" y1="{y + 8}" y2="{y + 8}" stroke="#111"/>'
        )
        target = re.search(r"ratio <= ([0-9.]+)", row["target"])
        if target:
            at = x(float(target[1]))
            parts.append(
                f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{y}" y2="{y + 16}" stroke="#c00"'
                ' stroke-width="2"/>'
            )
        parts.append(f'<text x="{x(max(high, middle)) + 6:.1f}" y="{y + 12}">{middle:.3g}</text>')
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(parts) + "\n</svg>\n")
