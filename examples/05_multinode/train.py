"""Runs one rank of a training that fits a plane to points on the shared file system. Each rank has
its part of each batch, and MPI sums the gradients. Writes the result as a line of JSON next to the
points."""

import json
import os
import socket
import time

import numpy as np
from mpi4py import MPI

FEATURES = 16
EPOCHS = 5

world = MPI.COMM_WORLD
directory = os.environ["JOB_DIR"]
batch_size = int(os.environ.get("BATCH_SIZE", "256"))
learning_rate = float(os.environ.get("LEARNING_RATE") or "0.1")

hosts = set(world.allgather(socket.gethostname()))
with open(
    os.path.join(os.environ["SCRATCH_DIR"], f"rank-{world.rank}"), "w", encoding="utf-8"
) as file:
    file.write("this node's own")
points = np.load(os.path.join(directory, "points.npy"))
inputs, targets = points[:, :FEATURES], points[:, FEATURES]
if world.rank == 0:
    print(
        f"ranks={world.size} hosts={len(hosts)} points={len(points)} batch_size={batch_size}"
        f" learning_rate={learning_rate}"
    )

weights = np.zeros(FEATURES)
began = time.monotonic()
for epoch in range(EPOCHS):
    for start in range(0, len(points), batch_size):
        own = slice(start + world.rank, min(start + batch_size, len(points)), world.size)
        gradient = inputs[own].T @ (inputs[own] @ weights - targets[own])
        weights -= learning_rate * world.allreduce(gradient) / batch_size
    loss = float(np.mean((inputs @ weights - targets) ** 2))
    if world.rank == 0:
        print(f"epoch={epoch} loss={loss:.6f}")
same = len(set(world.allgather(weights.tobytes()))) == 1
if world.rank == 0:
    print(f"the same weights on all ranks: {same}")
    results = os.path.join(directory, "results")
    os.makedirs(results, exist_ok=True)
    row = {
        "job": os.environ["AWS_BATCH_JOB_ID"],
        "ranks": world.size,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "loss": round(loss, 6),
        "seconds": round(time.monotonic() - began, 3),
    }
    with open(os.path.join(results, row["job"] + ".json"), "w", encoding="utf-8") as file:
        json.dump(row, file)
