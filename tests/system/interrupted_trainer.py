"""Trains weights that are a function of the steps alone,
on two hosts that exchange a number in each, and keeps checkpoints.

  interrupted_trainer.py [STEPS]

algo-1 writes a checkpoint every CHECKPOINT_STEPS, of which STEPS is a multiple, and the weights at
the end; both start from what algo-1 finds. Without STEPS they train until algo-1 finds the file
END at a checkpoint.
"""

import hashlib
import json
import os
import random
import socket
import struct
import sys
import time

CHECKPOINT_STEPS = 20
STEP_SECONDS = 0.01
PADDING_BYTES = 12_000_000  # so that copying a checkpoint takes a while
MODEL_BYTES = 80_000_000  # and the model, too
PRIME = (1 << 61) - 1
PLACE = "/opt/ml/checkpoints"
END = f"{PLACE}/end"
FIRST = os.uname().nodename == "algo-1"


def peer() -> socket.socket:
    if FIRST:
        link, _ = socket.create_server(("", 7000)).accept()
    else:
        while True:
            try:
                link = socket.create_connection(("algo-1", 7000))
                break
            except OSError:
                time.sleep(0.02)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return link


def receive(link: socket.socket) -> int:
    number = b""
    while len(number) < 8:
        piece = link.recv(8 - len(number))
        if not piece:
            sys.exit("the peer closed the connection")
        number += piece
    return struct.unpack("<Q", number)[0]


def exchange(link: socket.socket, number: int) -> int:
    link.sendall(struct.pack("<Q", number))
    return receive(link)


def newest() -> tuple[int, list[int]]:
    """Returns (step, weights) of the last checkpoint, which must be complete."""
    found = [
        int(name.removeprefix("step-"))
        for name in os.listdir(PLACE)
        if name.startswith("step-") and "." not in name
    ]
    if not found:
        return 0, [1, 2, 3, 4]
    with open(f"{PLACE}/step-{max(found)}", "rb") as file:
        words, _, padding = file.read().partition(b"\n")
    record = json.loads(words)
    assert record["digest"] == hashlib.sha256(padding).hexdigest() and record["step"] == max(
        found
    ), "a torn checkpoint"
    return record["step"], record["weights"]


def write(step: int, weights: list[int]) -> None:
    padding = random.Random(step).randbytes(PADDING_BYTES)
    record = {"step": step, "weights": weights, "digest": hashlib.sha256(padding).hexdigest()}
    with open(f"{PLACE}/step-{step}.sagemaker-ignore", "wb") as file:
        file.write(json.dumps(record).encode() + b"\n" + padding)
    os.rename(f"{PLACE}/step-{step}.sagemaker-ignore", f"{PLACE}/step-{step}")
    for name in os.listdir(PLACE):
        if (
            name.startswith("step-")
            and "." not in name
            and int(name.removeprefix("step-")) < step - 2 * CHECKPOINT_STEPS
        ):
            os.unlink(f"{PLACE}/{name}")


def is_last(link: socket.socket, step: int, steps: int | None) -> bool:
    """Returns True if training ends at the checkpoint of this step, which algo-1 decides."""
    if not FIRST:
        return bool(receive(link))
    last = step > 0 and (os.path.exists(END) if steps is None else step >= steps)
    link.sendall(struct.pack("<Q", last))
    return last


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else None
    link = peer()
    step, weights = newest() if FIRST else (0, [5, 6, 7, 8])
    # A host that starts again starts where algo-1 does, whose weights are the state of both.
    step = step if FIRST else receive(link)
    if FIRST:
        link.sendall(struct.pack("<Q", step))
    for index in range(4):
        if FIRST:
            link.sendall(struct.pack("<Q", weights[index]))
        else:
            weights[index] = receive(link)
    print("starts at", step, flush=True)
    while step % CHECKPOINT_STEPS != 0 or not is_last(link, step, steps):
        step += 1
        theirs = exchange(link, pow(weights[step % 4] + step * (1 if FIRST else 2), 3, PRIME))
        own = pow(weights[step % 4] + step * (1 if FIRST else 2), 3, PRIME)
        weights[step % 4] = (own + theirs) % PRIME
        time.sleep(STEP_SECONDS)
        if FIRST and step % CHECKPOINT_STEPS == 0:
            write(step, weights)
    if FIRST:
        with open("/opt/ml/model/weights.json", "w", encoding="utf-8") as file:
            json.dump({"step": step, "weights": weights}, file)
        with open("/opt/ml/model/padding", "wb") as file:
            file.write(random.Random(0).randbytes(MODEL_BYTES))
    print("is done", flush=True)


if __name__ == "__main__":
    main()
