"""Ends the ranks of a launcher that was killed. Run as a file: python -I -S watcher.py [COMMAND..]

Without arguments it watches. The launcher holds the other end of its standard input, so the input
ends when the launcher ends, for any reason. Each line before that tells of a process group:

    + GROUP local NAME     the launcher started this process group
    + GROUP remote NAME    ssh runs in this process group; closing its input ends the remote command
    - GROUP                the process group has ended

With a command as arguments it delays the command: it reads one byte, then executes the command. The
launcher sends that byte after it has sent the "+" line to the watcher. If the launcher is killed
earlier, the input ends and the command never starts. So every command that runs is being watched.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterable

GRACE_SECONDS = 5  # between SIGTERM and SIGKILL
LOOK_SECONDS = 0.05


def running_groups(lines: Iterable[str]) -> dict[int, tuple[bool, str]]:
    """Returns the groups that still run after these lines: group -> (is local, name)."""
    groups: dict[int, tuple[bool, str]] = {}
    for line in lines:
        words = line.split(maxsplit=3)
        if words[0] == "+":
            groups[int(words[1])] = words[2] == "local", words[3].strip()
        else:
            groups.pop(int(words[1]), None)
    return groups


def signal_group(group: int, number: int) -> bool:
    """Sends the signal; returns true if the group has processes. Signal 0 only checks that."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # the group runs as another user: sudo
        return True
    return True


def _wait_for(groups: Iterable[int]) -> None:
    deadline = time.monotonic() + GRACE_SECONDS
    while any(signal_group(group, 0) for group in groups) and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)


def watch() -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups = running_groups(sys.stdin)
    if not groups:
        return 0
    local = [group for group, (here, _) in groups.items() if here]
    for group in local:
        signal_group(group, signal.SIGTERM)
    _wait_for(local)
    for group in local:
        signal_group(group, signal.SIGKILL)
    # The remote side gives its ranks the same time, so ssh must not be killed before that.
    _wait_for(groups)
    for group in groups:
        signal_group(group, signal.SIGKILL)
    names = ", ".join(name for _, name in groups.values())
    with contextlib.suppress(OSError):  # the reader may have ended too
        print(f"horovodrun was killed; ended its ranks: {names}", file=sys.stderr, flush=True)
    return 0


def start_when_watched(command: list[str]) -> int:
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
    sys.exit(start_when_watched(sys.argv[1:]) if len(sys.argv) > 1 else watch())
