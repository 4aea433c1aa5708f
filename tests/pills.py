"""Makes requests with extreme numbers from the service models: for every numeric member of every
operation that the server implements.

A request is an example from a table (valid except for the extreme number), or is generated from the
operation's shape: its required members, and the members on the path to the number."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import botocore.session
from botocore.model import OperationModel, Shape

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OPERATIONS = os.path.join(ROOT, "src", "api", "shapes", "operations.txt")
OWN_MODELS = os.path.join(ROOT, "src", "api", "shapes", "models")
PILLS = (0, 1, -1, 2**31 - 1, 2**31, 2**32, 2**63 - 1, -(2**31), -(2**63))
TEXT_PILLS = (
    "0",
    "1",
    "-1",
    str(2**31),
    str(2**32),
    str(2**63 - 1),
    str(2**64),
    "9" * 40,
    "1e308",
    "NaN",
)
NUMBERS = ("integer", "long", "short", "float", "double", "timestamp")
DEPTH_MAX = 12
Path = tuple[str | int, ...]  # steps: a member's name, an index
Pill = str | int
Value = Any  # of a request
Known = Mapping[str, Any]  # member -> what it must name
JSON_TEXT = "(JSON)"  # a step of a path: into the document that a text is


def models() -> botocore.session.Session:
    session = botocore.session.get_session()
    session.get_component("data_loader").search_paths.append(OWN_MODELS)
    return session


def operations() -> Iterator[tuple[str, OperationModel]]:
    """Yields (service, operation model) for all operations that the server implements."""
    session, found = models(), {}
    with open(OPERATIONS, encoding="utf-8") as file:
        for line in file:
            words = line.split("#")[0].split()
            if len(words) == 2:
                if words[0] not in found:
                    found[words[0]] = session.get_service_model(words[0])
                yield words[0], found[words[0]].operation_model(words[1])


def numeric_paths(
    shape: Shape | None, path: Path = (), above: tuple[str, ...] = ()
) -> Iterator[Path]:
    """Yields the paths of all numbers that a shape may contain; for lists of the first element, for
    maps of one value."""
    if shape is None or shape.name in above or len(path) > DEPTH_MAX:
        return
    above = (*above, shape.name)
    if shape.type_name == "structure":
        for name, member in shape.members.items():
            # not a number of the request: how long it is
            if member.serialization.get("name") != "Content-Length":
                yield from numeric_paths(member, (*path, name), above)
    elif shape.type_name == "list":
        yield from numeric_paths(shape.member, (*path, 0), above)
    elif shape.type_name == "map":
        yield from numeric_paths(shape.value, (*path, "a"), above)
    elif shape.type_name in NUMBERS:
        yield path


def made_up(shape: Shape, known: Known, depth: int = 0) -> Value:
    """Generates a value of a shape: required members only, names from `known`."""
    kind = shape.type_name
    if kind == "structure":
        if depth > DEPTH_MAX:
            return {}
        members = {
            name: known[name] if name in known else made_up(shape.members[name], known, depth + 1)
            for name in shape.required_members
        }
        if not members and getattr(shape, "is_tagged_union", False) and shape.members:
            name = next(iter(shape.members))
            members[name] = made_up(shape.members[name], known, depth + 1)
        return members
    if kind == "list":
        return [made_up(shape.member, known, depth + 1)]
    if kind == "map":
        return {"a": made_up(shape.value, known, depth + 1)}
    if kind == "boolean":
        return False
    if kind in NUMBERS:
        return max(1, int(shape.metadata.get("min", 1)))
    if kind == "blob":
        return b"x"
    return (
        shape.enum[0]
        if getattr(shape, "enum", None)
        else "x" * max(1, int(shape.metadata.get("min", 1)))
    )


def with_number(shape: Shape, value: Value, path: Path, pill: Pill, known: Known) -> Value:
    """Returns the value with the extreme number at the path; missing members on the path are
    generated."""
    if not path:
        return pill
    step, rest = path[0], path[1:]
    if shape.type_name == "structure":
        member = shape.members[step]
        value = dict(value)
        inner = value.get(step)
        value[step] = with_number(
            member, made_up(member, known) if inner is None else inner, rest, pill, known
        )
        return value
    member = shape.member if shape.type_name == "list" else shape.value
    if shape.type_name == "list":
        value = list(value) or [made_up(member, known)]
        value[0] = with_number(member, value[0], rest, pill, known)
        return value
    value = dict(value)
    key = next(iter(value), step)
    value[key] = with_number(member, value.get(key, made_up(member, known)), rest, pill, known)
    return value


def text_paths(value: Value, path: Path = ()) -> Iterator[Path]:
    """Yields the paths of numbers that are written as text, and of all numbers of documents in
    texts."""
    if isinstance(value, dict):
        for key, member in value.items():
            yield from text_paths(member, (*path, key))
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from text_paths(member, (*path, index))
    elif isinstance(value, str) and value.isdigit():
        yield path
    elif isinstance(value, str) and value.startswith("{"):
        yield from ((*path, JSON_TEXT, *inner) for inner in all_paths(json.loads(value)))


def all_paths(value: Value, path: Path = ()) -> Iterator[Path]:
    if isinstance(value, (dict, list)):
        for key, member in value.items() if isinstance(value, dict) else enumerate(value):
            yield from all_paths(member, (*path, key))
    elif (isinstance(value, (int, float)) and not isinstance(value, bool)) or (
        isinstance(value, str) and value.isdigit()
    ):
        yield path


def at(value: Value, path: Path) -> Value:
    for step in path:
        value = json.loads(value) if step == JSON_TEXT else value[step]
    return value


def replaced(value: Value, path: Path, pill: Pill) -> Value:
    if not path:
        return str(pill) if isinstance(value, str) else pill
    if path[0] == JSON_TEXT:
        return json.dumps(replaced(json.loads(value), path[1:], pill))
    value = copy.copy(value)
    value[path[0]] = replaced(value[path[0]], path[1:], pill)
    return value


def variants(model: OperationModel, examples: Sequence[Value], known: Known) -> Iterator[Value]:
    """Yields all requests of an operation with one extreme number."""
    shape = model.input_shape
    for example in examples or [made_up(shape, known)]:
        for path in numeric_paths(shape):
            for pill in PILLS:
                yield with_number(shape, example, path, pill, known)
        for path in text_paths(example):
            is_text = isinstance(at(example, path), str)
            for put in TEXT_PILLS if is_text else PILLS:
                yield replaced(example, path, put)
