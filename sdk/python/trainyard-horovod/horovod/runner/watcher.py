"""Ends the ranks of a launcher that was killed. Run as a file, by itself: python -I -S watcher.py.

Without arguments it is the watcher. The launcher holds the other end of its standard input, so the
end of the input means that the launcher is gone, in whatever way. Lines before it:

    + GROUP local NAME     a process group that was started here
    + GROUP remote NAME    one of ssh's: its end of the input ends what it started
    - GROUP                nothing is left of it

With arguments, a command, it is the gate before one: it becomes the command when a byte comes in,
which the launcher sends after the line for the watcher. A launcher that is killed in between leaves
a gate whose input ends. So there is no moment in which a command runs and nobody would end it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterable

GRACE_SECONDS = 5  # between asking a group to end and ending it
LOOK_SECONDS = 0.05


def left_by(lines: Iterable[str]) -> dict[int, tuple[bool, str]]:
    """-> the groups that there are when the lines end: whether they are local, and their names."""
    groups: dict[int, tuple[bool, str]] = {}
    for line in lines:
        words = line.split(maxsplit=3)
        if words[0] == "+":
            groups[int(words[1])] = words[2] == "local", words[3].strip()
        else:
            groups.pop(int(words[1]), None)
    return groups


def signal_group(group: int, number: int) -> bool:
    """-> whether there was anything in the group. Signal 0 only looks."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # it is another user's now: sudo
        return True
    return True


def _wait_for(groups: Iterable[int]) -> None:
    deadline = time.monotonic() + GRACE_SECONDS
    while any(signal_group(group, 0) for group in groups) and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)


def watch() -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups = left_by(sys.stdin)
    if not groups:
        return 0
    local = [group for group, (here, _) in groups.items() if here]
    for group in local:
        signal_group(group, signal.SIGTERM)
    _wait_for(local)
    for group in local:
        signal_group(group, signal.SIGKILL)
    # The other side gives its ranks as long, and is not told by ssh when ssh is killed first.
    _wait_for(groups)
    for group in groups:
        signal_group(group, signal.SIGKILL)
    names = ", ".join(name for _, name in groups.values())
    with contextlib.suppress(OSError):  # whoever read it may be gone too
        print(f"horovodrun was killed: its ranks are ended: {names}", file=sys.stderr, flush=True)
    return 0


def gate(command: list[str]) -> int:
    if not os.read(0, 1):
        return 1
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and so would the command
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as failure:
        print(f"horovodrun: {command[0]}: {failure.strerror}", file=sys.stderr, flush=True)
    return 127


if __name__ == "__main__":
    sys.exit(gate(sys.argv[1:]) if len(sys.argv) > 1 else watch())
