"""Saves most of the processor time of programs that use the SageMaker SDK. For each default that it
reads, some forty times per job, the SDK validates its config file, and each time jsonschema also
validates the schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jsonschema


def validate_once() -> None:
    """Makes jsonschema validate each schema object only once."""
    validator = jsonschema.Draft202012Validator  # the version that the SDK's schema names
    check = validator.check_schema
    checked: dict[int, Mapping[str, Any]] = {}  # by id: keeping the object keeps its id unique

    def check_once(schema: Mapping[str, Any]) -> None:
        if id(schema) not in checked:
            check(schema)
            checked[id(schema)] = schema

    validator.check_schema = check_once
