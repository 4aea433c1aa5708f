"""Python imports only what modules.txt allows its tree: benches import tests, and tests import no
bench."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from tests.tidy import sources

TREE = re.compile(r"^# +python ([a-z/]+): +([a-z ]+)$", re.M)
PACKAGES = {"bench", "tests"}


def rules(text: str) -> dict[str, set[str]]:
    """tree -> the packages that it may import"""
    return {tree: set(packages.split()) for tree, packages in TREE.findall(text)}


def tree_of(path: str, trees: Mapping[str, set[str]]) -> str:
    """The longest tree that has the file; "" if none has."""
    return max((tree for tree in trees if path.startswith(f"{tree}/")), key=len, default="")


def imports(text: str) -> Iterator[tuple[int, str]]:
    """(line, package) of each import of a package of the repository, wherever it stands."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
        else:
            continue
        for name in names:
            if (package := name.split(".")[0]) in PACKAGES:
                yield node.lineno, package


def test_trees_import_what_modules_txt_allows() -> None:
    allowed = rules(sources.read("modules.txt"))
    assert allowed and all(packages <= PACKAGES for packages in allowed.values())
    wrong = []
    used: dict[str, set[str]] = {tree: set() for tree in allowed}
    for path in sources.tracked():
        if not path.endswith(".py") and not sources.is_python(path):
            continue
        tree = tree_of(path, allowed)
        for line, package in imports(sources.read(path)):
            used.setdefault(tree, set()).add(package)
            if package not in allowed.get(tree, set()):
                wrong.append(f"{path}:{line}: {package}: put what both need into tests")
    wrong += [
        f"modules.txt: python {tree}: remove {package}"
        for tree, packages in allowed.items()
        for package in sorted(packages - used[tree])
    ]
    assert not wrong, "imports that modules.txt does not allow:\n" + "\n".join(wrong)


def test_imports_are_found_in_their_trees() -> None:
    allowed = rules(
        "# a python tree: no\n#    python tests:      tests\n# python tests/tidy: bench tests\n"
    )
    assert allowed == {"tests": {"tests"}, "tests/tidy": {"bench", "tests"}}
    assert tree_of("tests/tidy/test_a.py", allowed) == "tests/tidy"
    assert tree_of("tests/jobs.py", allowed) == "tests"
    assert tree_of("sdk/python/tests/a.py", allowed) == ""
    text = "import os, bench.rows\ndef a():\n    from tests.jobs import b\nfrom .tests import c\n"
    assert list(imports(text)) == [(1, "bench"), (3, "tests")]
