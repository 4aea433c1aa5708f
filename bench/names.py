"""Names the benches, and handles help and unknown names for `./yard bench`.

Imports nothing but the standard library, so that it runs before anything is installed or built.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

# In the order in which they run: modules of bench/benches, whose function has the same name.
BENCHES = (
    "collectives",
    "links",
    "overlap",
    "torch",
    "train_step",
    "projection",
    "forest",
    "xgboost",
    "ledger",
    "policy",
    "describe",
    "attack",
    "create",
    "submit",
    "array",
    "slurm_array",
    "slurm_start",
    "kubernetes_start",
    "schedule",
    "start",
    "start_up",
    "browsers",
    "frames",
    "rank_faults",
    "first_batch",
    "back_to_back",
    "logs",
    "prometheus",
    "history",
    "idle",
    "image",
    "edit",
    "clone",
    "release",
)
# Measured only by name: `release` builds the last release first.
ONLY_BY_NAME = ("release",)


def chosen(names: Sequence[str]) -> Sequence[str]:
    """Returns the named benches; without names, those of a plain `./yard bench`."""
    return names or [name for name in BENCHES if name not in ONLY_BY_NAME]


def unknown_names(names: Sequence[str]) -> str:
    """Returns an error that lists the unknown names, or "" if all are known."""
    unknown = [name for name in names if name not in BENCHES]
    return f"unknown bench {', '.join(unknown)}: use {', '.join(BENCHES)}" if unknown else ""


def main(arguments: Sequence[str]) -> int:
    if "--help" in arguments:
        print("usage: ./yard bench [NAME..]\n\nBuilds, measures next to peers, and writes")
        print("bench/results: all benches, or the named ones, in this order:\n")
        for name in BENCHES:
            print(f"  {name} (only by name)" if name in ONLY_BY_NAME else f"  {name}")
        return 0
    if wrong := unknown_names(arguments):
        print(f"yard: {wrong}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
