"""The state machines of jobs, as ARCHITECTURE.md and a header draw them, have exactly the
transitions of the code: those that the tables of domain_test.cpp list, which are tested against
every pair of a state and an event."""

from __future__ import annotations

import re

import pytest

from tests.tidy import sources

HEADER = "src/foundation/domain/job_state.hpp"
TABLES = "src/foundation/domain/domain_test.cpp"
# Abbreviations of the pictures. The event `finish` is the one that leads to the state:
FINISH = {"completed": "complete", "failed": "fail", "stopped": "finish_stopped"}
NOT_FINISHED = "each of these except finished"  # the states on the machine's first line
ARROW = re.compile(r"\s+-+(?:([a-z]+)-+)?>\s+")  # "--place-->" and, of hosts, "->"

Transitions = set[tuple[str, str, str]]  # (state, event, next state); hosts have no events


def enum(name: str) -> list[str]:
    found = re.search(rf"enum class {name} {{([^}}]*)}}", sources.code(HEADER))
    assert found, name
    return re.findall(r"\w+", found[1])


def legal(machine: str) -> Transitions:
    """The transitions of the table `expected` in the test of the job's or the attempt's states."""
    states, events = enum(f"{machine}State"), enum(f"{machine}Event")
    test = sources.code(TABLES).split(f"TEST({machine}State, AllowsExactlyTheListedTransitions)")[1]
    table = test.split("expected[", 1)[1].split("for (", 1)[0]
    rows = [re.findall(r"(\w+)(?=[,}])", row) for row in re.findall(r"{([^{}]*})", table)]
    assert len(rows) == len(states) and all(len(row) == len(events) for row in rows), rows
    return {
        (state, event, to)
        for state, row in zip(states, rows, strict=True)
        for event, to in zip(events, row, strict=True)
        if to != "no"
    }


def legal_of_hosts() -> Transitions:
    """A host moves to the next state, or skips some (which the pictures say), and from each state
    to failed or lost."""
    states = enum("HostState")
    path = states[: states.index("finished") + 1]
    steps = {(one, "", two) for one, two in zip(path, path[1:])}
    return steps | {(state, "", end) for state in path[:-1] for end in ("failed", "lost")}


def pictures(text: str) -> dict[str, list[str]]:
    """machine -> its lines, without remarks in parentheses. An empty line ends a machine."""
    found: dict[str, list[str]] = {}
    machine = ""
    for line in text.splitlines():
        line = line.removeprefix("//").split("(")[0].replace("─", "-").replace("►", ">").rstrip()
        if named := re.match(r" +(job|attempt|host)  +", line):
            machine, line = named[1], line[named.end() :]
        if not line:
            machine = ""
        elif machine and ARROW.search(line):
            found.setdefault(machine, []).append(line.strip())
    return found


def drawn(lines: list[str]) -> Transitions:
    """The transitions of lines such as "a --event--> b | c --other--> d"."""
    found: Transitions = set()
    path = ARROW.sub("\n", lines[0]).split("\n")
    for line in lines:
        groups = [
            path[:-1] if node == NOT_FINISHED else re.split(r" *\| *", node)
            for node in ARROW.sub("\n", line).split("\n")
        ]
        for starts, event, ends in zip(groups, ARROW.findall(line), groups[1:]):
            found |= {
                (start, FINISH.get(end, "") if event == "finish" else event, end)
                for start in starts
                for end in ends
            }
    return found


def drawn_in_the_architecture() -> dict[str, list[str]]:
    section = sources.read("ARCHITECTURE.md").split("## The life of a job", 1)[1]
    return pictures(section.split("```")[1])


@pytest.mark.parametrize("where", ["ARCHITECTURE.md", HEADER])
def test_pictures_have_the_transitions_of_the_code(where: str) -> None:
    of_machine = pictures(sources.read(HEADER)) if where == HEADER else drawn_in_the_architecture()
    assert of_machine.keys() == {"job", "attempt", "host"}
    for machine, expected in (
        ("job", legal("Job")),
        ("attempt", legal("Attempt")),
        ("host", legal_of_hosts()),
    ):
        found = drawn(of_machine[machine])
        assert found == expected, (
            f"{where}: {machine}: not legal: {sorted(found - expected)};"
            f" missing: {sorted(expected - found)}"
        )


def test_transitions_are_read() -> None:
    text = """
// About next().
//   job   a --go--> b --finish--> completed | failed   (a remark -> no)
//         a | b ──lose──► c
//
//   host  x -> y -> finished
//         each of these except finished -> failed
//
//   other z --go--> z
"""
    found = pictures(text)
    assert found.keys() == {"job", "host"}
    assert drawn(found["job"]) == {
        ("a", "go", "b"),
        ("b", "complete", "completed"),
        ("b", "fail", "failed"),
        ("a", "lose", "c"),
        ("b", "lose", "c"),
    }
    assert drawn(found["host"]) == {
        ("x", "", "y"),
        ("y", "", "finished"),
        ("x", "", "failed"),
        ("y", "", "failed"),
    }
    assert ("waiting", "place", "active") in legal("Job")
    assert ("starting", "place", "active") not in legal("Attempt")
    assert enum("JobState")[0] == "waiting"
