"""Documents that can be checked are: links lead somewhere, commands exist,
every dependency is explained."""

import os
import re

from tests.tidy import sources


def documents() -> list[str]:
    return [path for path in sources.tracked() if path.endswith(".md")]


def test_links_lead_somewhere() -> None:
    wrong = []
    for path in documents():
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)", sources.read(path)):
            if "://" in target:
                continue
            if not os.path.exists(os.path.join(sources.ROOT, os.path.dirname(path), target)):
                wrong.append(f"{path}: {target}")
    assert not wrong, "links that lead nowhere:\n" + "\n".join(wrong)


def test_yards_commands_are_documented() -> None:
    known = set(re.findall(r"^  ([a-z]+)\)", sources.read("yard"), re.M))
    for path in documents():
        for command in re.findall(r"\./yard ([a-z]+)", sources.read(path)):
            assert command in known, f"{path} says ./yard {command}, which there is not"


def test_named_paths_exist() -> None:
    """What ARCHITECTURE, HACKING and the module READMEs put in backticks as a path is there."""
    wrong = []
    for path in documents():
        for name in re.findall(
            r"`((?:src|tests|docs|sim|bench|examples|packaging|cmake|apps)/[\w./-]+)`",
            sources.read(path),
        ):
            if not os.path.exists(os.path.join(sources.ROOT, name)):
                wrong.append(f"{path}: {name}")
    assert not wrong, "paths that are not there:\n" + "\n".join(wrong)


def test_every_format_is_listed() -> None:
    pages = {path for path in documents() if path.startswith("docs/formats/")} - {
        "docs/formats/README.md"
    }
    listed = set(re.findall(r"\]\(([\w.-]+\.md)\)", sources.read("docs/formats/README.md")))
    missing = {os.path.basename(page) for page in pages} - listed
    assert not missing, f"docs/formats/README.md does not list {sorted(missing)}"


def test_every_python_package_is_pinned() -> None:
    for line in sources.read("packaging/python-requirements.txt").splitlines():
        assert not line or line.startswith("#") or "==" in line, f"not pinned: {line}"
