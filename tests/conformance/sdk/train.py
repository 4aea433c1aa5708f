"""Runs as a user's training script, like SageMaker's examples: reads its channel and
hyperparameters, and saves a model."""

import json
import os

BASE = "/opt/ml"

with open(f"{BASE}/input/config/hyperparameters.json", encoding="utf-8") as file:
    hyperparameters = json.load(file)
with open(f"{BASE}/input/config/resourceconfig.json", encoding="utf-8") as file:
    resources = json.load(file)
with open(f"{BASE}/input/data/train/rows.csv", encoding="utf-8") as file:
    rows = file.read().split()

print(
    f"host {resources['current_host']} of {len(resources['hosts'])} read {len(rows)} rows for"
    f" {json.loads(hyperparameters['epochs'])} epochs"
)
if resources["current_host"] == "algo-1":
    with open(f"{BASE}/model/model.json", "w", encoding="utf-8") as file:
        json.dump(
            {
                "rows": len(rows),
                "hyperparameters": hyperparameters,
                "source": os.environ.get("SM_SOURCE_DIR", ""),
            },
            file,
        )
