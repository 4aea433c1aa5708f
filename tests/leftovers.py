"""Finds what jobs leave on a machine. A snapshot lists everything that a job may change; tests
compare a snapshot from before a job with one from after it."""

import glob
import os
import re
import subprocess
from collections.abc import Mapping


def lines(*command: str) -> set[str]:
    return set(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    )


def fnv1a(text: str) -> int:
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % (1 << 64)
    return value


def of_others(name: str, data: str) -> bool:
    """Returns True if a link, table, namespace, mount or control group belongs to another server or
    to a test. A server's names contain six digits of a hash of its data directory; the name of a
    container's group contains eight digits of a hash of its bundle."""
    if data in name:
        return False
    if group := re.fullmatch(
        r"/sys/fs/cgroup/.*/trainyard/(j\d+a\d+)-(\d+)\.([0-9a-f]{8})(/.*)?", name
    ):
        value = fnv1a(f"{data}/attempts/{group[1]}/{group[2]}/bundle")
        return group[3] != f"{(value ^ value >> 32) & 0xFFFFFFFF:08x}"
    if marked := re.search(r"(?:^tys?|^tv|trainyard_|/run/trainyard/)([0-9a-f]{6})", name):
        value = fnv1a(data)
        return marked[1] != f"{(value ^ value >> 24 ^ value >> 48) & 0xFFFFFF:06x}"
    return "test" in name


def picture(data: str) -> dict[str, set[str]]:
    """Returns a snapshot: the kinds of things that a job may leave, name -> set of things."""
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
    seen = {
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
    data = os.path.realpath(data)
    return {
        kind: {name for name in names if not of_others(name, data)} for kind, names in seen.items()
    }


def left(before: Mapping[str, set[str]], after: Mapping[str, set[str]]) -> dict[str, list[str]]:
    """Returns the items that are in `after` but not in `before`; {} when nothing is left."""
    return {
        name: sorted(after[name] - before[name]) for name in after if after[name] - before[name]
    }
