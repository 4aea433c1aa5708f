"""Builds the requests of the Prometheus bench, and measures sizes on disk."""

from __future__ import annotations

import os
import struct
import urllib.request
from collections.abc import Iterable, Sequence
from typing import Any

TIMEOUT_SECONDS = 120
LITERAL_BYTES_MAX = 65536


def varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def write_request(series: Sequence[tuple[dict[str, str], Sequence[tuple[int, float]]]]) -> bytes:
    """Returns a WriteRequest of (labels, [(milliseconds, value)]), as a Snappy block of
    literals."""
    message = bytearray()
    for labels, samples in series:
        one = b"".join(
            field(1, field(1, name.encode()) + field(2, labels[name].encode()))
            for name in sorted(labels)
        )
        for at, value in samples:
            one += field(2, b"\x09" + struct.pack("<d", value) + b"\x10" + varint(at))
        message += field(1, one)
    block = bytearray(varint(len(message)))
    for first in range(0, len(message), LITERAL_BYTES_MAX):
        literal = message[first : first + LITERAL_BYTES_MAX]
        block += b"\xf4" + struct.pack("<H", len(literal) - 1) + literal
    return bytes(block)


def post(url: str, body: bytes, token: str = "") -> None:
    headers = {"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(url, body, headers)
    urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS).close()


def get(url: str, token: str = "") -> bytes:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with urllib.request.urlopen(
        urllib.request.Request(url, headers=headers), timeout=TIMEOUT_SECONDS
    ) as answer:
        content: bytes = answer.read()
        return content


def loss_queries(numbers: Iterable[int], period: int) -> list[dict[str, Any]]:
    """Returns queries of GetMetricData for the series "loss" of these numbers."""
    return [
        {
            "Id": f"q{number}",
            "MetricStat": {
                "Metric": {
                    "Namespace": "Prometheus",
                    "MetricName": "loss",
                    "Dimensions": [{"Name": "series", "Value": str(number)}],
                },
                "Period": period,
                "Stat": "Average",
            },
        }
        for number in numbers
    ]


def bytes_below(directory: str) -> int:
    return sum(
        os.path.getsize(os.path.join(path, name))
        for path, _, names in os.walk(directory)
        for name in names
    )
