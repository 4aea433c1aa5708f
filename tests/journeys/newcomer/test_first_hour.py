"""Tests the first hour of a new user, who starts the server, runs, inspects and stops a first job,
and gets help for mistyped commands. Each test is a step; the steps share a server and a shell."""

import os
import pathlib
import re
from collections.abc import Iterator

import pytest

from tests import trainyard_server
from tests.journeys import shells

pytestmark = pytest.mark.in_order
PROGRAMS = os.path.dirname(trainyard_server.PROGRAM)
JOB = """\
image = "trainyard/host"
command = "sh -c 'echo hello; echo loss=0.25; echo weights > /opt/ml/model/weights'"
instance_type = "ml.m5.large"
output = "s3://yard/models"
"""


class Newcomer(shells.Person):
    def does(self, command: str) -> str:
        """Runs a command that must succeed."""
        code, shown = self.types(command)
        assert code == 0, (command, code, shown)
        return shown

    def errs(self, command: str) -> str:
        """Runs a command that must fail."""
        code, shown = self.types(command)
        assert code != 0, (command, shown)
        return shown

    def starts_the_server(self) -> str:
        """Starts the server and returns its first output, which may follow the prompt."""
        shown = self.does("trainyard serve --log-file server.log &")
        if "\n  clients " not in shown:
            found = self.sees("^  clients .*\n")
            shown += self.shown[: found.end()].decode()
            self.shown = self.shown[found.end() :]
        return shown


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Newcomer]:
    home = tmp_path_factory.mktemp("newcomer")
    network = shells.Network({}, home)
    person = Newcomer(network, home, [PROGRAMS, os.path.dirname(trainyard_server.TODAYS_AWS)])
    yield person
    person.leaves()
    shells.sweep(network, home / ".local" / "share" / "trainyard")
    network.end()


@pytest.fixture(scope="module")
def home(newcomer: Newcomer) -> pathlib.Path:
    return pathlib.Path(newcomer.does("pwd").strip())


def test_1_the_overview_lists_the_commands(newcomer: Newcomer) -> None:
    shown = newcomer.does("trainyard")
    for command in ("serve", "env", "submit", "jobs", "user", "status"):
        assert re.search(rf"^  {command} ", shown, re.M)


def test_2_without_a_server_each_command_says_how_to_start_one(newcomer: Newcomer) -> None:
    for command in ("trainyard env", "trainyard jobs", "trainyard status"):
        assert "start `trainyard serve" in newcomer.errs(command)


def test_3_the_server_announces_where_it_is(newcomer: Newcomer, home: pathlib.Path) -> None:
    shown = newcomer.starts_the_server()
    assert "trainyard listens on http://127.0.0.1:4566\n" in shown
    assert f"  data    {home}/.local/share/trainyard\n" in shown
    newcomer.does('eval "$(trainyard env)"')
    assert newcomer.does("aws sts get-caller-identity --query Account --output text").strip()


def test_4_a_second_server_says_who_has_the_data(newcomer: Newcomer) -> None:
    shown = newcomer.errs("trainyard serve --listen 127.0.0.1:4567")
    assert "taking the data directory" in shown and "process" in shown


def test_5_the_first_job_runs_to_its_end(newcomer: Newcomer, home: pathlib.Path) -> None:
    (home / "first.toml").write_text(JOB, encoding="utf-8")
    assert "make_bucket: yard" in newcomer.does("aws s3 mb s3://yard")
    shown = newcomer.does("trainyard submit first.toml --name first --follow")
    assert "algo-1 | hello" in shown
    assert re.search(r"^first Completed after ", shown, re.M)
    newcomer.does("aws s3 cp s3://yard/models/first/output/model.tar.gz .")
    assert newcomer.does("tar -xzOf model.tar.gz weights") == "weights\n"


def test_6_the_job_can_be_looked_at(newcomer: Newcomer) -> None:
    assert re.search(r"^first .*Completed", newcomer.does("trainyard jobs"), re.M)
    assert "loss=0.25" in newcomer.does("trainyard logs first")
    assert "s3://yard/models/first/output/model.tar.gz" in newcomer.does("trainyard describe first")
    # A job that has just ended may still be listed by its last state.
    assert re.search(r"^jobs +(none|1 completed)", newcomer.does("trainyard status"), re.M)


def test_7_a_job_that_fails_says_why(newcomer: Newcomer, home: pathlib.Path) -> None:
    failing = JOB.replace("echo hello;", "echo no data found >&2; exit 3;")
    (home / "fails.toml").write_text(failing, encoding="utf-8")
    code, shown = newcomer.types("trainyard submit fails.toml --name fails --follow")
    assert code == 3
    assert "no data found" in shown and re.search(r"^fails Failed .*exit code:? 3", shown, re.M)


@pytest.mark.parametrize(
    ("command", "answers"),
    [
        ("trainyard jbos", ["did you mean `trainyard jobs`?"]),
        ("trainyard jobs --stats Failed", ["--status"]),
        ("trainyard logs", ["missing argument JOB"]),
        ("trainyard describe frist", ["'frist' not found", "`trainyard jobs` lists"]),
        ("trainyard submit missing.toml", ["missing.toml", "No such file"]),
        ("trainyard submit first.toml --name first", ["already exists"]),
        ("trainyard user add", ["missing argument NAME"]),
        ("trainyard env --user bob", ["'bob' not found", "trainyard user add bob"]),
        ("trainyard env --endpoint yard.lan", ["invalid endpoint", "https://HOST:PORT"]),
        ("trainyard serve --config missing.toml", ["reading the config", "missing.toml"]),
        ("trainyard serve --data other --listen nowhere", ["nowhere"]),
    ],
    ids=[
        "a command",
        "an option",
        "no job",
        "a job",
        "a file",
        "a name twice",
        "no user",
        "a user",
        "an endpoint",
        "a config",
        "an address",
    ],
)
def test_8_what_is_typed_wrong_is_answered(
    newcomer: Newcomer, command: str, answers: list[str]
) -> None:
    shown = newcomer.errs(command)
    for answer in answers:
        assert answer in shown, shown
    assert len(shown.splitlines()) <= 3, "a sentence, not a page"


def test_9_the_server_stops_and_starts_again_with_everything(newcomer: Newcomer) -> None:
    newcomer.does("kill $!; wait $!")
    newcomer.starts_the_server()
    assert re.search(r"^first .*Completed", newcomer.does("trainyard jobs"), re.M)
