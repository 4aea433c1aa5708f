#!/usr/bin/python3
"""Draws modules.txt: docs/internals/modules.svg and the table in docs/internals/modules.md.

  docs/internals/draw_modules.py          writes both
  docs/internals/draw_modules.py --check  checks that they are up to date (tests/tidy does)

A box is a module and a band is a folder. In a band, a module is above the modules that it includes.
Lines join them, except where a longer path implies the inclusion.
"""

import html
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, ROOT)

from tests.reach import read  # noqa: E402

HERE = "docs/internals"
# The folders from the top, with their purposes.
GROUPS = {
    "api": "front ends: the only place that knows AWS's names",
    "control_plane": "decides; never links torch",
    "job": "runs one host of one job",
    "compute": "communication between ranks, and training",
    "machine": "isolates hosts on a machine",
    "foundation": "basics that every program may use",
}
WIDTH, MARGIN, BOX, GAP, ROW = 1160, 24, (118, 30), (14, 34), 190
COLOURS = {
    "api": "#4c78a8",
    "control_plane": "#f58518",
    "job": "#54a24b",
    "compute": "#b279a2",
    "machine": "#9d755d",
    "foundation": "#72818f",
}


def modules() -> dict[str, tuple[str, set[str]]]:
    """module -> (its folder, the modules that it may include)"""
    lines = re.findall(r"^([a-z0-9_]+)/([a-z0-9_]+):([^|]*)\|", read("modules.txt"), re.M)
    return {name: (group, set(used.split())) for group, name, used in lines}


def sentence(group: str, name: str) -> str:
    """Returns the sentence in the title of the module's README."""
    title = read(f"src/{group}/{name}/README.md").splitlines()[0]
    return title.split(":", 1)[1].strip() if ":" in title else title.removeprefix("# ")


def reduced(uses: dict[str, set[str]]) -> dict[str, set[str]]:
    """Returns the transitive reduction: without arrows that a longer path implies."""

    def reach(name: str) -> set[str]:
        return set().union(*({used} | reach(used) for used in uses[name])) if uses[name] else set()

    return {
        name: {
            used for used in targets if not any(used in reach(other) for other in targets - {used})
        }
        for name, targets in uses.items()
    }


def levels(uses: dict[str, set[str]]) -> dict[str, int]:
    def level(name: str) -> int:
        return 1 + max((level(used) for used in uses[name]), default=-1)

    return {name: level(name) for name in uses}


def box(x: float, y: float, width: float, height: float, rest: str, title: str = "") -> str:
    inside = f"<title>{html.escape(title)}</title>" if title else ""
    place = f'x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}"'
    return f"<rect {place} {rest}>{inside}</rect>"


def text(x: float, y: float, rest: str, content: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" {rest}>{html.escape(content)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, rest: str) -> str:
    return f'<line x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}" {rest}/>'


def positions(inside: dict[str, set[str]], y: float) -> dict[str, tuple[float, float]]:
    """Returns the corner of each module's box in a band whose rows begin at y."""
    rows: dict[int, list[str]] = {}
    for name, level in levels(inside).items():
        rows.setdefault(level, []).append(name)
    at: dict[str, tuple[float, float]] = {}

    def below(name: str) -> float:
        known = [at[used][0] for used in inside[name] if used in at]
        return sum(known) / len(known) if known else 0

    for level in sorted(rows):
        width = len(rows[level]) * (BOX[0] + GAP[0]) - GAP[0]
        left = ROW + (WIDTH - MARGIN - ROW - width) / 2
        for place, name in enumerate(sorted(rows[level], key=below)):
            at[name] = (
                left + place * (BOX[0] + GAP[0]),
                y + (max(rows) - level) * (BOX[1] + GAP[1]),
            )
    return at


def svg() -> str:
    table = modules()
    shapes: list[str] = []
    y: float = MARGIN
    for group, about in GROUPS.items():
        colour = COLOURS[group]
        members = {name: uses for name, (folder, uses) in table.items() if folder == group}
        inside = {name: uses & set(members) for name, uses in members.items()}
        at = positions(inside, y + 30)
        height = max(top for _, top in at.values()) + BOX[1] + 30 - y
        band = f'rx="8" fill="{colour}" fill-opacity=".10"'
        shapes.append(box(MARGIN, y, WIDTH - 2 * MARGIN, height, band))
        shapes.append(text(MARGIN + 14, y + 24, f'font-weight="bold" fill="{colour}"', group))
        shapes.append(text(MARGIN + 14, y + 42, 'font-size="11" fill="#777"', about))
        for name, targets in reduced(inside).items():
            for used in sorted(targets):
                (x1, y1), (x2, y2) = at[name], at[used]
                stroke = f'stroke="{colour}" stroke-opacity=".55"'
                shapes.append(line(x1 + BOX[0] / 2, y1 + BOX[1], x2 + BOX[0] / 2, y2, stroke))
        for name, (x, top) in at.items():
            frame = f'rx="5" fill="white" stroke="{colour}"'
            shapes.append(box(x, top, *BOX, frame, sentence(group, name)))
            label = 'text-anchor="middle" font-size="12" fill="#222"'
            shapes.append(text(x + BOX[0] / 2, top + 19, label, name))
        y += height + 12
    height = y - 12 + MARGIN
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:.0f}"'
        ' font-family="sans-serif" font-size="14">'
    )
    return "\n".join([head, box(0, 0, WIDTH, height, 'fill="white"'), *shapes, "</svg>", ""])


def page() -> str:
    table = modules()
    lines = [
        "# Modules",
        "",
        "`docs/internals/draw_modules.py` makes this page and its picture",
        "from `modules.txt` and the READMEs.",
        "",
        "![modules](modules.svg)",
        "",
    ]
    for group, about in GROUPS.items():
        lines += [f"## {group}: {about}", "", "| module | is | includes |", "|---|---|---|"]
        for name, (folder, uses) in table.items():
            if folder == group:
                link = f"[{name}](../../src/{group}/{name}/README.md)"
                lines.append(f"| {link} | {sentence(group, name)} | {' '.join(sorted(uses))} |")
        lines.append("")
    return "\n".join(lines)


def main() -> int:
    made = {f"{HERE}/modules.svg": svg(), f"{HERE}/modules.md": page()}
    stale = [
        path
        for path, text in made.items()
        if not os.path.exists(os.path.join(ROOT, path)) or read(path) != text
    ]
    if "--check" in sys.argv:
        for path in stale:
            print(f"{path} is out of date: run {HERE}/draw_modules.py", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        with open(os.path.join(ROOT, path), "w", encoding="utf-8") as file:
            file.write(made[path])
    return 0


if __name__ == "__main__":
    sys.exit(main())
