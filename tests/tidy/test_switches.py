"""An enum has one table of texts (base/enum_table.hpp), so no `switch` maps its values to literals:
a table that lacks a value does not compile, and its texts can be parsed too."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.tidy import sources

SWITCH = re.compile(r"\bswitch \(")
LABEL = re.compile(r"(?:\bcase [^;{}]*?(?<!:)|\bdefault):(?!:)")
# code() leaves the quotes of a text. `break` ends a case whose text stands behind the switch.
STATEMENT = re.compile(r'return (?:std::string(?:_view)?[({])?(?:""\s*)+[)}]?')

# file -> why its switch is not a table
ALLOWED = {
    "src/api/protocol/json.cpp": "an enum of simdjson, whose types of numbers share a text",
    "src/api/sagemaker/training_job_view.cpp": "states share AWS's InProgress",
    "src/control_plane/file_systems/exchange.cpp": "kinds of errors share AWS's codes",
    "src/foundation/client/client.cpp": "protocols share a content type",
}


def block(code: str, start: int) -> str:
    """The text between the next brace and the one that closes it."""
    begin = code.index("{", start) + 1
    depth = 1
    for found in re.finditer(r"[{}]", code[begin:]):
        depth += 1 if found[0] == "{" else -1
        if depth == 0:
            return code[begin : begin + found.start()]
    return code[begin:]


def tables_in(code: str) -> Iterator[int]:
    """The lines of the switches whose cases all return literals. `code`: as sources.code()."""
    for found in SWITCH.finditer(code):
        statements = [each.strip() for each in LABEL.sub("", block(code, found.end())).split(";")]
        statements = [each for each in statements if each and each != "break"]
        if statements and all(STATEMENT.fullmatch(each) for each in statements):
            yield code.count("\n", 0, found.start()) + 1


def test_enums_have_tables_of_texts() -> None:
    wrong, used = [], set()
    for path in sources.cpp():
        if not path.startswith(("src/", "apps/")):
            continue
        for line in tables_in(sources.code(path)):
            used.add(path)
            if path not in ALLOWED:
                wrong.append(f"{path}:{line}: a switch returns texts: use base/enum_table.hpp")
    wrong += [f"{path}: remove the exception" for path in sorted(ALLOWED.keys() - used)]
    assert not wrong, "\n" + "\n".join(wrong)


def test_switches_of_texts_are_found() -> None:
    for cases in (
        'case State::a:\n    case State::b:\n      return "";\n    default:\n      return "";',
        'case ns::State::a:\n return std::string("" "");\n case ns::State::b: break;',
    ):
        code = f'int x;\nswitch (state) {{\n{cases}\n}}\nreturn "";'
        assert list(tables_in(code)) == [2], code
    for cases in (
        'case State::a:\n return "" + name;\n case State::b:\n return "";',
        "case State::a:\n return 1;",
        'case State::a: {\n run();\n return "";\n }',
        "case State::a:\n break;",
    ):
        assert not list(tables_in(f"switch (state) {{\n{cases}\n}}")), cases
