"""Runs the stock XGBoost from PyPI (build/xgboost), in the version that trainyard-xgboost links.

build/xgboost/bin/python stock_xgboost.py predict MODEL < CSV   predictions as JSON
build/xgboost/bin/python stock_xgboost.py train PARAMETERS ROUNDS MODEL < CSV
build/xgboost/bin/python stock_xgboost.py work HOST PORT TASK PARAMETERS ROUNDS MODEL < CSV
                                                  as a worker of a tracker; the first one saves"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PYTHON = os.path.join(ROOT, "build", "xgboost", "bin", "python")
SECONDS_MAX = 300


def command(*arguments: str) -> list[str]:
    assert os.path.exists(PYTHON), f"{PYTHON} is missing: run ./yard packages xgboost"
    return [PYTHON, __file__, *arguments]


def predict(model: str, features: str) -> list[float]:
    """Returns predictions for rows of CSV without labels."""
    done = subprocess.run(
        command("predict", model),
        input=features,
        capture_output=True,
        text=True,
        check=True,
        timeout=SECONDS_MAX,
    )
    scores: list[float] = json.loads(done.stdout)
    return scores


def train(parameters: dict[str, Any], rounds: int, rows: str, model: str) -> None:
    subprocess.run(
        command("train", json.dumps(parameters), str(rounds), model),
        input=rows,
        text=True,
        check=True,
        timeout=SECONDS_MAX,
    )


def main() -> None:
    import numpy
    import xgboost

    what = sys.argv[1]
    rows = numpy.loadtxt(sys.stdin, delimiter=",", ndmin=2)
    if what == "predict":
        booster = xgboost.Booster(model_file=sys.argv[2])
        print(json.dumps(booster.predict(xgboost.DMatrix(rows)).tolist()))
        return
    parameters, rounds, model = sys.argv[-3:]
    matrix = xgboost.DMatrix(rows[:, 1:], label=rows[:, 0])
    if what == "train":
        xgboost.train(json.loads(parameters), matrix, int(rounds)).save_model(model)
        return
    host, port, task = sys.argv[2:5]
    with xgboost.collective.CommunicatorContext(
        DMLC_TRACKER_URI=host, DMLC_TRACKER_PORT=port, DMLC_TASK_ID=task
    ):
        booster = xgboost.train(json.loads(parameters), matrix, int(rounds))
        if xgboost.collective.get_rank() == 0:
            booster.save_model(model)
        print(xgboost.collective.get_rank(), xgboost.collective.get_world_size())


if __name__ == "__main__":
    main()
