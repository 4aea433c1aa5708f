"""The commit-msg hook accepts the form of subject that the project uses and refuses others, and the
commits since the hook have that form. The pre-commit hook refuses sources with another layout."""

import importlib.machinery
import importlib.util
import os
import pathlib
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from tests import reach
from tests.tidy import sources

PATH = os.path.join(sources.ROOT, "packaging", "git-hooks", "commit-msg")
loader = importlib.machinery.SourceFileLoader("commit_msg", PATH)
hook = importlib.util.module_from_spec(importlib.util.spec_from_loader("commit_msg", loader))
loader.exec_module(hook)

EXCEPTIONS = {
    "5614242807fd464d49d19ff510ffb0a9e91dceca": "a merge, named before its form was settled",
    "d909457882ce62a2f823af99f81b5432ae906b10": "an unfinished step, pushed as it was",
}
# The last commit before the hook refused the banned words of today.
WORDS_SINCE = "41d6245ebabd67e0e610afb133c0011fd37217f4"


@pytest.mark.parametrize(
    "message",
    [
        "schedule: reserve the earliest start for the queue head",
        "local_sgd: address peers by name\n\nBefore: ..\n\n# a comment of git's",
        "api, cli: process long lists page by page",
        "Merge branch 'main'",
        'Revert "schedule: reserve"',
    ],
)
def test_accepts(message: str) -> None:
    assert hook.complaint(message) is None


@pytest.mark.parametrize(
    "message, reason",
    [
        ("reserve the earliest start", "invalid subject"),
        ("Schedule: reserve the start", "invalid subject"),
        ("", "invalid subject"),
        ("schedule: reserves the earliest start", "imperative"),
        ("schedule: reserved the start", "imperative"),
        ("schedule: the head has a reservation", "imperative"),
        ("schedule: what waits gets a start", "imperative"),
        ("schedule: reserve the start.", "period"),
        ("schedule: " + "reserve " * 10, "characters"),
        ("schedule: reserve the start\nand more", "line 2"),
    ],
)
def test_refuses(message: str, reason: str) -> None:
    assert reason in hook.complaint(message.rstrip(" "))


def test_refuses_banned_words() -> None:
    assert hook.complaint_of_words("yard: reserve the earliest start\n\nmend") is None
    assert hook.complaint_of_words("# git's\nMerge branch 'mend'") is None
    assert "'mend'" in hook.complaint_of_words("schedule: mend the reservation")


def commits(after: str) -> Iterator[tuple[str, str]]:
    """(id, message) of the commits of HEAD that `after` does not have."""
    for entry in (reach.git("log", "-z", "--format=%H%n%B", f"{after}..HEAD") or "").split("\0"):
        if entry:
            name, _, message = entry.partition("\n")
            yield name, message


def test_commits_since_the_hook_pass_it() -> None:
    """A shallow clone begins with a commit that seems to add all files: those after it are read."""
    added = reach.git(
        "log", "--diff-filter=A", "--format=%H", "--", os.path.relpath(PATH, sources.ROOT)
    )
    assert added, "git does not know the commit that added the hook"
    wrong = {
        name: output
        for name, message in commits(added.split()[-1])
        if (output := hook.complaint(message))
    }
    unexpected = [
        f"{name[:12]}: {output}" for name, output in wrong.items() if name not in EXCEPTIONS
    ]
    assert not unexpected, "\n".join(unexpected)


def test_exceptions_are_needed() -> None:
    for name, reason in EXCEPTIONS.items():
        message = reach.git("log", "-1", "--format=%B", name)  # None in a shallow clone
        assert reason and (message is None or hook.complaint(message)), name


def test_commits_have_no_banned_words() -> None:
    if reach.git("cat-file", "-e", WORDS_SINCE) is None:
        return  # a shallow clone
    wrong = [
        f"{name[:12]}: {output}"
        for name, message in commits(WORDS_SINCE)
        if (output := hook.complaint_of_words(message))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "name, formatted, unformatted",
    [
        ("a.cpp", "int f() { return 1; }\n", "int f( ) {return 1;}\n"),
        ("a.py", "x = [1, 2]\n", "x=[1,2]\n"),
    ],
)
def test_refuses_sources_with_another_layout(
    tmp_path: pathlib.Path, name: str, formatted: str, unformatted: str
) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}

    def run(*command: str) -> int:
        return subprocess.run(
            command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL
        ).returncode

    run("git", "init", "-q", ".")
    for path in (".clang-format", "ruff.toml"):
        shutil.copy(os.path.join(sources.ROOT, path), tmp_path)
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "venv").symlink_to(os.path.join(sources.ROOT, "build", "venv"))
    hook_path = os.path.join(os.path.dirname(PATH), "pre-commit")
    for text, refused in ((formatted, 0), (unformatted, 1)):
        (tmp_path / name).write_text(text)
        run("git", "add", name)
        assert run(hook_path) == refused
