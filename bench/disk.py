"""Mounts an image file with ext4 and a journal, which both sides of a bench use as their disk.

Machines that are rented by the hour often have ext4 without a journal. There, creating a file scans
all inodes of its block group that were freed within the last minutes. In a short job this takes
longer than everything else, on either side.
"""

from __future__ import annotations

import os
import subprocess

from bench.rows import ROOT

BYTES = 8 << 30  # of the image, which is sparse


class Disk:
    """Mounts the disk while the context is open; `with` returns its path. Requires root."""

    def __init__(self) -> None:
        self.image = os.path.join(ROOT, "build", f"bench-disk-{os.getpid()}.img")
        self.path = os.path.join(ROOT, "build", f"bench-disk-{os.getpid()}")

    def __enter__(self) -> str:
        with open(self.image, "wb") as file:
            file.truncate(BYTES)
        subprocess.run(["mkfs.ext4", "-q", "-F", self.image], check=True)
        os.makedirs(self.path)
        subprocess.run(["mount", "-o", "loop", self.image, self.path], check=True)
        return self.path

    def __exit__(self, *_: object) -> None:
        subprocess.run(["umount", self.path], check=True)
        os.rmdir(self.path)
        os.remove(self.image)
