"""The commit-msg hook accepts the form of subject that the project uses and refuses others."""

import importlib.machinery
import importlib.util
import os

import pytest

from tests.tidy import sources

PATH = os.path.join(sources.ROOT, "packaging", "git-hooks", "commit-msg")
loader = importlib.machinery.SourceFileLoader("commit_msg", PATH)
hook = importlib.util.module_from_spec(importlib.util.spec_from_loader("commit_msg", loader))
loader.exec_module(hook)


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
