"""Starts the processes of ranks, locally or over ssh, forwards their output, and ends them with all
their children."""

from __future__ import annotations

import base64
import contextlib
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import IO, Callable, TextIO

from horovod.runner import watcher
from horovod.runner.watcher import GRACE_SECONDS

_print_lock = threading.Lock()
_DROPPED_BYTES = 1 << 16  # bytes that are read at once from output that cannot be forwarded
Catch = Callable[[bytes], bool]  # receives a line; returns True if it is not to be printed

# The script that a remote shell reads from ssh's input, so that variables, such as the secret, are
# not visible in a list of processes. The command is ended when the connection ends, since then its
# launcher has ended.
_REMOTE = """cd {folder} 2>/dev/null || true
{exports}
exec 3<&0
setsid {command} </dev/null 3<&- &
child=$!
( cat <&3 >/dev/null; kill -s TERM -- -$child; sleep {grace}; kill -s KILL -- -$child
) 2>/dev/null &
watch=$!
wait $child
code=$?
kill $watch 2>/dev/null
exit $code
"""


def remote_script(command: Sequence[str], variables: Mapping[str, str], folder: str) -> str:
    exports = "\n".join(
        f"export {name}={shlex.quote(value)}" for name, value in sorted(variables.items())
    )
    return _REMOTE.format(
        folder=shlex.quote(folder),
        exports=exports,
        command=" ".join(shlex.quote(word) for word in command),
        grace=GRACE_SECONDS,
    )


def _alone(*words: str) -> list[str]:
    """Returns the command of watcher.py, independent of variables and packages."""
    return [sys.executable, "-I", "-S", watcher.__file__, *words]


class Watcher:
    """A process that ends the ranks if this process is killed (watcher.py)."""

    def __init__(self) -> None:
        # In a session of its own, so that it does not receive signals to our process group.
        self._process = subprocess.Popen(
            _alone(), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
        )

    def started(self, group: int, local: bool, name: str) -> None:
        self._tell(f"+ {group} {'local' if local else 'remote'} {name}\n")

    def gone(self, group: int) -> None:
        self._tell(f"- {group}\n")

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the watcher was killed: ranks run without one
            os.write(self._process.stdin.fileno(), line.encode())

    def stop(self) -> None:
        """Ends the watcher. Requires: all processes have ended."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


class Process:
    """The process of one rank. `name`: in messages of the watcher. `label`: the prefix of its
    output. `catch(line)` returns True for lines that are not to be printed."""

    def __init__(
        self,
        guard: Watcher,
        name: str,
        command: Sequence[str],
        variables: Mapping[str, str],
        host: str | None = None,
        ssh: Sequence[str] = (),
        label: str = "",
        folder: str | None = None,
        outputs: str | None = None,
        catch: Catch | None = None,
        timestamps: bool = False,
    ) -> None:
        self.host, self.label, self._timestamps, self._catch = host, label, timestamps, catch
        self._watcher, self._is_gone = guard, False
        if host is None:
            self._process = subprocess.Popen(
                _alone(*command),
                env={**os.environ, **variables},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            guard.started(self.pid, True, name)
            assert self._process.stdin is not None
            with contextlib.suppress(BrokenPipeError):  # the process was already killed
                os.write(self._process.stdin.fileno(), b"\n")
            self._process.stdin.close()
        else:
            line = (
                base64.b64encode(remote_script(command, variables, folder or os.getcwd()).encode())
                + b"\n"
            )
            # An incomplete line starts nothing.
            shell = 'exec sh -c \'IFS= read -r line && eval "$(printf %s "$line" | base64 -d)"\''
            self._process = subprocess.Popen(
                [*ssh, host, shell],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            guard.started(self.pid, False, name)
            assert self._process.stdin is not None
            self._process.stdin.write(line)
            self._process.stdin.flush()  # and left open: its end is the remote side's signal
        self._readers = []
        for name, stream, ours in (
            ("stdout", self._process.stdout, sys.stdout),
            ("stderr", self._process.stderr, sys.stderr),
        ):
            reader = threading.Thread(
                target=self._pass_on, args=(name, stream, ours, outputs), daemon=True
            )
            reader.start()
            self._readers.append(reader)

    def _pass_on(self, name: str, stream: IO[bytes], ours: TextIO, outputs: str | None) -> None:
        """Forwards the output. After an error it drops the rest: a pipe that is not read blocks the
        rank, and with it all others."""
        try:
            self._forward(name, stream, ours, outputs)
        except Exception as fault:  # the pipe must be read after any failure
            with contextlib.suppress(Exception), _print_lock:
                sys.stderr.write(
                    f"horovodrun: the {name} of {self.label or f'process {self.pid}'} is no longer"
                    f" forwarded: {fault}\n"
                )
                sys.stderr.flush()
            while stream.read(_DROPPED_BYTES):
                pass

    def _forward(self, name: str, stream: IO[bytes], ours: TextIO, outputs: str | None) -> None:
        with contextlib.ExitStack() as closing:
            file = None
            if outputs:
                os.makedirs(outputs, exist_ok=True)
                file = closing.enter_context(open(os.path.join(outputs, name), "wb"))
            for line in stream:
                if self._catch and name == "stdout" and self._catch(line):
                    continue
                if file:
                    file.write(line)
                    file.flush()
                    continue
                text = line.decode(errors="replace")
                stamp = time.strftime("%a %b %d %H:%M:%S %Y") if self._timestamps else ""
                with _print_lock:
                    ours.write(f"{stamp}{self.label}<{name}>:{text}" if self.label else text)
                    if not text.endswith("\n"):
                        ours.write("\n")
                    ours.flush()

    @property
    def pid(self) -> int:
        return self._process.pid

    def poll(self) -> int | None:
        code = self._process.poll()
        if code is not None:
            self._signal(0)
        return code

    def _signal(self, number: int) -> None:
        """Sends a signal to the process group. A group that has ended gets no further signals,
        since its number may be reused."""
        if not self._is_gone and not watcher.signal_group(self.pid, number):
            self._is_gone = True
            self._watcher.gone(self.pid)

    def drain(self) -> None:
        """Waits after the end of the process until its last lines are printed, or until a timeout
        if a child keeps its output open."""
        for reader in self._readers:
            reader.join(1)

    def terminate(self) -> None:
        if self.poll() is None:
            if self.host is None:
                self._signal(signal.SIGTERM)
            elif self._process.stdin is not None:
                self._process.stdin.close()  # the remote side waits for this

    def kill(self) -> None:
        self._signal(signal.SIGKILL)  # also ends its children, if the process has already ended
        self._watcher.gone(self.pid)


def end_all(processes: Sequence[Process]) -> None:
    """Sends SIGTERM to all, waits, and ends those that remain."""
    for each in processes:
        each.terminate()
    deadline = time.monotonic() + GRACE_SECONDS
    while any(each.poll() is None for each in processes) and time.monotonic() < deadline:
        time.sleep(0.05)
    for each in processes:
        each.kill()
    for each in processes:
        while each.poll() is None:
            time.sleep(0.01)
        each.drain()


def how_it_ended(code: int) -> str:
    """Describes the end of a process; "" for a successful one."""
    if code == 0:
        return ""
    number = -code if code < 0 else code - 128
    if code < 0 or 128 < code < 128 + signal.NSIG:
        try:
            return f"killed by signal {number} ({signal.Signals(number).name})"
        except ValueError:
            pass
    return f"exit code {code}"
