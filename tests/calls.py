"""Has helpers for calls of every service: unused names, and the error of a rejected call."""

import uuid
from collections.abc import Callable
from typing import Any

import botocore.exceptions
import pytest


def fresh(prefix: str, joint: str = "-") -> str:
    return f"{prefix}{joint}{uuid.uuid4().hex[:8]}"


def refused(call: Callable[..., object], **arguments: Any) -> tuple[str, str]:
    """Makes a call that must fail; returns the code and the message of its error."""
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        call(**arguments)
    return caught.value.response["Error"]["Code"], caught.value.response["Error"]["Message"]


def refusal(call: Callable[..., object], code: str = "ClientException", **arguments: Any) -> str:
    """Makes a call that must fail with this code; returns the message."""
    found, message = refused(call, **arguments)
    assert found == code, (found, message)
    return message
