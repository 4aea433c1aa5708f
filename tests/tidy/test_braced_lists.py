"""TRY stands behind no other element of a braced list: g++ does not destroy the elements before it
when it returns an error, so that texts and descriptors among them are lost."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

from tests.tidy import sources

# What stands before the brace of a block, in contrast to that of a list.
BLOCK = re.compile(
    r"(?:\)|\]|\b(?:else|do|try|const|noexcept|override|mutable|namespace \w+)"
    r"|->\s*[\w:<>,\s&*]+)$"
)
BEFORE_CHARACTERS = 60  # that are read before a brace


@dataclasses.dataclass
class Open:
    bracket: str
    at: int
    commas: int = 0
    semicolons: int = 0


def is_block(code: str, brace: Open) -> bool:
    before = code[max(0, brace.at - BEFORE_CHARACTERS) : brace.at].rstrip()
    return brace.semicolons > 0 or BLOCK.search(before) is not None


def behind_elements(code: str) -> Iterator[int]:
    """The lines of TRYs in a braced list that has an element before them."""
    opened: list[Open] = []
    for found in re.finditer(r"[(){}\[\],;]|\bTRY(?=\()", code):
        token = found[0]
        if token in "({[":
            opened.append(Open(token, found.start()))
        elif token in ")}]":
            del opened[-1:]
        elif token == "TRY":
            for each in reversed([one for one in opened if one.bracket == "{"]):
                if is_block(code, each):
                    break
                if each.commas:
                    yield code.count("\n", 0, found.start()) + 1
                    break
        elif opened:
            opened[-1].commas += token == ","
            opened[-1].semicolons += token == ";"


def test_tries_are_found() -> None:
    found = ["return Pair{name, TRY(value())};", "all.push_back({{f(a, b), 1}, .x = {TRY(x())}});"]
    fine = [
        "return Pair{TRY(value()), name};",
        "f([&]() -> Result<A> { return A{TRY(a())}; });",
        "void f(int a, int b) { g(a, b); TRY(h()); }",
        "const auto of = [&, a](int b) { return TRY(h(a, b)); };",
        "all.push_back({name, read([&] { return TRY(x()); })});",
    ]
    for text in found:
        assert list(behind_elements(text)) == [1], text
    for text in fine:
        assert not list(behind_elements(text)), text


def test_try_is_behind_no_element_of_a_list() -> None:
    wrong = [
        f"{path}:{line}: make the value before the list"
        for path in sources.cpp()
        for line in behind_elements(sources.code(path))
    ]
    assert not wrong, "\n" + "\n".join(wrong)
