"""What scripts draw from the sources is up to date."""

import subprocess

from tests.tidy import sources


def test_the_map_of_modules_is_up_to_date() -> None:
    done = subprocess.run(
        ["docs/internals/draw_modules.py", "--check"],
        cwd=sources.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
