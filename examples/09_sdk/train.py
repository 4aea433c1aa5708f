"""Trains a linear classifier of handwritten digits, in plain Python.

The script is ordinary: arguments from hyperparameters, places from SM_* variables, ranks from the
variables of torch_distributed. Each rank computes the gradient of its share of every batch; rank 0
adds them up, so that all ranks have the same weights.
"""

import argparse
import glob
import hashlib
import json
import math
import operator
import os
import time
from collections.abc import Iterator
from multiprocessing.connection import Client, Connection, Listener

CLASSES = 10
PIXELS = 64  # of 0 to 16
BATCH = 64
LEARNING_RATE = 0.3
CONNECT_SECONDS_MAX = 60
RANK = int(os.environ.get("RANK", "0"))
WORLD = int(os.environ.get("WORLD_SIZE", "1"))

Vector = list[float]
Image = tuple[Vector, int]  # pixels and a constant; the digit


def images(directory: str) -> Iterator[Image]:
    for path in sorted(glob.glob(os.path.join(directory, "*.csv"))):
        with open(path, encoding="utf-8") as file:
            for line in file:
                *pixels, digit = map(int, line.split(","))
                yield [pixel / 16 for pixel in pixels] + [1.0], digit


def connect(address: tuple[str, int]) -> Connection:
    """Connects to rank 0, which may still be starting."""
    end = time.monotonic() + CONNECT_SECONDS_MAX
    while True:
        try:
            return Client(address)
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


class Ranks:
    """Adds vectors over all ranks, through rank 0."""

    def __init__(self) -> None:
        self.peers: list[Connection] = []
        if WORLD == 1:
            return
        address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
        if RANK > 0:
            self.peers = [connect(address)]
        else:
            with Listener(address) as listener:
                self.peers = [listener.accept() for _ in range(WORLD - 1)]

    def add(self, vector: Vector) -> Vector:
        if RANK > 0:
            self.peers[0].send(vector)
            total: Vector = self.peers[0].recv()
            return total
        for peer in self.peers:
            vector = list(map(operator.add, vector, peer.recv()))
        for peer in self.peers:
            peer.send(vector)
        return vector


def probabilities(weights: Vector, pixels: Vector) -> Vector:
    size = PIXELS + 1
    scores = [
        sum(map(operator.mul, weights[c * size : (c + 1) * size], pixels)) for c in range(CLASSES)
    ]
    highest = max(scores)
    powers = [math.exp(score - highest) for score in scores]
    total = sum(powers)
    return [power / total for power in powers]


def gradient(weights: Vector, batch: list[Image]) -> tuple[Vector, int]:
    """Returns the sum over the batch, and the number of images that were recognised."""
    total = [0.0] * len(weights)
    right = 0
    for pixels, digit in batch:
        shares = probabilities(weights, pixels)
        right += max(range(CLASSES), key=shares.__getitem__) == digit
        shares[digit] -= 1
        change = [share * pixel for share in shares for pixel in pixels]
        total = list(map(operator.add, total, change))
    return total, right


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    epochs = parser.parse_args().epochs
    everything = list(images(os.environ["SM_CHANNEL_TRAIN"]))
    weights = [0.0] * (CLASSES * (PIXELS + 1))
    ranks = Ranks()
    for epoch in range(epochs):
        recognised = 0.0
        for begin in range(0, len(everything), BATCH):
            batch = everything[begin : begin + BATCH]
            change, right = gradient(weights, batch[RANK::WORLD])
            *change, right_of_all = ranks.add([*change, float(right)])
            recognised += right_of_all
            rate = LEARNING_RATE / len(batch)
            weights = [weight - rate * part for weight, part in zip(weights, change, strict=True)]
        if RANK == 0:
            print(
                f"epoch {epoch + 1} of {epochs}: accuracy={recognised / len(everything):.3f}",
                flush=True,
            )
    digest = hashlib.sha256(json.dumps(weights).encode()).hexdigest()
    print(f"rank {RANK} of {WORLD}: weights {digest[:16]}", flush=True)
    if RANK == 0:
        with open(os.path.join(os.environ["SM_MODEL_DIR"], "model.json"), "w") as file:
            json.dump(weights, file)


if __name__ == "__main__":
    main()
