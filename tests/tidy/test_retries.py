"""The last lines of ./yard test name every test that was retried, however its suite ends."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import math
import os
import pathlib
import re
import shlex
import subprocess
import sys

import pytest

from tests.suites import RETRY_NOTE, Suite
from tests.tidy import sources

loader = importlib.machinery.SourceFileLoader("run_suites", os.path.join(sources.ROOT, "tests/run"))
run_suites = importlib.util.module_from_spec(importlib.util.spec_from_loader("run_suites", loader))
loader.exec_module(run_suites)

SUMMARY = "=========================== short test summary info ============================"
FIRST_RUN = f"""F.FE                                       [100%]
FAILED tests/system/test_printed.py::test_of_another_pytest
{SUMMARY}
FAILED tests/system/test_a.py::test_once - AssertionError: 1 - 2
FAILED tests/system/test_a.py::test_names[of a - case]
FAILED tests/system/test_b.py::test_twice - assert 1 == 2
ERROR tests/system/test_b.py::test_twice - OSError
3 failed, 9 passed, 1 error in 10.84s
{RETRY_NOTE}
"""
ONE_FAILS = f"""..F                                        [100%]
{SUMMARY}
FAILED tests/system/test_b.py::test_twice - assert 1 == 2
1 failed, 2 passed in 7.20s
"""
ALL_PASS = "...                                        [100%]\n3 passed, 1 warning in 7.20s\n"
# Of ctest 3.25 with --repeat until-pass:2; lines of starts are left out.
CTEST = """
1/6 Test #1: os.Flaky.A .......................***Failed    0.01 sec
1/6 Test #2: os.Broken.B ......................***Failed    0.01 sec
    Test #1: os.Flaky.A .......................   Passed    0.00 sec
    Test #2: os.Broken.B ......................***Failed    0.01 sec
3/6 Test #3: os.Fine.C ........................   Passed    0.01 sec
4/6 Test #5: os.Crash.E .......................Subprocess aborted***Exception:   0.01 sec
    Test #5: os.Crash.E .......................   Passed    0.00 sec
5/6 Test #6: os.Gone.F ........................***Not Run   0.00 sec
6/6 Test #4: os.Slow.D ........................***Timeout   1.01 sec
    Test #4: os.Slow.D ........................***Timeout   1.00 sec

50% tests passed, 3 tests failed out of 6
"""


def suite(tmp_path: pathlib.Path, name: str, counts: str, text: str, code: int) -> Suite:
    """A suite that writes a text and ends with an exit status."""
    output = tmp_path / f"{name}.text"
    output.write_text(text)
    return Suite(name, "", f"cat {shlex.quote(str(output))}; exit {code}", counts)


def last_lines(
    suites: list[Suite],
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> list[str]:
    """Returns what a run of the suites prints from its retries on."""
    monkeypatch.setattr(run_suites, "LOGS", str(tmp_path))
    run_suites.run_all(suites, math.inf)
    lines = capsys.readouterr().out.splitlines()
    begin = max(at for at, line in enumerate(lines) if line.startswith("retried: "))
    return lines[begin:]


def test_a_run_names_the_retries_of_suites_that_pass_and_fail(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    suites = [
        suite(tmp_path, "system", "pytest", FIRST_RUN + ONE_FAILS, 1),
        suite(tmp_path, "modules", "ctest", CTEST, 8),
        suite(tmp_path, "console", "pytest", FIRST_RUN.replace("system", "console") + ALL_PASS, 0),
        suite(tmp_path, "example", "exit", "", 0),
    ]
    assert last_lines(suites, tmp_path, capsys, monkeypatch) == [
        "retried: 10",
        "    tests/system/test_a.py::test_once: passed when retried",
        "    tests/system/test_a.py::test_names[of a - case]: passed when retried",
        "    tests/system/test_b.py::test_twice: failed when retried",
        "    os.Broken.B: failed when retried",
        "    os.Crash.E: passed when retried",
        "    os.Flaky.A: passed when retried",
        "    os.Slow.D: failed when retried",
        "    tests/console/test_a.py::test_once: passed when retried",
        "    tests/console/test_a.py::test_names[of a - case]: passed when retried",
        "    tests/console/test_b.py::test_twice: passed when retried",
        "27 passed, 4 failed",
    ]


def test_a_run_without_retries_says_so(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    suites = [suite(tmp_path, "system", "pytest", ALL_PASS, 0)]
    assert last_lines(suites, tmp_path, capsys, monkeypatch) == ["retried: 0", "3 passed, 0 failed"]


def test_a_retry_that_is_ended_passed_no_test() -> None:
    system = Suite("system", "", "", "pytest")
    ended = run_suites.retried(system, FIRST_RUN + "..")
    assert len(ended) == 3 and not any(retry.passed for retry in ended)


def test_tests_that_a_retry_repeats_count_once() -> None:
    days = (
        f"{SUMMARY}\nFAILED tests/journeys/test_day.py::test_3 - assert\n1 failed, 6 passed in 9s\n"
    )
    again = "...  [100%]\n7 passed in 9s\n"
    journeys = Suite("journeys", "", "", "pytest")
    assert run_suites.read_counts(journeys, 0, f"{days}{RETRY_NOTE}\n{again}") == (7, 0)


IN_ORDER = """
import pathlib, pytest
pytestmark = pytest.mark.in_order
def test_1(): pathlib.Path("one").touch()
def test_2(): assert pathlib.Path("flag").exists()
def test_3(): assert pathlib.Path("one").exists()
"""
BY_THEMSELVES = """
import pathlib
def test_a(): pass
def test_b(): assert pathlib.Path("flag").exists()
"""


def test_a_retry_repeats_what_failed_and_files_in_order_as_a_whole(tmp_path: pathlib.Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    in_order: as in tests\n")
    (tmp_path / "test_in_order.py").write_text(IN_ORDER)
    (tmp_path / "test_by_themselves.py").write_text(BY_THEMSELVES)
    (tmp_path / "test_passing.py").write_text(IN_ORDER.replace('"flag"', '"one"'))
    first, passed = pytest_run(tmp_path)
    assert (first, len(passed)) == (1, 6), passed
    (tmp_path / "flag").touch()
    retry, passed = pytest_run(tmp_path, "--retry")
    assert (retry, passed) == (
        0,
        {
            "test_by_themselves.py::test_b",
            *(f"test_in_order.py::test_{number}" for number in (1, 2, 3)),
        },
    )
    assert len(pytest_run(tmp_path, "--retry")[1]) == 8, "nothing is known to have failed: all"


def pytest_run(directory: pathlib.Path, *arguments: str) -> tuple[int, set[str]]:
    """Returns the exit status and the tests that passed, with the options of tests/conftest.py."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "tests.conftest", *arguments],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": sources.ROOT, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, set(re.findall(r"^(\S+::\S+) PASSED", done.stdout, re.M))


def test_a_retry_of_a_suite_that_broke_names_the_suite() -> None:
    system = Suite("system", "", "", "pytest")
    broke = f"ImportError while loading conftest\n{RETRY_NOTE}\n"
    assert run_suites.retried(system, broke) == [("all of system", False)]
    assert run_suites.retried(system, broke + ALL_PASS) == [("all of system", True)]
