"""Tests horovodrun: it starts and ends ranks, prefixes their output, and reports the first failed
one. Ranks are killed, added, or too few."""

from __future__ import annotations

import errno
import io
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

import pytest
from horovod.runner import processes, watcher

HERE = os.path.dirname(os.path.abspath(__file__))
HOROVODRUN = os.path.join(os.path.dirname(sys.executable), "horovodrun")
SECONDS_MAX = 120


class Run:
    """Runs horovodrun with these arguments; a file collects its output."""

    def __init__(self, *arguments: str, **variables: str) -> None:
        self.folder = tempfile.mkdtemp(prefix="horovodrun-")
        self.path = os.path.join(self.folder, "said")
        with open(self.path, "wb") as file:
            self.process = subprocess.Popen(
                [HOROVODRUN, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**os.environ, "OMP_NUM_THREADS": "1", **variables},
            )

    def said(self) -> str:
        with open(self.path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def wait_for(self, pattern: str, after: int = 0) -> re.Match[str]:
        """Waits until the output after `after` matches; returns the match."""
        deadline = time.monotonic() + SECONDS_MAX
        while time.monotonic() < deadline:
            found = re.search(pattern, self.said()[after:])
            if found:
                return found
            assert self.process.poll() is None, (
                f"it ended, and never said {pattern}:\n{self.said()}"
            )
            time.sleep(0.05)
        raise AssertionError(f"it never said {pattern}:\n{self.said()}")

    def finish(self) -> tuple[int, str]:
        """Waits for the end; returns the exit code and the output."""
        try:
            return self.process.wait(SECONDS_MAX), self.said()
        finally:
            self.end()

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(30)


@pytest.fixture
def start() -> Iterator[Callable[..., Run]]:
    runs = []

    def begin(*arguments: str, **variables: str) -> Run:
        runs.append(Run(*arguments, **variables))
        return runs[-1]

    yield begin
    for run in runs:
        run.end()


def python(*lines: str) -> list[str]:
    return [sys.executable, "-c", "\n".join(lines)]


HELLO = ["import os, sys, horovod.torch as hvd, torch", "hvd.init()"]


def test_ranks_are_started_and_their_lines_carry_their_rank(
    start: Callable[..., Run], tmp_path: pathlib.Path
) -> None:
    code, said = start(
        "-np",
        "3",
        "--mpi",
        "--timeline-filename",
        str(tmp_path / "timeline"),
        "--",
        *python(
            *HELLO,
            "print('rank', hvd.rank(), 'of', hvd.size(), hvd.local_rank(), hvd.cross_rank(),"
            " hvd.cross_size())",
            "print('oh', file=sys.stderr)",
        ),
    ).finish()
    assert code == 0, said
    for rank in range(3):
        assert (
            f"[{rank}]<stdout>:rank {rank} of 3 {rank} 0 1" in said
            and f"[{rank}]<stderr>:oh" in said
        ), said
    assert "--mpi has no effect here" in said
    assert os.path.getsize(tmp_path / "timeline") > 0


def test_output_can_be_written_to_files(start: Callable[..., Run], tmp_path: pathlib.Path) -> None:
    code, said = start(
        "-np",
        "2",
        "--output-filename",
        str(tmp_path),
        "sh",
        "-c",
        "echo this is $HOROVOD_RANK of $HOROVOD_SIZE",
    ).finish()
    assert code == 0 and said == ""
    assert (tmp_path / "rank.1" / "stdout").read_text() == "this is 1 of 2\n"


def test_the_rank_that_fails_is_named_and_all_end(
    start: Callable[..., Run], tmp_path: pathlib.Path
) -> None:
    run = start(
        "-np",
        "3",
        *python(
            *HELLO,
            "hvd.barrier()",
            f"open(r'{tmp_path}/' + str(hvd.rank()), 'w').write(str(os.getpid()))",
            "os.kill(os.getpid(), 9) if hvd.rank() == 1 else [hvd.allreduce(torch.ones(1)) for _ in"
            " range(10**9)]",
        ),
    )
    code, said = run.finish()
    assert code == 128 + 9 and "rank 1 on localhost failed: killed by signal 9 (SIGKILL)" in said, (
        said
    )
    for rank in (0, 2):
        pid = (tmp_path / str(rank)).read_text()
        assert not os.path.exists(f"/proc/{pid}"), "nothing is left"
    code, said = start(
        "-np", "2", "sh", "-c", "if [ $HOROVOD_RANK = 0 ]; then exit 7; else sleep 100; fi"
    ).finish()
    assert code == 7 and "rank 0 on localhost failed: exit code 7" in said


def test_missing_ranks_are_named(start: Callable[..., Run]) -> None:
    code, said = start(
        "-np",
        "2",
        "--start-timeout",
        "3",
        *python("import os, time", "if os.environ['HOROVOD_RANK'] == '1': time.sleep(100)", *HELLO),
    ).finish()
    assert code == 1 and "rank 1 on localhost did not connect within 3 s" in said, said


def test_an_interrupt_ends_all(start: Callable[..., Run]) -> None:
    run = start("-np", "2", "sh", "-c", "echo up $$; exec sleep 100")
    pids = [run.wait_for(rf"\[{rank}\]<stdout>:up (\d+)")[1] for rank in (0, 1)]
    run.process.send_signal(signal.SIGINT)
    code, said = run.finish()
    assert code == 130 and not any(os.path.exists(f"/proc/{pid}") for pid in pids), said


def is_there(pid: str) -> bool:
    """Returns True if a process runs and is not a zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] not in "XZ"
    except (FileNotFoundError, ProcessLookupError):
        return False


def until(condition: Callable[[], bool], words: Callable[[], str]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, words()
        time.sleep(0.05)


# What a rank started is ended too, and one that takes no notice of SIGTERM.
@pytest.mark.parametrize("elastic", [[], ["--min-np", "2"]], ids=["static", "elastic"])
def test_ranks_end_when_horovodrun_is_killed(start: Callable[..., Run], elastic: list[str]) -> None:
    script = (
        "[ $HOROVOD_LOCAL_RANK = 0 ] || trap '' TERM; sleep 1000 &"
        " echo up $HOROVOD_LOCAL_RANK $$ $!; wait"
    )
    run = start("-np", "2", *elastic, "sh", "-c", script)
    found = [run.wait_for(rf"<stdout>:up {rank} (\d+) (\d+)") for rank in (0, 1)]
    pids = [pid for each in found for pid in each.groups()]
    assert all(is_there(pid) for pid in pids)
    run.process.kill()
    run.process.wait()
    until(lambda: "ended its ranks" in run.said(), run.said)
    assert re.search(r"horovodrun was killed; .*: localhost/0.*, localhost/1", run.said())
    assert not any(is_there(pid) for pid in pids), run.said()


WATCHER = [sys.executable, "-I", "-S", watcher.__file__]


# Killed before the watcher knew, or after: in neither case a command runs unwatched.
def test_no_command_begins_after_its_launcher_has_ended(tmp_path: pathlib.Path) -> None:
    for confirmed in (False, True):
        file = tmp_path / str(confirmed)
        gate = subprocess.Popen(
            [*WATCHER, "sh", "-c", 'cat >"$0"; kill -s PIPE $$', file], stdin=subprocess.PIPE
        )
        gate.communicate(b"\n" if confirmed else b"", SECONDS_MAX)
        assert file.exists() == confirmed
        # A command reads nothing, and has the signals that it would have without a gate.
        assert gate.returncode == (-signal.SIGPIPE if confirmed else 1)
    missing = subprocess.run([*WATCHER, "/no/such"], input=b"\n", stderr=subprocess.PIPE)
    assert missing.returncode == 127 and b"/no/such: No such file" in missing.stderr


def test_the_watcher_ignores_ended_processes() -> None:
    ours = [subprocess.Popen(["sleep", "1000"], start_new_session=True) for _ in range(2)]
    try:
        lines = "".join(f"+ {each.pid} local place {each.pid}\n" for each in ours)
        watching = subprocess.Popen(WATCHER, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        assert watching.stdin is not None and watching.stderr is not None
        watching.stdin.write(f"{lines}- {ours[0].pid}\n".encode())
        watching.stdin.close()
        assert ours[1].wait(SECONDS_MAX) == -signal.SIGTERM
        said = watching.stderr.read().decode()
        assert said.endswith(f" ended its ranks: place {ours[1].pid}\n")
        assert watching.wait(SECONDS_MAX) == 0 and ours[0].poll() is None
    finally:
        for each in ours:
            each.kill()
            each.wait()


def test_wrong_command_lines_are_refused_with_an_explanation(start: Callable[..., Run]) -> None:
    for arguments, words in (
        (["-np", "2"], "missing command"),
        (["true"], "missing -np: the number of ranks"),
        (["-np", "3", "-H", "localhost:2", "true"], "2 slots"),
        (["-np", "1", "-H", "a b", "true"], "invalid host"),
        (["-np", "2", "--min-np", "5", "--max-np", "3", "true"], "--min-np"),
    ):
        code, said = start(*arguments).finish()
        assert code == 2 and words in said, said


def test_check_build_lists_the_available_features(start: Callable[..., Run]) -> None:
    code, said = start("--check-build").finish()
    assert (
        code == 0
        and "[X] PyTorch" in said
        and "[ ] MPI" in said
        and "[X] Gloo" in said
        and "[ ] NCCL" in said
    )


def test_a_function_runs_on_all_ranks(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import horovod\n\ndef work(factor):\n    import horovod.torch as hvd\n    hvd.init()\n   "
        " return hvd.rank() * factor\n\nif __name__ == '__main__':\n    print(horovod.run(work,"
        " args=(10,), np=2))\n"
    )
    assert (
        subprocess.run(
            [sys.executable, script], stdout=subprocess.PIPE, check=True, timeout=SECONDS_MAX
        ).stdout
        == b"[0, 10]\n"
    )


@pytest.fixture
def other_host() -> Iterator[tuple[str, str]]:
    """Makes another host: a network namespace with its own address."""
    if os.geteuid() != 0:
        pytest.skip("namespaces need root")
    name = f"hvd{os.getpid()}"
    host, ours = "10.213.77.2", "10.213.77.1"

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True)

    ip("netns", "add", name)
    try:
        ip("link", "add", f"{name}a", "type", "veth", "peer", "name", f"{name}b", "netns", name)
        ip("addr", "add", f"{ours}/30", "dev", f"{name}a")
        ip("link", "set", f"{name}a", "up")
        ip("-n", name, "addr", "add", f"{host}/30", "dev", f"{name}b")
        ip("-n", name, "link", "set", f"{name}b", "up")
        ip("-n", name, "link", "set", "lo", "up")
        yield name, host
    finally:
        ip("netns", "del", name)


def path_with_ssh(tmp_path: pathlib.Path, name: str, host: str) -> str:
    """Returns a PATH with an `ssh` that needs no server: it runs the command in a shell of the
    other host's namespace, with the caller's input and output."""
    ssh = tmp_path / "ssh"
    ssh.write_text(
        f'#!/bin/sh\necho "$@" >>{tmp_path}/asked\nwhile [ "$1" != {host} ]; do shift;'
        f' done\nshift\nexec ip netns exec {name} env -i PATH="$PATH" HOME=/ sh -c "$*"\n'
    )
    ssh.chmod(0o755)
    return f"{tmp_path}{os.pathsep}{os.environ['PATH']}"


def test_ranks_on_another_host_end_when_horovodrun_is_killed(
    start: Callable[..., Run], other_host: tuple[str, str], tmp_path: pathlib.Path
) -> None:
    name, host = other_host
    path = path_with_ssh(tmp_path, name, host)
    command = ["sh", "-c", "echo up $$; exec sleep 1000"]
    run = start("-np", "2", "-H", f"localhost:1,{host}:1", *command, PATH=path)
    pids = [run.wait_for(rf"\[{rank}\]<stdout>:up (\d+)")[1] for rank in (0, 1)]
    run.process.kill()
    run.process.wait()
    until(lambda: "ended its ranks" in run.said(), run.said)
    assert f"localhost/0, {host}/0" in run.said() and not any(is_there(pid) for pid in pids)


def test_ranks_on_another_host_are_started_over_ssh_and_end_with_it(
    start: Callable[..., Run], other_host: tuple[str, str], tmp_path: pathlib.Path
) -> None:
    name, host = other_host
    path = path_with_ssh(tmp_path, name, host)
    program = python(
        *HELLO,
        "print('place', hvd.rank(), hvd.local_rank(), hvd.local_size(), hvd.cross_rank(),"
        " hvd.cross_size(), os.environ['MINE'])",
        "print('sum', hvd.allreduce(torch.tensor(hvd.rank() + 1.0), op=hvd.Sum).item())",
    )
    code, said = start(
        "-np",
        "3",
        "-H",
        f"localhost:2,{host}:1",
        "-p",
        "2222",
        *program,
        PATH=path,
        MINE='it\'s "mine" $HOME',
    ).finish()
    assert code == 0, said
    for place in (
        "[0]<stdout>:place 0 0 2 0 2",
        "[1]<stdout>:place 1 1 2 0 1",
        "[2]<stdout>:place 2 0 1 1 2",
    ):
        assert f'{place} it\'s "mine" $HOME' in said, said
    assert said.count("sum 6.0") == 3
    asked = (tmp_path / "asked").read_text()
    assert "-p 2222" in asked and "SECRET" not in asked, (
        "no variable is seen in a list of processes"
    )
    # The remote rank ends when another one fails.
    run = start(
        "-np",
        "2",
        "-H",
        f"localhost:1,{host}:1",
        "sh",
        "-c",
        f"echo $$ >{tmp_path}/pid$HOROVOD_RANK; sleep 2; [ $HOROVOD_RANK = 0 ] && exit 3; exec"
        " sleep 100",
        PATH=path,
    )
    code, said = run.finish()
    assert code == 3, said
    deadline = time.monotonic() + 20
    pid = (tmp_path / "pid1").read_text().strip()
    while os.path.exists(f"/proc/{pid}") and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not os.path.exists(f"/proc/{pid}")


def elastic(
    start: Callable[..., Run], tmp_path: pathlib.Path, *arguments: str, **variables: str
) -> tuple[str, Run]:
    stop = str(tmp_path / "stop")
    return stop, start(
        *arguments, sys.executable, os.path.join(HERE, "horovod_elastic.py"), stop, **variables
    )


def finals(said: str) -> list[tuple[str, ...]]:
    return [
        tuple(line.split("final ")[1].split()[:3])
        for line in said.splitlines()
        if "<stdout>:final" in line
    ]


def test_survivors_of_a_kill_continue_and_a_new_one_joins(
    start: Callable[..., Run], tmp_path: pathlib.Path
) -> None:
    stop, run = elastic(start, tmp_path, "-np", "3", "--min-np", "2", "--max-np", "3")
    run.wait_for(r"committed 20 rank 2 of 3")
    pid = int(run.wait_for(r"begin 0 rank 1 of 3 pid (\d+)")[1])
    before = len(run.said())
    os.kill(pid, signal.SIGKILL)
    resumed = int(run.wait_for(r"resumed (\d+) rank 0 of 2", before)[1])
    run.wait_for(r"committed \d+ rank 1 of 2", before)
    run.wait_for(r"begin \d+ rank 2 of 3", before)
    after = len(run.said())
    run.wait_for(r"committed \d+ rank 2 of 3", after)
    open(stop, "w", encoding="ascii").close()
    code, said = run.finish()
    assert code == 0, said
    committed = [
        int(step) for step in re.findall(r"committed (\d+) rank 0 of 3", said[: before + 2000])
    ]
    assert resumed % 5 == 0 and resumed in committed, "from the last commit"
    assert len(finals(said)) == 3 and len(set(finals(said))) == 1, finals(said)
    # Named, with the rank that it was; each sample was done once but those after the commit that
    # was gone back to.
    assert (
        re.search(r"rank 1 \(localhost/\d #\d\) was lost", said)
        and "killed by signal 9 (SIGKILL)" in said
    ), said


def test_fewer_than_the_minimum_wait_until_a_host_comes(
    start: Callable[..., Run], tmp_path: pathlib.Path
) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("#!/bin/sh\necho localhost:2\n")
    hosts.chmod(0o755)

    def there_are(slots: int) -> None:
        (tmp_path / "new").write_text(f"#!/bin/sh\necho localhost:{slots}\n")
        (tmp_path / "new").chmod(0o755)
        os.rename(tmp_path / "new", hosts)

    stop, run = elastic(
        start, tmp_path, "-np", "2", "--min-np", "2", "--host-discovery-script", str(hosts)
    )
    run.wait_for(r"committed 10 rank 1 of 2")
    pid = int(run.wait_for(r"begin 0 rank 1 of 2 pid (\d+)")[1])
    there_are(1)
    time.sleep(2.5)  # for the script to be run again; nothing depends on its having been
    before = len(run.said())
    os.kill(pid, signal.SIGKILL)
    run.wait_for("an operation failed, back to the last commit", before)
    time.sleep(2)
    assert not re.search(r"resumed|committed \d+ rank 0 of 1", run.said()[before:]), "one waits"
    there_are(2)
    run.wait_for(r"committed \d+ rank 1 of 2", before + 1)
    run.wait_for(r"resumed \d+ rank 0 of 2", before)
    open(stop, "w", encoding="ascii").close()
    code, said = run.finish()
    assert code == 0 and len(set(finals(said))) == 1 and len(finals(said)) == 2, said


def test_a_host_whose_script_always_fails_is_blacklisted(start: Callable[..., Run]) -> None:
    code, said = start("-np", "1", "--min-np", "1", "sh", "-c", "exit 5").finish()
    assert code == 1 and "host localhost is blacklisted" in said and "exit code 5" in said, said


class FullDisk(io.StringIO):
    """Is a file on a full disk."""

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("fails", ["stdout", "directory", "catch"])
def test_output_that_cannot_be_forwarded_does_not_block_its_rank(
    fails: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def catch(line: bytes) -> bool:
        raise ValueError("unreadable line")

    (tmp_path / "file").touch()
    messages = io.StringIO()
    monkeypatch.setattr(sys, "stderr", messages)
    monkeypatch.setattr(sys, "stdout", FullDisk() if fails == "stdout" else io.StringIO())
    guard = processes.Watcher()
    process = processes.Process(
        guard,
        "rank 0",
        python("for _ in range(10_000): print('x' * 100)"),
        {},
        label="[0]",
        outputs=str(tmp_path / "file" / "below") if fails == "directory" else None,
        catch=catch if fails == "catch" else None,
    )
    deadline = time.monotonic() + SECONDS_MAX
    try:
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert process.poll() == 0, "the rank waits for its output to be read"
    finally:
        processes.end_all([process])
        guard.stop()
    assert "the stdout of [0] is no longer forwarded" in messages.getvalue()
