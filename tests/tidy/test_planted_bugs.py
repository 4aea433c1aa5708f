"""The simulator's planted bugs apply to today's sources (the suite bugs shows they are found)."""

from __future__ import annotations

import glob
import os
import subprocess

import pytest

from tests.tidy import sources

PATCHES = sorted(glob.glob(os.path.join(sources.ROOT, "sim", "bugs", "*.patch")))


def test_there_are_patches() -> None:
    assert PATCHES


@pytest.mark.parametrize("patch", PATCHES, ids=os.path.basename)
def test_a_patch_applies(patch: str) -> None:
    done = subprocess.run(
        ["git", "apply", "--check", patch], cwd=sources.ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, f"make it again from today's sources: {done.stderr}"
