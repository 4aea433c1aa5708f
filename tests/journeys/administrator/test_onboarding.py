"""Tests docs/operating/onboarding.md step by step, as Unix users of one machine that the team
reaches by a name: an administrator gives access to a team of five."""

import os
import pathlib
import re
import shutil
from collections.abc import Iterator

import pytest

from tests import trainyard_server
from tests.journeys import shells

PAGE = pathlib.Path(trainyard_server.ROOT, "docs", "operating", "onboarding.md")
TEAM = ("ann", "bob", "cem", "dora", "eva")
FIRST_UID = 20_001  # unused
PROGRAMS = os.path.dirname(trainyard_server.PROGRAM)
CLIENTS = os.path.dirname(trainyard_server.TODAYS_AWS)


def blocks() -> list[tuple[str, str]]:
    """Returns (language, text) of each block of the page."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)


@pytest.fixture
def place() -> Iterator[pathlib.Path]:
    """Makes homes that ordinary users reach, since pytest's directories are closed."""
    path = pathlib.Path("/tmp") / f"trainyard-team-{os.getpid()}"
    path.mkdir(mode=0o755)
    yield path
    shutil.rmtree(path)


class Team:
    def __init__(self, place: pathlib.Path) -> None:
        self.place = place
        self.network = shells.Network({"yard.lan": "127.0.0.1"}, place)
        self.office = place / "office"
        self.office.mkdir(mode=0o700)
        self.admin = shells.Person(self.network, self.office, [PROGRAMS, CLIENTS])
        # A copy for members: the repository may be closed to them.
        programs = place / "bin"
        programs.mkdir()
        shutil.copy(trainyard_server.PROGRAM, programs)
        self.members: dict[str, shells.Person] = {}
        for number, name in enumerate(TEAM, FIRST_UID):
            home = place / name
            home.mkdir(mode=0o700)
            os.chown(home, number, number)
            self.members[name] = shells.Person(self.network, home, [str(programs)], user=number)

    def write(self, name: str, text: str) -> None:
        """Writes a file of the page: the administrator's, or each member's."""
        if name == "trainyard.toml":
            (self.office / name).write_text(text, encoding="utf-8")
            return
        for number, member in enumerate(TEAM, FIRST_UID):
            path = self.place / member / name
            path.write_text(text, encoding="utf-8")
            os.chown(path, number, number)

    def hand_over(self) -> None:
        for number, name in enumerate(TEAM, FIRST_UID):
            path = self.office / f"{name}.env"
            assert path.stat().st_mode & 0o077 == 0, "secret"
            shutil.move(path, self.place / name)
            os.chown(self.place / name / path.name, number, number)

    def run(self, person: shells.Person, command: str, expected: str) -> None:
        if command.endswith(" &"):
            command += f" echo $! > {self.office}/pid"
        code, shown = person.types(command)
        # The last line of the announcement may come after the prompt.
        if command.startswith("trainyard serve") and "\n  others " not in shown:
            found = person.sees("^  others .*\n")
            shown += person.shown[: found.end()].decode()
            person.shown = person.shown[found.end() :]
        # A refusal that the page shows is an error.
        assert (code != 0) == expected.startswith("trainyard: "), (command, code, shown)
        if expected:
            shells.check_shown(expected, shown, command)

    def read(self, language: str, text: str) -> None:
        """Runs one block of the page."""
        if language == "toml":
            title = re.match(r"# (\S+)\n", text)
            assert title, text
            return self.write(title[1], text)
        assert language == "console", language
        steps = list(shells.steps_of(text))
        if {who for who, _, _ in steps} == {""}:
            for _, command, expected in steps:
                self.run(self.admin, command, expected)
            return None
        if (self.office / "ann.env").exists():
            self.hand_over()
        # The page shows it for one member; each does the same.
        for name, person in self.members.items():
            for who, command, expected in steps:
                assert who == "ann"
                own = [re.sub(r"\bann\b", name, part) for part in (command, expected)]
                self.run(person, *own)
        return None

    def end(self) -> None:
        for person in (self.admin, *self.members.values()):
            person.leaves()
        shells.sweep(self.network, self.office / "team")
        self.network.end()


def test_a_team_of_five_from_nothing_to_the_first_job_of_each(place: pathlib.Path) -> None:
    team = Team(place)
    try:
        for language, text in blocks():
            team.read(language, text)
        code, shown = team.admin.types('trainyard jobs --json | grep -c \'"Status": "Completed"\'')
        assert (code, shown) == (0, "5\n")
        # The certificate authority of each member is the member's own.
        for name in TEAM:
            files = sorted((place / name).rglob("ca.pem"))
            assert len(files) == 1 and str(place / name) in str(files[0])
        # The last one to leave cannot come back.
        code, shown = team.members["eva"].types("trainyard jobs")
        assert code == 1 and "The security token included in the request is invalid" in shown
    finally:
        team.end()
