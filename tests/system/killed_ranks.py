"""Kills ranks in separate namespaces, where no other process leaves anything, and lists what they
leave.

    unshare --mount --net --ipc --pid --fork --kill-child --mount-proc killed_ranks.py LIBRARY
    prints JSON: way -> {while they work, left}"""

import json
import os
import signal
import subprocess
import sys
from typing import Any

RANK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "collectives_rank.py")
RANKS = 3
LISTENS = "0A"  # in /proc/net/tcp
# Ranks in separate PID namespaces cannot see each other's memory, like ranks on two hosts.
APART = ["unshare", "--pid", "--fork", "--kill-child"]
WAYS = {"shared memory": ([], "0"), "tcp": (APART, "0"), "tls, two sockets": (APART, "1")}


def lines(path: str) -> list[str]:
    with open(path, encoding="utf-8") as file:
        return file.read().splitlines()[1:]


def memory_files() -> dict[str, set[Any]]:
    """Returns the anonymous memory files, by process and by the way in which it has them open, and
    those that several processes map."""
    held, mapped = set(), {}
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            for descriptor in os.listdir(f"/proc/{process}/fd"):
                target = os.readlink(f"/proc/{process}/fd/{descriptor}")
                if "memfd:" in target:
                    held.add((process, target))
            with open(f"/proc/{process}/maps", encoding="utf-8") as maps:
                for line in maps:
                    if "memfd:" in line:
                        held.add((process, line.split(maxsplit=5)[5].strip()))
                        mapped.setdefault(line.split()[4], set()).add(process)
        except OSError:
            continue  # it has ended
    return {
        "memory without a name": held,
        "memory of several processes": {inode for inode, by in mapped.items() if len(by) > 1},
    }


def picture() -> dict[str, set[Any]]:
    return {
        "files in /dev/shm": set(os.listdir("/dev/shm")),
        **memory_files(),
        "memory of System V": {
            line for kind in ("shm", "sem", "msg") for line in lines(f"/proc/sysvipc/{kind}")
        },
        "listening": {
            line.split()[1]
            for family in ("tcp", "tcp6")
            for line in lines(f"/proc/net/{family}")
            if line.split()[3] == LISTENS
        },
        "datagrams": {
            line.split()[1] for family in ("udp", "udp6") for line in lines(f"/proc/net/{family}")
        },
        "local sockets": {line.split()[-1] for line in lines("/proc/net/unix")},
        "processes": {one for one in os.listdir("/proc") if one.isdigit()},
    }


def more(after: dict[str, set[Any]], before: dict[str, set[Any]]) -> dict[str, int]:
    return {name: len(after[name] - before[name]) for name in after if after[name] - before[name]}


def kill_all_but_us() -> None:
    """Kills all ranks without notice, as the kernel's OOM killer would."""
    os.kill(-1, signal.SIGKILL)  # all processes of this namespace except this one


def play(library: str, way: str, first: int | None, port: int) -> dict[str, Any]:
    """Runs ranks and kills them. `first`: the rank that dies before the others; none: all at
    once."""
    apart, encrypt = WAYS[way]
    before = picture()
    ranks = [
        subprocess.Popen(
            [
                *apart,
                sys.executable,
                RANK,
                "forever",
                library,
                str(rank),
                str(RANKS),
                str(port),
                "between us",
                "30000",
                encrypt,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(RANKS)
    ]
    said = [rank.stdout.readline().strip() for rank in ranks]
    working = picture()
    if first is not None:
        ranks[first].kill()
        said += [
            rank.stdout.readline().strip() for number, rank in enumerate(ranks) if number != first
        ]
    kill_all_but_us()
    for rank in ranks:
        rank.wait()
        rank.stdin.close()
        rank.stdout.close()
    while True:  # orphans of their namespaces, which this process inherits
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            break
    return {"said": said, "working": more(working, before), "left": more(picture(), before)}


def main() -> None:
    subprocess.run(["mount", "-t", "tmpfs", "none", "/dev/shm"], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    port, results = 7000, {}
    for way in WAYS:
        for first in (None, 0, RANKS - 1):
            results[f"{way}, {'all at once' if first is None else f'rank {first} first'}"] = play(
                sys.argv[1], way, first, port
            )
            port += RANKS
    print(json.dumps(results))


main()
