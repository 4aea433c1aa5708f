"""What a bench that takes minutes shows meanwhile: a bar that goes on in place in a terminal,
else a line a round."""

import sys
import time

WIDTH = 24


def line(done, total, seconds):
    """`done` of `total` rounds took `seconds`."""
    left = f", some {seconds / done * (total - done):.0f} s to go" if 0 < done < total else ""
    filled = WIDTH * done // total
    return f"  [{'#' * filled}{'.' * (WIDTH - filled)}] {done} of {total}, {seconds:.0f} s{left}"


def rounds(numbers, out=sys.stderr):
    """The numbers, one after the other."""
    numbers, began = list(numbers), time.monotonic()
    begin, end = ("\r\033[K", "") if out.isatty() else ("", "\n")
    for done, number in enumerate(numbers):
        if out.isatty():
            print(
                begin + line(done, len(numbers), time.monotonic() - began),
                end=end,
                file=out,
                flush=True,
            )
        yield number
        if not out.isatty():
            print(line(done + 1, len(numbers), time.monotonic() - began), file=out, flush=True)
    print(begin, end="", file=out, flush=True)
