"""Writes Python's ctypes declarations of the C interface. Run it after a change of a header;
tests/tidy checks that the declarations are current.

    declare.py          writes OUTPUT
    declare.py --check  exits with 1 and names OUTPUT if it is not current

A struct becomes a class (trainyard_join: Join). An enumerator or a #define of a number becomes a
constant. A function becomes a row of FUNCTIONS with the types of its result and arguments. Pointers
to structs that a header does not define are opaque. A `char*` that is not const stays an address:
it is memory of the caller, or memory that the caller must free.
"""

from __future__ import annotations

import pathlib
import re
import sys
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
OUTPUT = ROOT / "sdk/python/trainyard/_declarations.py"
PREFIX = "trainyard_"  # omitted in the names of classes
NAMES = ("collectives", "launch", "gradients", "membership", "parameters", "local_sgd")
HEADERS = [f"src/compute/capi/{PREFIX}{name}.h" for name in NAMES]
COLUMNS = 100
PLAIN = {
    "int": "c_int",
    "float": "c_float",
    "double": "c_double",
    "size_t": "c_size_t",
    **{f"{u}int{n}_t": f"c_{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)},
}


class Unknown(ValueError):
    """Raised for a declaration that this script does not support."""


def without_comments(text: str) -> str:
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)
    return re.sub(r"\bTRAINYARD_PUBLIC\b|__attribute__\(\(.*?\)\)\)?", " ", text)


def _laid_out(name: str, result: str, takes: list[str]) -> list[str]:
    """Returns a row of FUNCTIONS as `ruff format` lays it out."""
    row = f'    "{name}": ({result}, [{", ".join(takes)}]),'
    if len(row) <= COLUMNS:
        return [row]
    arguments = f"        [{', '.join(takes)}],"
    if len(arguments) > COLUMNS:
        arguments = "\n".join(
            ["        [", *(f"            {each}," for each in takes), "        ],"]
        )
    return [f'    "{name}": (', f"        {result},", arguments, "    ),"]


class Header:
    """The declarations of several headers, in their order."""

    def __init__(self, texts: list[str]) -> None:
        self.constants: list[tuple[str, int]] = []
        self.structs: dict[str, list[tuple[str, str]]] = {}
        self.enums: set[str] = set()
        self.functions: dict[str, tuple[str, list[str]]] = {}
        for text in texts:
            for name, value in re.findall(r"^#define (\w+) (\d+)$", text, re.M):
                self.constants.append((name, int(value)))
            self._read(re.sub(r"^\s*#.*$", "", without_comments(text), flags=re.M))

    def _read(self, text: str) -> None:
        # structs and enums first, in their order: functions take them
        blocks = re.compile(r"typedef\s+(struct|enum)\s*\{(.*?)\}\s*(\w+)\s*;", re.S)
        for kind, body, name in blocks.findall(text):
            if kind == "enum":
                self._enum(name, body)
            else:
                self.structs[name] = list(self._members(body))
        text = blocks.sub("", text)
        text = re.sub(r'extern\s+"C"\s*\{|typedef\s+struct\s+\w+\s+\w+\s*;', "", text)
        for result, name, taken in re.findall(r"([\w\s*]+?)(\w+)\s*\(([^()]*)\)\s*;", text):
            arguments = [] if taken.strip() == "void" else taken.split(",")
            takes = [self._type(re.sub(r"\w+\s*$", "", each)) for each in arguments]
            self.functions[name] = (self._type(result), takes)

    def _enum(self, name: str, body: str) -> None:
        self.enums.add(name)
        value = 0
        for each in body.split(","):
            constant, _, given = (part.strip() for part in each.partition("="))
            if not constant:
                continue
            value = int(given) if given else value
            self.constants.append((constant, value))
            value += 1

    def _members(self, body: str) -> Iterator[tuple[str, str]]:
        for line in body.split(";"):
            if not line.strip():
                continue
            first, *more = line.split(",")
            found = re.fullmatch(r"\s*(.*?[\s*])(\w+)\s*", first, re.S)
            if not found:
                raise Unknown(f"a member of a struct: {line.strip()}")
            yield found[2], self._type(found[1])
            for each in more:  # int32_t rank, ranks;
                yield each.strip(), self._type(found[1])

    def _type(self, text: str) -> str:
        words = re.sub(r"\bconst\b", "", text).replace("*", " * ").split()
        base, stars = words[0], words.count("*")
        if len(words) != 1 + stars:
            raise Unknown(f"a type: {text.strip()}")
        if base == "void" and stars == 0:
            return "None"
        if base == "char" and stars > 0:
            const = text.lstrip().startswith("const")
            made, stars = f"ctypes.c_{'char' if const else 'void'}_p", stars - 1
        elif base in PLAIN:
            made = f"ctypes.{PLAIN[base]}"
        elif base in self.enums:
            made = "ctypes.c_int"
        elif base in self.structs:
            made = self.class_of(base)
        elif stars > 0:  # opaque
            made, stars = "ctypes.c_void_p", stars - 1
        else:
            raise Unknown(f"a type: {text.strip()}")
        for _ in range(stars):
            made = f"ctypes.POINTER({made})"
        return made

    def class_of(self, name: str) -> str:
        return "".join(word.capitalize() for word in name.removeprefix(PREFIX).split("_"))

    def python(self) -> str:
        lines = [
            '"""Declarations in ctypes, which sdk/python/declare.py generates: do not edit.',
            "",
            *HEADERS,
            '"""',
            "",
            "from __future__ import annotations",
            "",
            "import ctypes",
            "from typing import Any",
            "",
        ]
        lines += [f"{name} = {value}" for name, value in self.constants]
        for name, members in self.structs.items():
            lines += ["", "", f"class {self.class_of(name)}(ctypes.Structure):", "    _fields_ = ["]
            lines += [f'        ("{member}", {kind}),' for member, kind in members]
            lines += ["    ]"]
        lines += ["", "", "# name: what it returns, and what it takes"]
        lines += ["FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {"]
        for name, (result, takes) in self.functions.items():
            lines += _laid_out(name, result, takes)
        lines += [
            "}",
            "",
            "",
            "def declare(library: ctypes.CDLL) -> None:",
            "    for name, (result, takes) in FUNCTIONS.items():",
            "        function = getattr(library, name)",
            "        function.restype, function.argtypes = result, takes",
            "",
        ]
        return "\n".join(lines)


def generated() -> str:
    return Header([(ROOT / header).read_text(encoding="utf-8") for header in HEADERS]).python()


def main() -> int:
    text = generated()
    if OUTPUT.exists() and OUTPUT.read_text(encoding="utf-8") == text:
        return 0
    if "--check" in sys.argv:
        print(f"{OUTPUT.relative_to(ROOT)} is not current: run sdk/python/declare.py")
        return 1
    OUTPUT.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
