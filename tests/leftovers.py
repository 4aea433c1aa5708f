"""What jobs leave on a machine: nothing. A picture of everything that a job's life touches,
to compare before and after."""

import glob
import os
import subprocess
from collections.abc import Mapping


def lines(*command: str) -> set[str]:
    return set(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    )


def picture(data: str) -> dict[str, set[str]]:
    """name -> set of things, none of which may be more after the last job than before the first."""
    with open("/proc/self/mounts", encoding="utf-8") as file:
        mounts = {line.split()[1] for line in file}
    processes = set()
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as file:
                command = file.read().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if data in command and " serve " not in command:
            processes.add(command)
    return {
        "links": {line.split(": ")[1].split("@")[0] for line in lines("ip", "-o", "link", "show")},
        "namespaces": lines("ip", "netns", "list"),
        "tables": lines("nft", "list", "tables"),
        "mounts": mounts,
        "cgroups": {
            path
            for path in glob.glob("/sys/fs/cgroup/**/trainyard/**", recursive=True)
            if os.path.isdir(path) and not path.endswith("trainyard/")
        },
        "attempts": set(os.listdir(os.path.join(data, "attempts")))
        if os.path.isdir(os.path.join(data, "attempts"))
        else set(),
        "processes": processes,
    }


def left(before: Mapping[str, set[str]], after: Mapping[str, set[str]]) -> dict[str, list[str]]:
    """What is there now and was not before; {} when nothing is left."""
    return {
        name: sorted(after[name] - before[name]) for name in after if after[name] - before[name]
    }
