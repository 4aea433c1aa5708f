"""Runs the snippets of the documents as they are printed.

A page is run from its top in one shell: its console blocks command by command, its Python blocks
with the interpreter that has the SDK. A block that begins with `# FILE` is written to that file.
Everything runs in a separate network namespace, so that the server gets its default port, with a
separate home and working directory."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence

from tests import sdk, trainyard_server

ROOT = pathlib.Path(trainyard_server.ROOT)
PAGES = ("README.md", *sorted(str(p.relative_to(ROOT)) for p in ROOT.glob("docs/operating/*.md")))
RUN = ("console", "python")  # languages of blocks that are run
SERVE = "build/trainyard serve"
PAGE_SECONDS_MAX = 600
START_SECONDS_MAX = 60
END_SECONDS_MAX = 60
QUIET_CHECKS = 5  # without agents, before a page is over


@dataclasses.dataclass(frozen=True)
class Block:
    page: str
    line: int
    language: str
    text: str

    def file(self) -> str | None:
        """Returns the file name in the block's first line (`# job.toml`), if it has one."""
        found = re.match(r"# ([\w./-]+\.\w+)\n", self.text)
        return found[1] if found and self.language in ("toml", "python") else None

    def commands(self) -> list[str]:
        """Returns the commands of a console block: each begins with "$ ", and further lines are
        indented."""
        assert self.text.startswith("$ "), f"{self.page}:{self.line}: begins without a command"
        return [command.rstrip("\n") for command in re.split(r"^\$ ", self.text, flags=re.M)[1:]]


def blocks(page: str) -> list[Block]:
    """Returns the fenced blocks of a page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [
        Block(page, text[: found.start()].count("\n") + 1, found[1], found[2])
        for found in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S)
    ]


def plain(command: str) -> str:
    """Removes the comment of a command: its first words are the name that tests use."""
    return re.sub(r"\s+#.*", "", command).strip()


@dataclasses.dataclass
class Run:
    """Describes how a page is run. Commands are named by their beginnings."""

    skipped: Mapping[str, str] = dataclasses.field(default_factory=dict)  # command -> reason
    # command -> what the page presupposes there: shell lines that run before it
    before: Mapping[str, str] = dataclasses.field(default_factory=dict)


def named(command: str, names: Sequence[str]) -> str | None:
    """Returns the name of a command among `names`."""
    return next((name for name in names if plain(command).startswith(name)), None)


def interpreter(code: str) -> str:
    return sdk.python(3 if "sagemaker.train" in code or "sagemaker.core" in code else 2)


def lines_of(command: str) -> list[str]:
    if plain(command).removesuffix(" &") == SERVE:
        return [
            f"{SERVE} &",
            "echo $! > server.pid",
            f"for _ in $(seq {START_SECONDS_MAX * 10}); do"
            ' [ -e "$HOME/.local/share/trainyard/server.json" ] && break; sleep 0.1; done',
        ]
    # Placeholders of the pages: the id of the last Batch job, and the account.
    command = re.sub(r"\bID\b", '"$ID"', command)
    command = command.replace("::ACCOUNT:", "::'$ACCOUNT':")
    found = []
    if "submit-job" in command:
        found += ["{", command, "} > answer.json", "cat answer.json"]
        found += ['ID=$(sed -n \'s/.*"jobId": "\\(.*\\)".*/\\1/p\' answer.json)']
    else:
        found.append(command)
    return found


def script(page: str, run: Run) -> str:
    """Returns one shell script for the whole page."""
    used: set[str] = set()
    lines = ["set -eE", "trap 'echo \"failed: $BASH_COMMAND\" >&2' ERR"]
    for block in blocks(page):
        if file := block.file():
            lines += [f"mkdir -p $(dirname {file})", f"cat > {file} <<'SNIPPET'"]
            lines.append(block.text + "SNIPPET")
        elif block.language == "python":
            lines += [
                f"echo '+ python, {page}:{block.line}'",
                f"{shlex.quote(interpreter(block.text))} - <<'SNIPPET'",
                block.text + "SNIPPET",
            ]
        if block.language != "console":
            continue
        for command in block.commands():
            skipped = named(command, list(run.skipped))
            before = named(command, list(run.before))
            used |= {name for name in (skipped, before) if name}
            if before:
                lines.append(run.before[before])
            if skipped:
                continue
            lines.append(f"echo {shlex.quote('+ ' + plain(command).splitlines()[0])}")
            lines += lines_of(command)
    unused = {*run.skipped, *run.before} - used
    assert not unused, f"{page} has no commands that begin with {sorted(unused)}"
    return "\n".join([*lines, "echo the page ends"]) + "\n"


def checkout(directory: pathlib.Path) -> pathlib.Path:
    """Makes a directory with the repository's programs and examples."""
    made = directory / "trainyard"
    made.mkdir()
    for name in ("build", "examples"):
        (made / name).symlink_to(ROOT / name)
    return made


def end_server(directory: pathlib.Path, data: pathlib.Path) -> None:
    record = directory / "server.pid"
    if record.exists():
        try:
            os.kill(int(record.read_text()), signal.SIGKILL)
        except ProcessLookupError:
            pass
    # A server that starts jobs may have forked agents that show their names only now.
    server = trainyard_server.Server(data)
    quiet, deadline = 0, time.monotonic() + END_SECONDS_MAX
    while quiet < QUIET_CHECKS and time.monotonic() < deadline:
        agents = server.agents()
        for agent in agents:
            os.kill(agent, signal.SIGKILL)
        quiet = 0 if agents else quiet + 1
        time.sleep(0.1)
    subprocess.run(
        [trainyard_server.PROGRAM, "doctor", "--data", str(data), "--clean"], check=False
    )


def run_page(page: str, directory: pathlib.Path, run: Run) -> str:
    """Runs the page's commands and returns their output. Fails at the first failed command."""
    place = checkout(directory)
    home = directory / "home"
    home.mkdir()
    program = directory / "page.sh"
    # The namespace lasts until the script and the server that it started end.
    program.write_text("ip link set lo up\n" + script(page, run))
    environment = {
        "PATH": f"{place}/build:{place}/build/venv/bin:{os.environ['PATH']}",
        "HOME": str(home),
        "COLUMNS": "200",
        "AWS_PAGER": "",
        "LANG": "C.UTF-8",
    }
    output = directory / "output"
    try:
        with output.open("wb") as file:
            done = subprocess.run(
                ["unshare", "--net", "bash", str(program)],
                cwd=place,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                timeout=PAGE_SECONDS_MAX,
                check=False,
            )
    finally:
        end_server(place, home / ".local" / "share" / "trainyard")
    printed = output.read_text(encoding="utf-8", errors="replace")
    assert done.returncode == 0 and "the page ends" in printed, printed[-6000:]
    return printed
