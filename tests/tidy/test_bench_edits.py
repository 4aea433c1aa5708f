"""Sources that `./yard bench edit` edits are as before, however it ends."""

from __future__ import annotations

import pathlib
import signal
import subprocess
import sys

import pytest

from bench import edits
from tests.tidy import sources

TEXT = "int one() { return 1; }\n"
PROGRAM = """
import sys, time
from bench import edits
edits.end_on_signals()
with edits.edited(sys.argv[1]):
    print("edited", flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL])
def test_an_edit_is_removed_however_the_bench_ends(tmp_path: pathlib.Path, number: int) -> None:
    source = tmp_path / "source.cpp"
    source.write_text(TEXT)
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(source)],
        cwd=sources.ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        # A shell's background job ignores SIGINT, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as bench:
        assert bench.stdout and bench.stdout.readline() == b"edited\n"
        assert source.read_text() != TEXT
        bench.send_signal(number)
        assert bench.wait(60) != 0
    if number == signal.SIGKILL:
        assert source.read_text() != TEXT, "SIGKILL cannot be handled"
        assert edits.remove_edits([str(source)]) == [str(source)], "by the next bench"
    assert source.read_text() == TEXT


def test_other_text_stays(tmp_path: pathlib.Path) -> None:
    source = tmp_path / "source.cpp"
    for text in ("namespace edited {}\n", "namespace edited_1 {}\nint one;\n", ""):
        source.write_text(text)
        assert not edits.remove_edits([str(source)])
        assert source.read_text() == text


def test_no_source_is_edited() -> None:
    left = [path for path in sources.cpp(".cpp") if edits.EDIT.search(sources.read(path))]
    assert not left, f"./yard bench edit was killed and left its edit in {', '.join(left)}"
