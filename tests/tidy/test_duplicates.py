"""A function exists once: no two files define functions of the same body.

Bodies are compared without comments, layout and documentation strings, and only those of more than
CHARACTERS_MAX characters. Names and parameters are not compared, nor are lambdas.

C++ that only tests use is left out: a test of a module is read by itself, with its fakes, and may
include nothing of another module's tests. Python's tests share helpers in tests/, so these are
compared, too.
"""

from __future__ import annotations

import ast
import collections
from collections.abc import Iterator, Mapping

from tests import reach
from tests.tidy import sources
from tests.tidy.test_functions import functions
from tests.tidy.test_language import is_test

# Of a body without blanks. A shorter one is a call or two, which a name of its own would not make
# plainer.
CHARACTERS_MAX = 60

# (path, function) of each copy -> why it stays
EXEMPTIONS: dict[tuple[tuple[str, str], ...], str] = {
    (
        ("bench/programs/emulated_agent.cpp", "post"),
        ("src/job/agent/agent.cpp", "post"),
    ): "the bench emulates the agent, with a queue of its own",
    (
        ("src/api/events/job_events.cpp", "JobEvents"),
        ("src/job/agent/report/uplink.cpp", "stop"),
    ): "end their own thread, under their own lock",
    (
        ("src/control_plane/launch/slurm/slurm_view.cpp", "SlurmView"),
        ("src/control_plane/launch/slurm/submissions.cpp", "Submissions"),
    ): "end their own thread, under their own lock",
    (
        ("src/compute/collectives/group.cpp", "done"),
        ("src/compute/gradients/fusion/handle.cpp", "done"),
    ): "read their own state, under its lock",
    (
        ("src/compute/algorithms/image_classification/job.cpp", "run_classifier_job"),
        ("src/compute/forest/job.cpp", "run_forest_job"),
        ("src/compute/train/job.cpp", "run_job"),
    ): "contract writes no files, and no other module knows of jobs and is below all three",
    (
        ("src/compute/checkpoint/safetensors.cpp", "bytes_of"),
        ("src/compute/collectives/types.hpp", "bytes_of"),
    ): "sizes of two enums; checkpoint reads files and needs no collectives",
    (
        ("src/foundation/objects/directory/writer.hpp", "expect_checksum"),
        ("src/foundation/objects/memory.cpp", "expect_checksum"),
        ("src/foundation/objects/s3_client.cpp", "expect_checksum"),
    ): "overrides, which pass on to the ContentCheck that they share",
    (
        ("tests/frameworks/fully_sharded.py", "net"),
        ("tests/torch/programs.py", "model"),
    ): "fully_sharded.py is all that its job's container has",
    (
        ("tests/journeys/sdk/features_2.py", "_"),
        ("tests/journeys/sdk/features_3.py", "_"),
    ): "the same feature with each SDK",
}


def cpp_bodies(text: str) -> Iterator[tuple[str, str]]:
    """(name, body) of each function of a C++ source, the body as its tokens."""
    for function in functions(text):
        if len(function.body) > CHARACTERS_MAX:
            tokens = reach.program_of(".cpp", function.body)
            if sum(map(len, tokens)) > CHARACTERS_MAX:
                yield function.name, "\n".join(tokens)


def python_bodies(text: str) -> Iterator[tuple[str, str]]:
    """(name, body) of each function of a Python source, the body as ast writes it."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            statements = node.body[1:] if ast.get_docstring(node) is not None else node.body
            body = "\n".join(map(ast.unparse, statements))
            if len("".join(body.split())) > CHARACTERS_MAX:
                yield node.name, body


def duplicates(texts: Mapping[str, str]) -> list[tuple[tuple[str, str], ...]]:
    """The (path, function) of each body that is in several files."""
    places: dict[str, set[tuple[str, str]]] = collections.defaultdict(set)
    for path, text in texts.items():
        bodies = cpp_bodies if path.endswith((".hpp", ".cpp", ".h")) else python_bodies
        for name, body in bodies(text):
            places[body].add((path, name))
    return [tuple(sorted(each)) for each in places.values() if len({path for path, _ in each}) > 1]


def test_functions_exist_once() -> None:
    texts = {
        path: sources.read(path)
        for path in sources.tracked()
        if (path.endswith((".hpp", ".cpp", ".h")) and not is_test(path))
        or path.endswith(".py")
        or sources.is_python(path)
    }
    found = duplicates(texts)
    wrong = [
        "\n  ".join(f"{path}: {name}()" for path, name in copies)
        for copies in found
        if copies not in EXEMPTIONS
    ]
    wrong += [f"remove the exemption of {copies}" for copies in EXEMPTIONS if copies not in found]
    assert not wrong, (
        "keep one, in the lowest module that all may include (modules.txt):\n  "
        + "\n  ".join(wrong)
    )


CPP = """
namespace a {
std::string joined(const std::vector<std::string>& words) {
  std::string text;  // of all
  for (const auto& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}
"""
PYTHON = '''
def ip(*arguments: str, check: bool = True) -> None:
    """Runs ip."""
    subprocess.run(["ip", *arguments], check=check, capture_output=True)  # iproute2
'''


def test_planted_duplicates_are_found() -> None:
    layout = (
        CPP.replace(" text += ", "\n    text += ").replace("  // of all", "").replace("a {", "b{")
    )
    assert duplicates({"a.cpp": CPP, "b.hpp": layout.replace("joined", "list")}) == [
        (("a.cpp", "joined"), ("b.hpp", "list"))
    ]
    nested = "class A:\n" + PYTHON.replace("\n", "\n    ").replace("Runs ip.", "Runs.")
    assert duplicates({"a.py": PYTHON, "b.py": nested.replace("iproute2", "later")}) == [
        (("a.py", "ip"), ("b.py", "ip"))
    ]


def test_other_functions_are_not_reported() -> None:
    for other in (
        CPP.replace(", ", ","),  # in a string
        CPP.replace("text.empty()", "word.empty()"),
        CPP.replace("text;", "text, rest;"),
    ):
        assert not duplicates({"a.cpp": CPP, "b.cpp": other}), other
    assert not duplicates({"a.cpp": CPP + CPP})
    short = "int f() { return 1; }\n"
    assert not duplicates({"a.cpp": short, "b.cpp": short})
    assert not duplicates({"a.py": PYTHON, "b.py": PYTHON.replace("check=check, ", "")})
