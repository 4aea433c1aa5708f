"""The sources as text, and modules.txt as a table."""

import functools
import os
import re
import subprocess

from tests import reach

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# Modules that are folders of the tree.
OUTSIDE_SRC = ("apps", "sim", "bench", "sdk")


@functools.cache
def tracked() -> list[str]:
    """Every file that git tracks, and new ones that it does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return [path for path in listed.stdout.splitlines() if os.path.exists(os.path.join(ROOT, path))]


def cpp(*suffixes: str) -> list[str]:
    return [path for path in tracked() if path.endswith(suffixes or (".hpp", ".cpp"))]


def python() -> list[str]:
    """Every file of Python, with programs whose first line says so."""
    return [path for path in tracked() if path.endswith(".py") or is_python(path)]


def is_python(path: str) -> bool:
    if "." in os.path.basename(path):
        return False
    with open(os.path.join(ROOT, path), "rb") as file:
        return re.match(rb"#!.*python", file.readline()) is not None


@functools.cache
def read(path: str) -> str:
    return reach.read(path)


def documents() -> list[str]:
    return [path for path in tracked() if path.endswith(".md")]


@functools.cache
def code(path: str) -> str:
    """The file without comments and string contents; lines keep their numbers."""
    text = re.sub(
        r'R"(\w*)\((.*?)\)\1"',
        lambda found: '""' + "\n" * found[0].count("\n"),
        read(path),
        flags=re.S,
    )
    text = re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', text)
    text = re.sub(r"/\*.*?\*/", lambda found: "\n" * found[0].count("\n"), text, flags=re.S)
    return re.sub(r"//[^\n]*", "", text)


def module_of(path: str) -> str | None:
    """src/control_plane/schedule/plan.cpp -> schedule; apps/.. -> apps; sdk/python/c10d/.. -> sdk;
    None: in no module."""
    parts = path.split("/")
    if parts[0] == "src" and len(parts) > 3:
        return parts[2]
    return parts[0] if parts[0] in OUTSIDE_SRC else None


@functools.cache
def modules() -> dict[str, tuple[set[str], set[str], set[str]]]:
    """Maps each module to the (modules, libraries, facilities) that modules.txt allows it."""
    table: dict[str, tuple[set[str], set[str], set[str]]] = {}
    for line in read("modules.txt").splitlines():
        if found := re.match(r"(?:[a-z0-9_]+/)?([a-z0-9_]+):([^|]*)\|([^|]*)\|(.*)$", line):
            modules, libraries, facilities = (set(part.split()) for part in found.groups()[1:])
            table[found[1]] = modules, libraries, facilities
    return table
