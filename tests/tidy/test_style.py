"""Rules for every file: layout, no leftovers, headers with doc comments, a limit of length."""

import os
import re
import subprocess

from tests.tidy import sources

FILE_LINES_MAX = 600  # ratchet.txt names the files that are longer: they may shrink, never grow
LEFTOVERS = r"\b(TODO|FIXME|XXX|HACK)\b"


def test_layout() -> None:
    wrong = subprocess.run(
        ["clang-format-14", "--dry-run", "--Werror", *sources.cpp(".h", ".hpp", ".cpp")],
        cwd=sources.ROOT,
        capture_output=True,
        text=True,
    )
    files = sorted({line.split(":")[0] for line in wrong.stderr.splitlines() if "error:" in line})
    assert not files, "run ./yard format; not laid out: " + ", ".join(files)


def test_no_leftovers() -> None:
    wrong = [
        f"{path}:{number}: {line.strip()}"
        for path in sources.cpp()
        + [p for p in sources.tracked() if p.endswith((".py", ".cmake", ".sh"))]
        if not path.startswith("tests/tidy/")
        for number, line in enumerate(sources.read(path).splitlines(), 1)
        if re.search(LEFTOVERS, line)
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def test_abilities_are_part_of_an_interface() -> None:
    """A caller that looks for the class behind an interface depends on what the interface hides."""
    wrong = [
        f"{path}:{number}: dynamic_cast: add a virtual function with a default to the interface"
        for path in sources.cpp()
        for number, line in enumerate(sources.code(path).splitlines(), 1)
        if re.search(r"\b(dynamic_cast|dynamic_pointer_cast)\b", line)
    ]
    assert not wrong, "\n" + "\n".join(wrong)


# Views, and algorithms that return one.
VIEWS = (
    r"\b(?:views::|ranges::(?:unique|remove|remove_if|rotate|partition|subrange|search|view\w*)\b)"
)


def test_no_views() -> None:
    """clang 14, which the sanitizers are built with, cannot compile those of g++ 12's library."""
    wrong = [
        f"{path}:{number}: {line.strip()}"
        for path in sources.cpp()
        for number, line in enumerate(sources.code(path).splitlines(), 1)
        if re.search(VIEWS, line)
    ]
    assert not wrong, "\n" + "\n".join(wrong)


TEST_NAME = re.compile(r"^(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", re.M)


def test_tests_are_named_in_pascal_case() -> None:
    assert TEST_NAME.findall("TEST(Group, a_rank)\nTEST_P(\n    Other, ARank)") == [
        ("Group", "a_rank"),
        ("Other", "ARank"),
    ]
    wrong = [
        f"{path}: TEST({suite}, {name})"
        for path in sources.cpp()
        for suite, name in TEST_NAME.findall(sources.code(path))
        if not re.match(r"[A-Z][A-Za-z0-9]*$", suite) or not re.match(r"[A-Z][A-Za-z0-9]*$", name)
    ]
    assert not wrong, "\n" + "\n".join(wrong)


PYTHON_TEST = re.compile(r"^ *(?:async )?def test_(\w+)\(", re.M)
# A name states subject and behaviour: RejectsMalformedDocuments, test_preempted_jobs_run_again.
OPENINGS = re.compile(
    r"(?:What|Who|Whose|Which|Ones?)(?![a-z])|(?:what|who|whose|which|ones?)(?:_|$)"
)


def test_names_of_tests_open_with_a_subject_or_a_verb() -> None:
    assert PYTHON_TEST.findall("def test_a() -> None:\n    def test_b(") == ["a", "b"]
    for name in ("WhatIsMissing", "OnesOfAUser", "One", "what_is_missing", "who"):
        assert OPENINGS.match(name), name
    for name in ("WholeNumbers", "OneshotPrograms", "whole_numbers", "ReadsWhatIsThere"):
        assert not OPENINGS.match(name), name
    names = [
        (path, name) for path in sources.cpp() for _, name in TEST_NAME.findall(sources.code(path))
    ] + [
        (path, name)
        for path in sources.tracked()
        if path.endswith(".py")
        for name in PYTHON_TEST.findall(sources.read(path))
    ]
    wrong = [f"{path}: {name}" for path, name in names if OPENINGS.match(name)]
    assert not wrong, "state subject and behaviour in the names:\n" + "\n".join(wrong)


# A variable at namespace scope (which is not indented), or a static one of a class or function.
CONSTANT = re.compile(
    r"(?:(?:inline |static |extern )*(?:constexpr|const) |\s+static (?:inline )?constexpr )"
    r"(?![^=({;]*\* ?\w+\s*[={;])"  # a variable may point to constant objects
    r"[^=({;]*?(\w+)\s*(?:\[[^\]]*\])?\s*(?:=(?!=)|\{|;|=?$)"
)


def lower_case_constants(code: str) -> list[tuple[int, str]]:
    """The constants with static storage that are not named kLikeThis, with their lines."""
    return [
        (number, found[1])
        for number, line in enumerate(code.splitlines(), 1)
        if (found := CONSTANT.match(line)) and not re.match(r"k[A-Z]", found[1])
    ]


def test_constants_have_a_prefix() -> None:
    """Function-local constants that are not static are like variables, in lower case."""
    assert lower_case_constants(
        "inline constexpr size_t block_bytes = 64;\nconstexpr Table<Kind> kinds{{\n"
        "const std::vector<int> list{1};\n  static constexpr int ranks_max = 4;\n"
        "constexpr Duration pause =\nconst char* const text = 0;\n"
    ) == [
        (i, name) for i, name in enumerate("block_bytes kinds list ranks_max pause text".split(), 1)
    ]
    assert not lower_case_constants(
        "constexpr size_t kBlockBytes = 64;\nconst Shape& shape_of(int rank) {\n"
        "constexpr int twice(int x) { return 2 * x; }\n  constexpr int ranks = 4;\n"
        "const char* name_of(Kind kind) {\nconst char* program = 0;\n"
        "constexpr Tag Group::of(int a) const {\n"
    )
    wrong = [
        f"{path}:{number}: {name}: constants are named kLikeThis"
        for path in sources.cpp()
        for number, name in lower_case_constants(sources.code(path))
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def test_headers_have_doc_comments() -> None:
    """A header of a module begins with its description, and includes itself only once."""
    wrong = [
        path
        for path in sources.cpp(".hpp")
        if path.startswith("src/")
        and not (sources.read(path).startswith("//") and "#pragma once" in sources.read(path))
    ]
    assert not wrong, f"headers without a first comment or #pragma once: {wrong}"


def test_every_fuzzer_has_a_corpus_and_names_its_decoder() -> None:
    for path in sources.cpp("_fuzz.cpp"):
        name = os.path.basename(path)[: -len(".cpp")]
        assert re.search(r"^// decoder: ", sources.read(path), re.M), (
            f"{path} has no line '// decoder: FILE'"
        )
        assert any(other.startswith(f"tests/corpus/{name}/") for other in sources.tracked()), (
            f"tests/corpus/{name}/ is empty"
        )


def test_files_stay_small() -> None:
    allowed = dict(
        line.rsplit(" ", 1)
        for line in sources.read("tests/tidy/ratchet.txt").splitlines()
        if line and not line.startswith("#")
    )
    wrong = []
    for path in sources.cpp() + [p for p in sources.tracked() if p.endswith(".py")]:
        lines, limit = len(sources.read(path).splitlines()), int(allowed.get(path, FILE_LINES_MAX))
        if lines > limit:
            wrong.append(
                f"{path} has {lines} lines, {limit} are allowed: a file is one idea; split it"
            )
        elif path in allowed and lines < limit:
            wrong.append(f"{path} shrank to {lines} lines: write that into tests/tidy/ratchet.txt")
    wrong += [
        f"tests/tidy/ratchet.txt names {path}, which does not exist"
        for path in allowed
        if path not in sources.tracked()
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def test_tracked_files_are_text() -> None:
    """Bytes belong to the fuzzers' corpora; anything else that is not text was left there by a
    program."""
    wrong = [
        path
        for path in sources.tracked()
        if not path.startswith("tests/corpus/")
        and not path.endswith(".png")
        and b"\0" in open(os.path.join(sources.ROOT, path), "rb").read()
    ]
    assert not wrong, f"not text: {wrong}"


def test_log_lines_name_their_module() -> None:
    """Operators search the log for a module. Programs log as their file or command."""
    line = re.compile(r'\blog\(\s*Level::\w+,\s*"([a-z_]+)"')
    programs = {"serve", "config"}
    wrong = [
        f"{path}: log lines of {name}"
        for path in sources.cpp(".cpp", ".hpp")
        if path.startswith(("src/", "apps/")) and path != "src/foundation/base/log.hpp"
        for name in line.findall(sources.read(path))
        if name not in re.split(r"[/.]", path)
        and not (path.startswith("apps/") and name in programs)
    ]
    assert not wrong, "\n" + "\n".join(wrong)
