"""Python's declarations of the C interfaces agree with the headers."""

import subprocess
import sys

from tests.tidy import sources


def test_declarations_of_the_c_headers_are_current() -> None:
    checked = subprocess.run(
        [sys.executable, "sdk/python/declare.py", "--check"],
        cwd=sources.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
