"""Tests the output of the CLI in a terminal: pages at every width, prompts, progress, help."""

import json
import pathlib
import re
import subprocess
import unicodedata
from collections.abc import Callable

import pytest

from tests import jobs, nodes, trainyard_server
from tests.terminals import Terminal
from tests.trainyard_server import Server

WAIT = trainyard_server.WAIT_SECONDS_MAX
WIDTHS = (60, 80, 120, 200)
UTF8 = {"LC_ALL": "C.UTF-8"}
PLAIN = UTF8 | {"NO_COLOR": "1"}
LONG = "pytorch-training-2026-11-24-08-21-03-815"
# A title for the window, an erased screen, text that runs backwards, and a broken UTF-8 sequence
# that hides an escape.
HOSTILE = "\033]0;owned\a\033[2J\u202e訓練 failed: tensor size mismatch in layer 7 of the encoder"


@pytest.fixture(scope="module")
def server(start: Callable[..., Server]) -> Server:
    # Capacity for every job that a test leaves running.
    return start(
        '[jobs]\nstop_grace_seconds = 1\n\n[[machine]]\nname = "box"\ncpus = 16\nmemory_gib = 32\n',
        bucket="yard",
    )


def run(server: Server, *arguments: str, code: int = 0) -> str:
    done = subprocess.run(
        [trainyard_server.PROGRAM, *arguments],
        env=server.environment() | UTF8,
        capture_output=True,
        text=True,
        timeout=WAIT,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


def shown_at(server: Server, columns: int, *arguments: str) -> str:
    """Returns the output of a command in a terminal, without its colours."""
    with Terminal(server, *arguments, columns=columns, environment=UTF8) as terminal:
        assert terminal.ends() == 0, terminal.shown
        return re.sub("\033\\[[0-9;]*m", "", terminal.shown).replace("\r\n", "\n")


def width(line: str) -> int:
    wide = sum(unicodedata.east_asian_width(each) in "WF" for each in line)
    return len(line) + wide - sum(unicodedata.combining(each) > 0 for each in line)


@pytest.fixture(scope="module")
def batch_id(server: Server) -> str:
    """Starts a Batch job that runs, next to a failed training job; returns its id."""
    server.boto("sagemaker").create_training_job(
        **jobs.request(
            LONG,
            'printf %s "$WHY" > /opt/ml/output/failure; exit 1',
            Environment={"WHY": HOSTILE},
            Tags=[
                {"Key": "note", "Value": "a value that is longer than a line of a terminal " * 4}
            ],
        )
    )
    jobs.wait_until(server.boto("sagemaker"), LONG)
    server.boto("sagemaker").create_training_job(**jobs.request("too-large", hosts=20))
    batch = server.boto("batch")
    running = nodes.submit(
        batch, nodes.make_queue(batch), nodes.container("sleep 600"), jobName="digits"
    )
    nodes.wait_until(batch, running, ("RUNNING",))
    return running


@pytest.mark.parametrize("columns", WIDTHS)
def test_pages_fit_the_terminal(server: Server, batch_id: str, columns: int) -> None:
    pages = {
        "jobs": shown_at(server, columns, "jobs"),
        "describe": shown_at(server, columns, "describe", LONG),
        "describe Batch": shown_at(server, columns, "describe", batch_id),
        "top": shown_at(server, columns, "top", "--once"),
        "cost": shown_at(server, columns, "cost", "--by", "job"),
    }
    for name, page in pages.items():
        for line in page.splitlines():
            assert width(line) <= columns, f"{name} at {columns}: {line!r}"
        assert not re.search("[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u202e]", page), (
            f"{name}: {page!r}"
        )
    listed = pages["jobs"]
    assert re.search(rf"^digits +{batch_id[:8]} +InProgress", listed, re.M), listed
    assert batch_id not in listed
    assert re.search(r" Failed( |$)", listed, re.M), listed
    # Words are not split, at any width.
    reason = re.sub(r"\s+", " ", listed)
    assert "needs capacity for 20 hosts, and all machines together" in reason, listed
    described = re.sub(r"\s+", " ", pages["describe"])
    assert "訓練 failed: tensor size mismatch in layer 7 of the encoder" in described
    assert batch_id in pages["describe Batch"], "the page of a job has its whole id"


def test_without_a_terminal_nothing_is_cut(server: Server, batch_id: str) -> None:
    listed = run(server, "jobs")
    assert batch_id in listed and LONG in listed and "\033" not in listed
    waits = [line for line in listed.splitlines() if "needs capacity for 20 hosts" in line]
    assert len(waits) == 1 and waits[0].startswith("too-large "), listed
    described = run(server, "describe", LONG)
    assert "a value that is longer than a line of a terminal " * 3 in described


def test_a_short_id_is_an_id(server: Server, batch_id: str) -> None:
    assert batch_id in run(server, "describe", batch_id[:8])


def request_file(directory: pathlib.Path, name: str, script: str) -> str:
    (directory / "data").mkdir()
    (directory / "more").mkdir()
    (directory / "data" / "rows").write_bytes(bytes(1 << 20))
    (directory / "more" / "rows").write_bytes(bytes(1 << 10))
    path = directory / "job.toml"
    path.write_text(
        f'name = "{name}"\nimage = "trainyard/host"\n'
        f'command = ["/bin/sh", "-c", {json.dumps(script)}]\n'
        'instance_type = "ml.t3.medium"\noutput = "s3://yard/models"\n'
        'channels = {train = "./data", test = "./more"}\n'
    )
    return str(path)


@pytest.mark.parametrize(
    "keys, code, status",
    [("s", 4, "Stopped"), ("\x03", 130, "InProgress"), ("\r", 130, "InProgress")],
    ids=["s", "ctrl-c", "enter"],
)
def test_ctrl_c_asks_and_waits_for_a_key(
    server: Server, tmp_path: pathlib.Path, keys: str, code: int, status: str
) -> None:
    name = f"asked-{code}-{ord(keys)}"
    path = request_file(tmp_path, name, "echo begun; sleep 600")
    with Terminal(server, "submit", path, "--follow", environment=PLAIN) as terminal:
        terminal.until("algo-1 │ begun")
        terminal.type("\x03")
        terminal.until(r"Stop the job\? \[s: stop it; Enter or Ctrl-C: leave it running\]")
        # Waiting, other keys and a new window size do not answer the prompt.
        run(server, "jobs")
        terminal.type("x")
        terminal.type("\033[A")
        terminal.resize(90, 30)
        run(server, "jobs")
        assert terminal.process.poll() is None, terminal.shown
        terminal.type(keys)
        assert terminal.ends() == code, terminal.shown
        assert ("is stopping" if code == 4 else f"{name} keeps running") in terminal.shown
        assert terminal.is_as_before()
    sagemaker = server.boto("sagemaker")
    if code == 4:
        assert jobs.wait_until(sagemaker, name)["TrainingJobStatus"] == status
    else:
        described = sagemaker.describe_training_job(TrainingJobName=name)
        assert described["TrainingJobStatus"] == status
        sagemaker.stop_training_job(TrainingJobName=name)


def test_progress_goes_to_standard_error(server: Server, tmp_path: pathlib.Path) -> None:
    path = request_file(tmp_path, "progress", "true")
    done = subprocess.run(
        [trainyard_server.PROGRAM, "submit", path],
        env=server.environment() | UTF8,
        capture_output=True,
        text=True,
        timeout=WAIT,
    )
    assert done.returncode == 0 and done.stdout == "progress\n", done
    for channel in ("train", "test"):
        assert len(re.findall(f"upload {channel} ", done.stderr)) == 1, "one bar for each upload"
    assert done.stderr.count("100%") == 2, done.stderr
    # In a command substitution, too: the terminal shows the bars, and the variable gets the name.
    script = f'J=$("{trainyard_server.PROGRAM}" submit {path} --name again) && echo "<$J>"'
    with Terminal(server, "-c", script, program="/bin/sh", environment=UTF8) as terminal:
        assert terminal.ends() == 0, terminal.shown
        assert "<again>" in terminal.shown and "100%" in terminal.shown
    # Afterwards the terminal shows one line for each upload.
    stays = re.sub(r"[^\n]*\n\033\[1A\r\033\[J", "", terminal.shown.replace("\r\n", "\n"))
    assert len(re.findall(r"upload train .*100%", stays)) == 1, stays


def test_channels_are_shown_before_the_first_line_of_the_log(
    server: Server, tmp_path: pathlib.Path
) -> None:
    path = request_file(tmp_path, "channels", "echo epoch 1; sleep 600")
    with Terminal(server, "submit", path, "--follow", environment=PLAIN) as terminal:
        for channel in ("test", "train"):
            terminal.until(rf"channel {channel} .*100%")
        terminal.until("algo-1 │ epoch 1")
    server.boto("sagemaker").stop_training_job(TrainingJobName="channels")


def test_the_status_is_never_older_than_the_log(server: Server, tmp_path: pathlib.Path) -> None:
    path = request_file(tmp_path, "ahead", "echo begun; sleep 600")
    with Terminal(server, "submit", path, "--follow", environment=PLAIN) as terminal:
        terminal.until("ahead  InProgress Starting")
        terminal.until("algo-1 │ begun")
        shown = ""
        while "ahead  InProgress Training" not in shown:
            shown += terminal.until(r"[^\n]*\n").group()
        assert "Starting" not in shown and "Downloading" not in shown, shown
    server.boto("sagemaker").stop_training_job(TrainingJobName="ahead")


def test_an_address_in_use_is_reported_once(server: Server, tmp_path: pathlib.Path) -> None:
    address = server.env["AWS_ENDPOINT_URL"].split("//")[1]
    printed = run(server, "serve", "--data", str(tmp_path), "--listen", address, code=1)
    assert printed.count("Address already in use") == 1 and printed.count("listening on") == 1, (
        printed
    )


def test_help_fits_eighty_columns(server: Server) -> None:
    overview = run(server, "--help")
    commands = re.findall(r"^  ([a-z]+) ", overview, re.M)
    assert {"jobs", "submit", "serve", "doctor"} <= set(commands)
    for text in (overview, *(run(server, command, "--help") for command in commands)):
        for line in text.splitlines():
            assert len(line) <= 80, line


@pytest.mark.parametrize("command", ["jobs", "describe", "cost", "campaign"])
def test_json_is_the_raw_api_response(server: Server, command: str) -> None:
    text = " ".join(run(server, command, "--help").split())
    assert re.search(r"--json raw API response\b", text), text


@pytest.mark.parametrize(
    "arguments, code, message",
    [
        (("jobs", "extra"), 2, "unexpected argument 'extra'"),
        (("jobs", "--since", "1w"), 1, "invalid duration '1w': use 90s, 15m, 2h or 1d"),
        (
            ("jobs", "--status", "Running"),
            1,
            "unknown status 'Running': one of InProgress, Completed, Failed, Stopping, Stopped",
        ),
        (("descrbe", "x"), 2, "unknown command 'descrbe'; did you mean `trainyard describe`?"),
    ],
    ids=["argument", "duration", "status", "command"],
)
def test_errors_say_what_to_type(
    server: Server, arguments: tuple[str, ...], code: int, message: str
) -> None:
    assert message in run(server, *arguments, code=code)


@pytest.mark.parametrize("columns", WIDTHS)
def test_messages_and_findings_break_at_words(server: Server, columns: int) -> None:
    pages = []
    for arguments in (("describe", "missing"), ("jobs", "--status", "Running")):
        with Terminal(server, *arguments, columns=columns, environment=PLAIN) as terminal:
            assert terminal.ends() == 1
        pages.append(terminal.shown)
        piped = run(server, *arguments, code=1)
        assert len(piped.splitlines()) == 1, piped
        assert terminal.shown.split() == piped.split(), "no word is broken"
    pages.append(shown_at(server, columns, "doctor", "--data", server.data))
    assert re.search(r"^ok +OCI runtime\b", pages[-1], re.M), pages[-1]
    for page in pages:
        assert all(width(line) <= columns for line in page.splitlines()), page
    findings = run(server, "doctor", "--data", server.data)
    assert re.search(r"^(ok|limited) +disk {19}\S.*$", findings, re.M), findings
