"""A function of C++ or Python fits a screen: at most LINES_MAX lines, its first and last included.

functions.txt lists those that are longer, each with the lines that it may have. It may only shrink:
`python -m tests.tidy.test_functions` writes it again when functions have become shorter.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Iterator
from typing import NamedTuple

from tests import reach
from tests.tidy import sources

LINES_MAX = 60
LIST = "tests/tidy/functions.txt"
HEAD = (
    "# Functions of more than 60 lines (test_functions.py): lines, file, name. May only shrink.\n"
)

NOT_A_NAME = {"if", "for", "while", "switch", "catch", "return", "decltype", "noexcept", "requires"}

QUALIFIERS = {"const", "noexcept", "override", "final", "mutable", "try"}


class Definition(NamedTuple):
    name: str
    first_line: int
    lines: int
    body: str  # as written, without its braces


@functools.cache
def functions(text: str) -> tuple[Definition, ...]:
    """The functions that a formatted C++ source defines, in order."""
    return tuple(definitions(text))


def definitions(text: str) -> Iterator[Definition]:
    scopes: list[tuple[str, str, int, int]] = []  # (kind, name, line, end) of the open braces
    head: list[str] = []  # of the current declaration
    first_line, line = 0, 1
    for part in reach.CPP_PARTS.finditer(text):
        token, skipped = part[0], bool(part["comment"] or part["space"])
        if not skipped and token == "{" and initialises(head):
            scopes.append(("initialiser", "", line, part.end()))
        elif not skipped and token == "}" and scopes and scopes[-1][0] == "initialiser":
            scopes.pop()
        elif not skipped and token == "{":
            outside = all(kind in ("namespace", "class") for kind, *_ in scopes)
            scopes.append((*kind_of(head, outside), first_line or line, part.end()))
            head, first_line = [], 0
        elif not skipped and token == "}":
            if scopes:
                kind, name, begun, body = scopes.pop()
                if kind == "function":
                    yield Definition(name, begun, line - begun + 1, text[body : part.start()])
            head, first_line = [], 0
        elif not skipped and (
            token == ";" or (token == ":" and head in (["public"], ["private"], ["protected"]))
        ):
            head, first_line = [], 0
        elif not skipped and not (token == "#" and not head):
            first_line = first_line or line
            head.append(token)
        line += token.count("\n")


def initialises(head: list[str]) -> bool:
    """The brace after these tokens is a member's initialiser: S(int x) : x_{x}."""
    return (
        ")" in head
        and ":" in head[head.index(")") :]
        and re.match(r"[A-Za-z_]", head[-1]) is not None
        and head[-1] not in QUALIFIERS
    )


def kind_of(head: list[str], outside: bool) -> tuple[str, str]:
    """Returns the kind of block that the brace after these tokens opens, and its name."""
    if "namespace" in head or head[:1] == ["extern"]:
        return "namespace", ""
    if not outside:
        return "block", ""
    if "(" in head:
        at = head.index("(")
        name = head[at - 1] if at else ""
        if "operator" in head[:at]:
            return "function", "operator"
        if re.match(r"[A-Za-z_]", name) and name not in NOT_A_NAME and "=" not in head[:at]:
            return "function", name
    if {"class", "struct", "union"} & set(head) and "=" not in head:
        return "class", ""
    return "block", ""


def long_functions() -> dict[tuple[str, str], int]:
    """The longest of each (file, name) that has more than LINES_MAX lines."""
    found: dict[tuple[str, str], int] = {}
    sized = [
        (path, name, lines)
        for path in sources.cpp()
        for name, _, lines, _ in functions(sources.read(path))
    ]
    sized += [
        (path, name, lines)
        for path in sources.python()
        for name, lines in python_functions(sources.read(path))
    ]
    for path, name, lines in sized:
        if lines > LINES_MAX:
            found[path, name] = max(lines, found.get((path, name), 0))
    return found


def python_functions(text: str) -> Iterator[tuple[str, int]]:
    """Yields the name of each function, and its lines."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def listed() -> dict[tuple[str, str], int]:
    rows = [line.split() for line in sources.read(LIST).splitlines() if not line.startswith("#")]
    return {(path, name): int(lines) for lines, path, name in rows}


def test_functions_fit_a_screen() -> None:
    allowed = listed()
    wrong = []
    for (path, name), lines in long_functions().items():
        limit = allowed.get((path, name), LINES_MAX)
        if lines > limit:
            wrong.append(f"{path}: {name}() has {lines} lines, {limit} are allowed: split it")
        elif lines < limit:
            wrong.append(f"{path}: {name}() shrank to {lines} lines: write that into {LIST}")
    wrong += [
        f"{LIST}: {path} {name} is short now: remove it"
        for path, name in allowed.keys() - long_functions().keys()
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def test_functions_are_found() -> None:
    text = """
namespace a {
namespace {
// int no(int) {
constexpr int kTable[] = {
    1,
};
int plain(int x) {
  if (x) {
    return 1;
  }
  return 2;
}
}  // namespace
struct S final : Base {
  enum class E { a, b };
  S(int x) : x_{x}, y_(x) {}
  template <class T>
  bool operator==(const T& other) const {
    return "}" == other;
  }
  int x_ = 0;
};
auto later = [](int x) {
  return x;
};
Result<void> S::run(std::function<void(int)> f) {
  f([] {
    return 1;
  });
}
}  // namespace a
"""
    found = functions(text)
    assert [(one.name, one.first_line, one.lines) for one in found] == [
        ("plain", 8, 6),
        ("S", 17, 1),
        ("operator", 18, 4),
        ("run", 27, 5),
    ]
    assert found[2].body == '\n    return "}" == other;\n  '


def test_functions_of_python_are_found() -> None:
    text = (
        "class A:\n    def a(self):\n        def b(): ...\n        return b\n\nasync def c(): ...\n"
    )
    assert sorted(python_functions(text)) == [("a", 3), ("b", 1), ("c", 1)]


def main() -> None:
    found = long_functions()
    allowed = listed()
    longer = [key for key, lines in found.items() if lines > allowed.get(key, 10**6)]
    if longer:
        sys.exit(f"longer than before: {longer}")
    rows = sorted((lines, path, name) for (path, name), lines in found.items())
    with open(f"{sources.ROOT}/{LIST}", "w", encoding="utf-8") as file:
        file.write(HEAD + "".join(f"{lines} {path} {name}\n" for lines, path, name in rows))


if __name__ == "__main__":
    main()
