"""Runs as a user's script for a framework image: reads arguments from hyperparameters, paths from
SM_* variables, and a rank from its distribution."""

import argparse
import json
import os

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int)
parser.add_argument("--name")
parser.add_argument("--model_dir")
arguments, _ = parser.parse_known_args()

environment = os.environ
cluster = json.loads(environment.get("TF_CONFIG", "{}"))
found = {
    "epochs": arguments.epochs,
    "name": arguments.name,
    "host": environment["SM_CURRENT_HOST"],
    "hosts": json.loads(environment["SM_HOSTS"]),
    "rank": environment.get("RANK", environment.get("OMPI_COMM_WORLD_RANK")),
    "world": environment.get("WORLD_SIZE", environment.get("OMPI_COMM_WORLD_SIZE")),
    "master": environment.get("MASTER_ADDR"),
    "task": cluster.get("task"),
    "roles": sorted(cluster.get("cluster", {})),
    "rows": len(
        open(os.path.join(environment["SM_CHANNEL_TRAIN"], "rows.csv"), encoding="utf-8")
        .read()
        .split()
    ),
}
print("FOUND " + json.dumps(found, sort_keys=True), flush=True)
with open(
    os.path.join(environment["SM_MODEL_DIR"], f"rank-{found['rank'] or found['host']}"),
    "w",
    encoding="utf-8",
) as file:
    file.write("weights\n")
