"""Runs as a training script that saves its state when it is stopped."""

import signal
import sys
import time
from types import FrameType


def save(number: int, frame: FrameType | None) -> None:
    print("saving", flush=True)
    time.sleep(1)
    with open("/opt/ml/model/saved", "w", encoding="utf-8") as file:
        file.write("saved")
    print("saved all", flush=True)
    sys.exit(0)


signal.signal(signal.SIGTERM, save)
print("ready to be stopped", flush=True)
time.sleep(10_000)
