"""Spares the programs that use the SageMaker SDK most of their processor time. For each default
that it looks up, some forty times a job, the SDK has its config file validated, and jsonschema
validates the schema itself first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jsonschema


def validate_once() -> None:
    """From now on, jsonschema validates each schema object the first time only."""
    validator = jsonschema.Draft202012Validator  # what the SDK's schema names
    check = validator.check_schema
    checked: dict[int, Mapping[str, Any]] = {}  # by its id, which no other object has meanwhile

    def check_once(schema: Mapping[str, Any]) -> None:
        if id(schema) not in checked:
            check(schema)
            checked[id(schema)] = schema

    validator.check_schema = check_once
