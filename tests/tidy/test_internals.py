"""Files that scripts generate from the sources are up to date."""

import subprocess

import pytest

from tests.tidy import sources


@pytest.mark.parametrize(
    "script", ["draw_modules.py", "write_compatibility.py", "write_sdk_features.py"]
)
def test_pages_that_scripts_write_are_up_to_date(script: str) -> None:
    done = subprocess.run(
        [f"docs/internals/{script}", "--check"],
        cwd=sources.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
