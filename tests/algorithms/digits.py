"""Formats the handwritten digits of examples/01_digits as images for channels."""

import pathlib
import struct
import zlib

from tests import trainyard_server

DIGITS = pathlib.Path(trainyard_server.ROOT) / "build" / "digits"
SIDE = 8
DARKEST = 16  # in the CSV files
RECORD_MAGIC = 0xCED7230A


def rows(name: str) -> list[tuple[list[int], int]]:
    """Returns (pixels, digit) for each row of the matching files below build/digits."""
    found = []
    for path in sorted(DIGITS.glob(name)):
        for line in path.read_text().splitlines():
            *pixels, digit = [int(float(field)) for field in line.split(",")]
            found.append((pixels, digit))
    assert found, f"{DIGITS}/{name} is empty: run examples/01_digits/prepare"
    return found


def png(pixels: list[int]) -> bytes:
    """Returns a grey image of 8 by 8 pixels."""
    lines = b"".join(
        b"\0" + bytes(255 * value // DARKEST for value in pixels[at : at + SIDE])
        for at in range(0, len(pixels), SIDE)
    )

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(lines))
        + chunk(b"IEND", b"")
    )


def record(image: bytes, label: float, number: int) -> bytes:
    """Returns one record of a .rec file, as MXNet's im2rec writes it."""
    payload = struct.pack("<IfQQ", 0, label, number, 0) + image
    return struct.pack("<II", RECORD_MAGIC, len(payload)) + payload + b"\0" * (-len(payload) % 4)


def records(digits: list[tuple[list[int], int]]) -> bytes:
    return b"".join(
        record(png(pixels), digit, number) for number, (pixels, digit) in enumerate(digits)
    )
