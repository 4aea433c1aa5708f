"""Measures the evaluation of policies."""

from __future__ import annotations

from bench.loads import rounds, values
from bench.rows import Row, row


def policy() -> list[Row]:
    """Evaluates ten policies for a request, next to the slow reference of the tests."""
    sides = rounds("evaluate_policies")
    return [
        row(
            "policy",
            "10 policies, one request",
            "us",
            values(sides["ours"], "microseconds"),
            values(sides["peer"], "microseconds"),
            "the tests' reference, which reads the documents again",
            "< 5 us",
            lambda ours, peer: ours < 5,
        )
    ]
