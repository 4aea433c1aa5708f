"""Finds the modules that a change reaches: the modules of the changed files, and those that include
them, by modules.txt.

Has pure functions of texts and paths, and some that query git.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BASELINE = "tests/thorough.txt"

# Parts of the tree outside src: the names of modules.txt that their files belong to.
SDK, TORCH_TESTS, SLURM_TESTS = "sdk", "torch_tests", "slurm_tests"
KUBERNETES_TESTS, ALGORITHM_TESTS = "kubernetes_tests", "algorithm_tests"
CLUSTER_TESTS, LAUNCHER_TESTS = "cluster_tests", "launcher_tests"
XGBOOST_TESTS, FRAMEWORK_TESTS = "xgboost_tests", "framework_tests"
UPGRADE_TESTS = "upgrade_tests"
FOLDERS = {
    "apps": "apps",
    "sim": "sim",
    "bench": "bench",
    "sdk": SDK,
    "tests/torch": TORCH_TESTS,
    "tests/large_buffers.py": TORCH_TESTS,
    "tests/frameworks": FRAMEWORK_TESTS,
    "packaging/python-torch-current-requirements.txt": FRAMEWORK_TESTS,
    "packaging/tensorflow-requirements.txt": FRAMEWORK_TESTS,
    "packaging/transformers-requirements.txt": FRAMEWORK_TESTS,
    # before their folder
    "tests/algorithms/test_xgboost.py": XGBOOST_TESTS,
    "tests/algorithms/stock_xgboost.py": XGBOOST_TESTS,
    "tests/algorithms/data_sets.py": XGBOOST_TESTS,
    "tests/algorithms": ALGORITHM_TESTS,
    "packaging/xgboost-requirements.txt": XGBOOST_TESTS,
    "packaging/xgboost-debian-packages.txt": XGBOOST_TESTS,
    "tests/upgrade": UPGRADE_TESTS,
    "packaging/releases.txt": UPGRADE_TESTS,
    "tests/cluster": CLUSTER_TESTS,
    "packaging/cluster-debian-packages.txt": CLUSTER_TESTS,
    "tests/launchers": LAUNCHER_TESTS,
    "tests/slurm": SLURM_TESTS,
    "tests/kubernetes": KUBERNETES_TESTS,
    "tests/kubelets": KUBERNETES_TESTS,
    "tests/kwok": KUBERNETES_TESTS,
    "packaging/kubelets-debian-packages.txt": KUBERNETES_TESTS,
    "packaging/kubernetes": KUBERNETES_TESTS,
    "packaging/image": KUBERNETES_TESTS,
    "packaging/slurm-debian-packages.txt": SLURM_TESTS,
    "packaging/python-torch-requirements.txt": TORCH_TESTS,
    "packaging/sklearn-requirements.txt": ALGORITHM_TESTS,
}
# The files that determine how everything is compiled.
BUILD_FILES = (
    r"CMakeLists\.txt|CMakePresets\.json|src/CMakeLists\.txt|cmake/(?!compiled_alone\.txt).*"
)
# Lists with a line for a module or one of its files: the lines that differ say which.
LISTS = ("modules.txt", "cmake/compiled_alone.txt")
# Holds a list of modules that are compiled with -O1: those that enter or leave it are reached. Any
# other change of the file reaches all modules.
MODULE_BUILD = "cmake/module.cmake"
COLD_MODULES = re.compile(r"^set\(cold_modules\s([^)]*)\)", re.M)


def uses_of(modules_text: str) -> dict[str, set[str]]:
    """Parses modules.txt: module -> the modules that it includes."""
    found = re.findall(r"^(?:[a-z0-9_]+/)?([a-z0-9_]+):([^|]*)\|", modules_text, re.M)
    return {name: set(used.split()) for name, used in found}


def module_of(path: str) -> str | None:
    """src/control_plane/schedule/plan.cpp -> schedule; a fuzzer's corpus -> "corpus NAME";
    None for what is in no module."""
    parts = path.split("/")
    if parts[:2] == ["tests", "corpus"] and len(parts) > 3:
        return f"corpus {parts[2]}"
    if parts[0] == "src" and len(parts) > 3:
        return parts[2]
    return next(
        (
            module
            for folder, module in FOLDERS.items()
            if path == folder or path.startswith(folder + "/")
        ),
        None,
    )


def modules_of_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yields the modules that these lines of the files LISTS name."""
    for line in lines:
        if found := re.match(r"(?:[a-z0-9_]+/)?([a-z0-9_]+):[^|]*\|", line):
            yield found[1]
        elif module := module_of(line.strip()):
            yield module


def modules_of_build(before: str, after: str) -> set[str] | None:
    """Returns the modules affected by a change of the file MODULE_BUILD; None: maybe all."""
    if COLD_MODULES.sub("", before) != COLD_MODULES.sub("", after):
        return None
    lists = [COLD_MODULES.search(text) for text in (before, after)]
    cold = [set(found[1].split()) if found else set() for found in lists]
    return cold[0] ^ cold[1]


def reached(changed: Iterable[str], uses: Mapping[str, set[str]]) -> set[str]:
    """Returns the changed modules and all that include them, directly or indirectly."""
    found = set(changed)
    while more := {name for name, used in uses.items() if name not in found and used & found}:
        found |= more
    return found


def git(*arguments: str) -> str | None:
    """Runs git; returns its standard output, or None when it fails."""
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout if done.returncode == 0 else None


def read(path: str) -> str:
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


# String literals are kept; comments and line breaks are not part of the program.
CPP_PARTS = re.compile(
    r'R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])*\''
    r"|(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<space>\s+)|[A-Za-z_0-9]+|.",
    re.S,
)


def program_of(path: str, text: str) -> list[str] | str:
    """Returns the tokens of a C++ source, without comments, or the text of another file."""
    if not path.endswith((".cpp", ".hpp", ".h")):
        return text
    return [
        part[0] for part in CPP_PARTS.finditer(text) if not part["comment"] and not part["space"]
    ]


def is_same_program(path: str, baseline: str) -> bool:
    """Returns True if a file differs from the commit's only in comments and layout, or is a
    document."""
    if path.endswith(".md"):
        return True
    before = git("show", f"{baseline}:{path}")
    if before is None or not os.path.exists(os.path.join(ROOT, path)):
        return False
    return program_of(path, before) == program_of(path, read(path))


def reached_since(baseline: str) -> set[str] | None:
    """Returns the modules that differ from the commit, and those that include them; None: possibly
    all, or the commit is unknown to git."""
    names = (
        git("diff", "--name-only", baseline, "--")
        if re.fullmatch(r"[0-9a-f]{40}", baseline)
        else None
    )
    if names is None:
        return None
    changed = set()
    for path in names.splitlines():
        if path == MODULE_BUILD:
            built = modules_of_build(git("show", f"{baseline}:{path}") or "", read(path))
            if built is None:
                return None
            changed |= built
        elif re.fullmatch(BUILD_FILES, path):
            return None
        elif path in LISTS:
            before = set((git("show", f"{baseline}:{path}") or "").splitlines())
            after = set(read(path).splitlines())
            changed |= set(modules_of_lines(before ^ after))
        elif (module := module_of(path)) and not is_same_program(path, baseline):
            changed.add(module)
    return reached(changed, uses_of(read("modules.txt")))


def baselines() -> dict[str, str]:
    """suite -> the commit of the last tree on which it passed, of those that only
    `./yard test --thorough` runs."""
    found = {}
    for line in read(BASELINE).splitlines():
        if line and not line.startswith("#"):
            commit, *names = line.split()
            found.update(dict.fromkeys(names, commit))
    return found


def fuzzers() -> list[tuple[str, str]]:
    """Returns (name, module) of each fuzzer."""
    paths = (
        git("ls-files", "--cached", "--others", "--exclude-standard", "src") or ""
    ).splitlines()
    return sorted(
        (os.path.basename(path).removesuffix(".cpp"), path.split("/")[2])
        for path in paths
        if path.endswith("_fuzz.cpp")
    )


def folder_of(module: str) -> str:
    """Returns the folder of a module below src, by modules.txt: containers ->
    machine/containers."""
    found = re.search(rf"^([a-z0-9_]+/{module}):", read("modules.txt"), re.M)
    assert found, f"unknown module {module}"
    return found[1]


def tested() -> list[str]:
    """Returns the modules below src that have unit tests."""
    paths = (
        git("ls-files", "--cached", "--others", "--exclude-standard", "src") or ""
    ).splitlines()
    return sorted({path.split("/")[2] for path in paths if path.endswith("_test.cpp")})
