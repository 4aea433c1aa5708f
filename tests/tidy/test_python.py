"""The Python of the repository: laid out and checked by ruff, with types that mypy agrees with, and
distributions that belong together."""

import os
import re
import subprocess
import tomllib

import pytest

from tests.tidy import sources

VENV = os.path.join(sources.ROOT, "build", "venv", "bin")
# Checked together: packages, whose modules have one name each.
PACKAGES = ["sdk/python", "bench", "tests"]
DISTRIBUTIONS = ["", "trainyard-horovod", "trainyard-smddp"]


def run(*command: str) -> str:
    """Runs a checker, and returns its output if it found errors, else ""."""
    path = os.path.join(VENV, command[0])
    assert os.path.exists(path), f"{path} is missing: run ./yard setup"
    done = subprocess.run(
        [path, *command[1:]], cwd=sources.ROOT, capture_output=True, text=True, check=False
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def scripts() -> list[str]:
    """Python that is in no package: programs of examples, generators, suites."""
    return [
        path
        for path in sources.python()
        if not path.startswith(tuple(folder + "/" for folder in PACKAGES))
    ] + ["tests/fuzz_coverage", "tests/run"]


def test_layout() -> None:
    assert not (printed := run("ruff", "format", "--check")), f"run ./yard format\n{printed}"


def test_faults() -> None:
    assert not (printed := run("ruff", "check", "--output-format=concise")), f"\n{printed}"


def test_types_of_packages() -> None:
    assert not (printed := run("mypy", *PACKAGES)), f"\n{printed}"


@pytest.mark.parametrize("path", scripts())
def test_types_of_scripts(path: str) -> None:
    assert not (printed := run("mypy", path)), f"\n{printed}"


def test_scripts_without_a_suffix_are_known_to_ruff() -> None:
    with open(os.path.join(sources.ROOT, "ruff.toml"), "rb") as file:
        named = tomllib.load(file)["extend-include"]
    assert sorted(named) == sorted(path for path in scripts() if not path.endswith(".py"))


def test_distributions_have_one_version_and_depend_on_it() -> None:
    projects = {}
    for folder in DISTRIBUTIONS:
        path = os.path.join(sources.ROOT, "sdk", "python", folder, "pyproject.toml")
        with open(path, "rb") as file:
            project = tomllib.load(file)["project"]
        projects[project["name"]] = project
    for name, project in projects.items():
        for field in ("description", "authors", "license", "readme", "keywords", "urls"):
            assert project.get(field), f"{name} has no {field}"
        assert {"Typing :: Typed", "Programming Language :: Python :: 3"} <= set(
            project["classifiers"]
        )
        versions = re.findall(r"Python :: 3\.(\d+)", "\n".join(project["classifiers"]))
        least = re.fullmatch(r">=3\.(\d+)", project["requires-python"])
        assert least and versions[0] == least[1], f"{name}: requires-python and the classifiers"
        assert not any(each.startswith("License ::") for each in project["classifiers"]), (
            "`license` is an SPDX expression, next to which PEP 639 allows no such classifier"
        )
    version = projects["trainyard"]["version"]
    assert {project["version"] for project in projects.values()} == {version}
    for name in ("trainyard-horovod", "trainyard-smddp"):
        assert projects[name]["dependencies"] == [f"trainyard=={version}"]
    assert f'__version__ = "{version}"' in sources.read("sdk/python/trainyard/__init__.py")
    horovod = sources.read("sdk/python/trainyard-horovod/horovod/__init__.py")
    assert f"+trainyard.{version}" in horovod
