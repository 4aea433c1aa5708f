"""Names of C++: types in CamelCase, functions and variables in lower_case, private members with a
trailing underscore. (test_style.py has the rule of constants.)

Reads the sources as text: it takes seconds, and applies to tests and benches too. clang-tidy, which
has such a check, reads neither, and an added check would make it read all other sources again."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.tidy import sources
from tests.tidy.test_functions import functions

# The definition of a type, whose bases may follow on the next line.
TYPE = re.compile(
    r"^ *(?:class|struct|union|enum(?: class)?) "
    r"(?:(?:alignas|[A-Z_]+)(?:\([^)]*\))? |\[\[\w+\]\] )*"
    r"(\w+)(?: final)?(?:\s+: [^;{}]*)? \{",
    re.M,
)
# Any mention of a type, by which constructors are known.
MENTION = re.compile(r"\b(?:class|struct) (?:[A-Z_]+(?:\([^)]*\))? )?(?:\w+::)*(\w+)")
CAMEL_CASE = re.compile(r"[A-Z][A-Za-z0-9]*")
LOWER_CASE = re.compile(r"[a-z][a-z0-9_]*")
MACRO = re.compile(r"[A-Z][A-Z0-9_]*")  # of tests: TEST(..) {
# Functions that we define and that others named.
OVERRIDDEN = {
    "LLVMFuzzerTestOneInput": "of libFuzzer",
    "PrintTo": "of googletest",
    "SetUp": "of googletest",
    "TearDown": "of googletest",
    "__attribute__": "not a name: stands before one",
    "operator": "not a name",
}
# Not behind an object or a namespace, which may be those of a library.
MIXED_CASE = re.compile(r"(?<![\w.>:])(?!k[A-Z])[a-z][a-z0-9_]*[A-Z]\w*")
OF_LIBRARIES = {
    r"nccl[A-Z]\w+|cuStreamQuery": "of NCCL and CUDA",
    r"(?:de|in)flate(?:Bound|End|Init2|Reset)|u(?:Int|Long)": "of zlib",
    r"sk_GENERAL_NAME_\w+|a2i_IPADDRESS|i2d_X509": "of OpenSSL",
    r"bit_F16C": "of the compiler",
    r"trainyard_\w+": "of our own libraries for C",
}
# The classes of torch, of which all functions of these derive.
OF_TORCH = "sdk/python/c10d/"

CLASS = re.compile(r"^( *)(class|struct) [^;]*\{$")
MEMBER = re.compile(
    r"(?:mutable |const )*[\w:]+(?:<.*>)?(?: const)?[ *&]+(\w+)(?: (?:PT_)?GUARDED_BY\([^)]*\))?"
    r"(?: = .*|\{.*\}|\[\w*\])?;"
)
NO_MEMBER = re.compile(r"(?:using|friend|static|struct|class|enum|typedef|return) ")


def private_members(code: str) -> Iterator[tuple[int, str]]:
    """(line, name) of the private variables of a formatted source, one declared on a line."""
    open_classes: list[tuple[str, str]] = []  # (indentation, access)
    for number, line in enumerate(code.splitlines(), 1):
        line = line.rstrip()
        indentation, text = line[: len(line) - len(line.lstrip())], line.lstrip()
        if found := CLASS.match(line):
            open_classes.append((found[1], "private" if found[2] == "class" else "public"))
        elif not open_classes:
            continue
        elif text.startswith("}") and len(indentation) <= len(open_classes[-1][0]):
            open_classes.pop()
        elif text in ("public:", "protected:", "private:"):
            open_classes[-1] = open_classes[-1][0], text.removesuffix(":")
        elif open_classes[-1] == (indentation.removesuffix("  "), "private"):
            if (member := MEMBER.fullmatch(text)) and not NO_MEMBER.match(text):
                yield number, member[1]


def faults_in(text: str, code: str, types: set[str]) -> Iterator[str]:
    """The names of one source that differ from the convention. `types`: those of all sources."""
    for name in TYPE.findall(code):
        if not CAMEL_CASE.fullmatch(name) and not of_library(name):
            yield f"type {name}: use CamelCase"
    for name in (function.name for function in functions(text)):
        if not (LOWER_CASE.fullmatch(name) or MACRO.fullmatch(name)):
            if name not in OVERRIDDEN and name not in types and not of_library(name):
                yield f"function {name}: use lower_case"
    for name in sorted(set(MIXED_CASE.findall(code))):
        if not of_library(name):
            yield f"{name}: use lower_case"
    for line, name in private_members(code):
        if not name.endswith("_") and name not in ("default", "delete"):
            yield f"line {line}: private member {name}: append an underscore"


def of_library(name: str) -> bool:
    return any(re.fullmatch(pattern, name) for pattern in OF_LIBRARIES)


def test_names_follow_the_convention() -> None:
    paths = [path for path in sources.cpp() if not path.startswith(OF_TORCH)]
    types = {name for path in paths for name in MENTION.findall(sources.code(path))}
    wrong = [
        f"{path}: {fault}"
        for path in paths
        for fault in faults_in(sources.read(path), sources.code(path), types)
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def test_exceptions_are_needed() -> None:
    code = "\n".join(sources.code(path) for path in sources.cpp())
    unused = [pattern for pattern in OF_LIBRARIES if not re.search(rf"\b(?:{pattern})\b", code)]
    unused += [name for name in OVERRIDDEN if not re.search(rf"\b{name}\b", code)]
    assert not unused, f"remove: {unused}"


def test_names_of_other_dialects_are_found() -> None:
    text = """
struct file_state {
  int size;
};
class Reader final : public Base {
 public:
  Reader();
  int plain = 0;
  int readAll() {
    return size;
  }

 private:
  static constexpr int kMax = 3;
  struct Part {
    int rank = 0;
  };
  std::vector<int> rows GUARDED_BY(mutex_);
  std::map<int, std::string> named_{};
  Result<int> read() const;
  const int* at = nullptr;
};
int Twice(int x) {
  const int rowCount = x;
  return rowCount * kMax;
}
Reader::Reader() {
  inflateEnd(nullptr);
}
"""
    assert list(faults_in(text, text, {"Reader", "Part"})) == [
        "type file_state: use CamelCase",
        "function readAll: use lower_case",
        "function Twice: use lower_case",
        "readAll: use lower_case",
        "rowCount: use lower_case",
        "line 18: private member rows: append an underscore",
        "line 21: private member at: append an underscore",
    ]
