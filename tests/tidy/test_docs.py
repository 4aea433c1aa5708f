"""Checks the documents: links resolve, commands exist, every dependency is explained."""

import glob
import os
import re

from bench import readme_figures
from tests.tidy import sources


def test_links_resolve() -> None:
    wrong = []
    for path in sources.documents():
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)", sources.read(path)):
            if "://" in target:
                continue
            if not os.path.exists(os.path.join(sources.ROOT, os.path.dirname(path), target)):
                wrong.append(f"{path}: {target}")
    assert not wrong, "links that do not resolve:\n" + "\n".join(wrong)


def test_the_readme_has_the_figures_of_the_bench() -> None:
    found = readme_figures.TABLE.search(sources.read("README.md"))
    assert found, "README.md has no table of figures"
    assert found[0] == readme_figures.table(), "write it by: python -m bench.readme_figures"


def test_commands_of_the_script_are_documented() -> None:
    known = set(re.findall(r"^  ([a-z]+)\)", sources.read("yard"), re.M))
    for path in sources.documents():
        for command in re.findall(r"\./yard ([a-z]+)", sources.read(path)):
            assert command in known, f"{path} names the unknown command ./yard {command}"


def test_named_paths_exist() -> None:
    """Paths in backticks in ARCHITECTURE, HACKING and the module READMEs exist."""
    wrong = []
    for path in sources.documents():
        for name in re.findall(
            r"`((?:src|tests|docs|sim|bench|examples|packaging|cmake|apps)/[\w./-]+)`",
            sources.read(path),
        ):
            if not os.path.exists(os.path.join(sources.ROOT, name)):
                wrong.append(f"{path}: {name}")
    assert not wrong, "paths not found:\n" + "\n".join(wrong)


# {"server", "log_files", kWhole, ..: the config's tests check that these are all keys.
CONFIG_KEY = re.compile(r'^    \{"(?:[^"\\]|\\.)*", "(\w+)", k\w+', re.M)


def test_every_key_of_the_config_is_documented() -> None:
    keys = set(CONFIG_KEY.findall(sources.read("src/control_plane/config/refusals_test.cpp")))
    assert {"account_id", "log_files", "node_selector"} <= keys
    pages = "\n".join(
        sources.read(path) for path in sources.documents() if path.startswith("docs/operating/")
    )
    missing = sorted(key for key in keys if not re.search(rf"\b{key}\b", pages))
    assert not missing, f"docs/operating does not describe {missing}"


def test_every_format_is_listed() -> None:
    pages = {path for path in sources.documents() if path.startswith("docs/formats/")} - {
        "docs/formats/README.md"
    }
    listed = set(re.findall(r"\]\(([\w.-]+\.md)\)", sources.read("docs/formats/README.md")))
    missing = {os.path.basename(page) for page in pages} - listed
    assert not missing, f"docs/formats/README.md does not list {sorted(missing)}"


def test_every_python_package_is_pinned() -> None:
    for line in sources.read("packaging/python-requirements.txt").splitlines():
        assert not line or line.startswith("#") or "==" in line, f"not pinned: {line}"


def test_the_wire_page_has_the_golden_bytes() -> None:
    """The bytes of each message in wire_test.cpp stand in docs/formats/wire.md as well."""
    table = sources.read("src/foundation/wire/wire_test.cpp").split("kGoldenMessages{", 1)[1]
    entries = re.split(r"\n    \{(?=[A-Z])", table.split("\n};", 1)[0])[1:]
    assert entries, "kGoldenMessages of wire_test.cpp cannot be read"
    page = re.findall(
        r"((?:(?:^|\s)[0-9a-f]{2,})+)\s*$", sources.read("docs/formats/wire.md"), re.M
    )
    shown = re.sub(r"\s", "", "".join(page))
    missing = [
        entry.split("{")[0]
        for entry in entries
        if "".join(re.findall(r'"([0-9a-f]+)"(?=[,}\s]*(?:\n|$))', entry)) not in shown
    ]
    assert not missing, f"docs/formats/wire.md lacks the golden bytes of {missing}"


# -- CONTRIBUTING.md: each name in a step exists

CHECKLISTS = "CONTRIBUTING.md"


def named() -> list[str]:
    """The texts in backticks."""
    return re.findall(r"`([^`]+)`", sources.read(CHECKLISTS))


def test_paths_of_the_checklists_exist() -> None:
    modules = re.findall(r"^([a-z_]+/[a-z0-9_]+):", sources.read("modules.txt"), re.M)
    wrong = []
    for name in named():
        if not re.fullmatch(r"[\w./*<>-]+", name) or not re.search(r"/|\.\w{2,4}$", name):
            continue
        if name in modules:
            continue
        path = name.removeprefix("./")
        if path.startswith(("/", "build/")):  # of a server, or built
            continue
        # A placeholder stands for what the change adds: the folder above it exists.
        path = path[: path.index("<")].rpartition("/")[0] if "<" in path else path
        if not glob.glob(os.path.join(sources.ROOT, path)):
            wrong.append(name)
    assert not wrong, f"{CHECKLISTS} names paths that do not exist: {wrong}"


def test_commands_of_the_checklists_exist() -> None:
    suites = set(re.findall(r'Suite\(\s*f?"([a-z-]+)"', sources.read("tests/suites.py")))
    modules = sources.modules()
    wrong = []
    for name in named():
        if found := re.search(r"ninja -C build/release ([\w<> -]+)", name):
            for target in found[1].split():
                module = target.removesuffix("_test")
                fuzzer = f"tests/corpus/{target}"
                if not (
                    "<" in target
                    or module in modules
                    or os.path.isdir(os.path.join(sources.ROOT, fuzzer))
                    or target.startswith("trainyard")
                ):
                    wrong.append(f"{name}: unknown target {target}")
        if found := re.match(r"\./yard test ([a-z]+)", name):
            if found[1] not in suites:
                wrong.append(f"{name}: unknown suite")
        if found := re.match(r"\./yard test (--[a-z-]+)", name):
            if f'"{found[1]}"' not in sources.read("tests/run") + sources.read("tests/suites.py"):
                wrong.append(f"{name}: unknown option")
        if found := re.match(r"\./yard bench ([a-z_]+)", name):
            if not os.path.exists(os.path.join(sources.ROOT, f"bench/benches/{found[1]}.py")):
                wrong.append(f"{name}: unknown bench")
    assert not wrong, f"{CHECKLISTS}: " + "; ".join(wrong)


def test_names_of_the_checklists_exist() -> None:
    """A function, type or constant that a step names occurs in the sources."""
    text = "\n".join(
        sources.read(path)
        for path in sources.tracked()
        if path.endswith((".hpp", ".cpp", ".py", ".txt", ".cmake"))
    )
    words = set(re.findall(r"\w+", text))
    wrong = [
        name
        for name in named()
        if re.fullmatch(r"[A-Za-z_]\w*(?:::\w+)*(?:\(\))?", name)
        and not set(name.removesuffix("()").split("::")) <= words
    ]
    assert not wrong, f"{CHECKLISTS} names unknown identifiers: {wrong}"
