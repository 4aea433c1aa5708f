"""Measures XGBoost in our program next to the command line of the same library, and to Python's
package."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time

from bench import progress
from bench.rows import BIN, ROOT, Row, row

ROUNDS = int(os.environ.get("TRAINYARD_BENCH_XGBOOST_ROUNDS", "3"))
ROWS = int(os.environ.get("TRAINYARD_BENCH_XGBOOST_ROWS", "1000000"))
TREES = int(os.environ.get("TRAINYARD_BENCH_XGBOOST_TREES", "100"))
COLUMNS = 28
TEST_ROWS = max(1000, ROWS // 10)
PARAMETERS = {
    "objective": "binary:logistic",
    "eval_metric": "logloss",
    "tree_method": "hist",
    "max_depth": 6,
    "eta": 0.1,
    "seed": 1,
}
PYTHON = os.path.join(ROOT, "build", "xgboost", "bin", "python")
PEER = os.path.join(ROOT, "bench", "programs", "stock_xgboost.py")
PEERS = {"command": "xgboost's command line", "python": "xgboost's Python package"}


def write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def make_job(base: str, train: str) -> None:
    """Writes the files of a job of one host below `base`."""
    values = {name: str(value) for name, value in PARAMETERS.items()}
    config = f"{base}/input/config"
    write(f"{config}/hyperparameters.json", json.dumps(values | {"num_round": str(TREES)}))
    write(
        f"{config}/resourceconfig.json",
        json.dumps(
            {"current_host": "127.0.0.1", "hosts": ["127.0.0.1"], "network_interface_name": "lo"}
        ),
    )
    channel = {
        "ContentType": "text/csv",
        "TrainingInputMode": "File",
        "S3DistributionType": "FullyReplicated",
        "RecordWrapperType": "None",
    }
    write(f"{config}/inputdataconfig.json", json.dumps({"train": channel}))
    os.makedirs(f"{base}/input/data/train")
    os.link(train, f"{base}/input/data/train/train.csv")
    os.makedirs(f"{base}/model")


def commands(folder: str, train: str) -> dict[str, tuple[list[str], str]]:
    """side -> (command, the model that it writes)."""
    make_job(f"{folder}/ml", train)
    lines = [f"{name} = {value}" for name, value in PARAMETERS.items()]
    lines += [
        f"num_round = {TREES}",
        f'data = "{train}?format=csv&label_column=0"',
        f'eval[train] = "{train}?format=csv&label_column=0"',
        f'model_out = "{folder}/command-model"',
    ]
    write(f"{folder}/train.conf", "\n".join(lines) + "\n")
    xgboost = shutil.which("xgboost")
    assert xgboost, "xgboost is missing: ./yard bench xgboost installs it"
    return {
        "ours": (
            [os.path.join(BIN, "trainyard-xgboost"), "train", "--base", f"{folder}/ml"],
            f"{folder}/ml/model/xgboost-model",
        ),
        "command": ([xgboost, f"{folder}/train.conf"], f"{folder}/command-model"),
        "python": (
            [PYTHON, PEER, "train", train, json.dumps(PARAMETERS), str(TREES), f"{folder}/python"],
            f"{folder}/python",
        ),
    }


def measure(command: list[str]) -> tuple[float, float]:
    """Runs a command; returns its seconds, and its largest memory in MiB."""
    before = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, f"{command[0]} ended with {process.returncode}"
    return time.monotonic() - before, used.ru_maxrss / 1024


def auc(model: str, test: str) -> float:
    done = subprocess.run(
        [PYTHON, PEER, "auc", test, model], check=True, stdout=subprocess.PIPE, text=True
    )
    return float(done.stdout)


def xgboost() -> list[Row]:
    """Reads csv, trains and saves a model: our program as a job of one host, next to the command
    line of the same library, and to Python's package."""
    subprocess.run(
        ["ninja", "-C", os.path.join(ROOT, "build", "release"), "trainyard-xgboost"], check=True
    )
    took: dict[str, list[float]] = {}
    memory: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        train, test = f"{folder}/train.csv", f"{folder}/test.csv"
        subprocess.run(
            [PYTHON, PEER, "make", train, str(ROWS), test, str(TEST_ROWS), str(COLUMNS)], check=True
        )
        sides = commands(folder, train)
        for _ in progress.rounds(range(ROUNDS)):
            for side, (command, _) in sides.items():
                seconds, size = measure(command)
                took.setdefault(side, []).append(seconds)
                memory.setdefault(side, []).append(size)
        scores = {side: auc(model, test) for side, (_, model) in sides.items()}
    case = f"{ROWS} rows of {COLUMNS} features, {TREES} trees"
    found = []
    for peer, name in PEERS.items():
        found += [
            row(
                "xgboost",
                case,
                "s",
                took["ours"],
                took[peer],
                name,
                "ratio <= 1.05",
                lambda ours, their: ours <= 1.05 * their,
            ),
            row(
                "xgboost",
                f"{case}: memory",
                "MiB",
                memory["ours"],
                memory[peer],
                name,
                "ratio <= 1.05",
                lambda ours, their: ours <= 1.05 * their,
            ),
            row(
                "xgboost",
                f"{case}: AUC",
                "",
                [scores["ours"]],
                [scores[peer]],
                name,
                "within 0.001",
                lambda ours, their: abs(ours - their) <= 1e-3,
            ),
        ]
    return found
