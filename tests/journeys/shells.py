"""Simulates users at shells: one long-lived shell each, all on one small separate network.

The network has only a loopback interface, and its own host names. So a server that listens on all
addresses is not reachable from other machines, and has the port that documents name."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping

from tests import trainyard_server

COMMAND_SECONDS_MAX = 120
MARK = "the-command-ended-with"


class Network:
    """Has the namespaces for the network and for /etc/hosts, which exist until end()."""

    def __init__(self, names: Mapping[str, str], directory: pathlib.Path) -> None:
        hosts = directory / "hosts"
        own = "".join(f"{address} {name}\n" for name, address in names.items())
        hosts.write_text(pathlib.Path("/etc/hosts").read_text(encoding="utf-8") + own)
        # The first line of its output says that all is set up.
        script = 'ip link set lo up && mount --bind "$0" /etc/hosts && echo ready && exec cat'
        self.process = subprocess.Popen(
            ["unshare", "--net", "--mount", "sh", "-ec", script, str(hosts)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout and self.process.stdout.readline() == b"ready\n"

    def words(self) -> list[str]:
        """Returns the prefix of a command that runs in the network."""
        return ["nsenter", "--net", "--mount", f"--target={self.process.pid}"]

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


class Person:
    """Simulates a shell, as root or as an ordinary user without a name."""

    def __init__(
        self,
        network: Network,
        home: pathlib.Path,
        path: list[str],
        user: int = 0,
    ) -> None:
        become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
        self.process = subprocess.Popen(
            [*network.words(), *become, "env", f"--chdir={home}", "sh"],
            env={
                "PATH": ":".join([*path, "/usr/sbin", "/usr/bin", "/sbin", "/bin"]),
                "HOME": str(home),
                "LANG": "C.UTF-8",
                "AWS_PAGER": "",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.shown = b""

    def types(self, command: str) -> tuple[int, str]:
        """Runs a command in the shell; returns its exit code and the terminal's output."""
        assert self.process.stdin
        self.process.stdin.write(f'{command}\necho "{MARK} $?"\n'.encode())
        self.process.stdin.flush()
        found = self.sees(rf"^{MARK} (\d+)\n")
        text = self.shown[: found.start()].decode(errors="replace")
        self.shown = self.shown[found.end() :]
        return int(found[1]), text

    def sees(self, pattern: str) -> re.Match[bytes]:
        """Waits until the terminal shows a text."""
        assert self.process.stdout
        end = time.monotonic() + COMMAND_SECONDS_MAX
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while not (found := re.search(pattern.encode(), self.shown, re.M)):
                left = end - time.monotonic()
                ready = selector.select(max(left, 0))
                piece = os.read(self.process.stdout.fileno(), 1 << 16) if ready else b""
                assert piece, f"waited for {pattern}: {self.shown.decode(errors='replace')}"
                self.shown += piece
        return found

    def leaves(self) -> None:
        """Ends the shell and its background processes."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGTERM)
        self.process.kill()
        self.process.wait()


def sweep(network: Network, data: pathlib.Path) -> None:
    """Removes the remains of a server's jobs after its user's shell has ended."""
    server = trainyard_server.Server(data, behind=network.words())
    for agent in server.agents():
        os.kill(agent, signal.SIGKILL)
    clean = [*network.words(), server.program, "doctor", "--data", str(data), "--clean"]
    trainyard_server.wait_for(
        lambda: subprocess.run(clean, check=False, capture_output=True).returncode == 0,
        "the server to end",
    )


def steps_of(text: str) -> Iterator[tuple[str, str, str]]:
    """Returns (who, command, shown) of a console block. A prompt is "$ " or "ann$ "; further lines
    of a command are indented, and all others are its output."""
    for part in re.split(r"^(?=\w*\$ )", text, flags=re.M):
        if not part:
            continue
        who, rest = part.split("$ ", 1)
        first, *others = rest.splitlines()
        count = next(
            (at for at, line in enumerate(others) if not line.startswith("  ")), len(others)
        )
        # What a command shows may be indented, too, but its first line never is.
        yield who, "\n".join([first, *others[:count]]), "\n".join(others[count:])


def check_shown(expected: str, shown: str, command: str) -> None:
    """Compares output with a page: "…" matches any text, and a line of only "…" any lines."""
    lines = expected.splitlines()
    pattern = ""
    for line in lines:
        pattern += (
            r"(?:.*\n)*?" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + "\n"
        )
    assert re.match(pattern, shown), f"{command}\nexpected:\n{expected}\nshown:\n{shown}"
