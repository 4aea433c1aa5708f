"""Scores scikit-learn's IsolationForest (F1) on Wisconsin's breast cancer data (569 rows of 30
features), which scikit-learn ships.

build/sklearn/bin/python breast_cancer.py SEEDS prints a JSON list of F1, one for each seed."""

from __future__ import annotations

import glob
import json
import os
import subprocess
import sys
from collections.abc import Sequence

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ENVIRONMENT = os.path.join(ROOT, "build", "sklearn")
FEATURES = 30
MALIGNANT = 0.0


def rows() -> list[tuple[list[float], bool]]:
    """Returns (features, True if malignant) for each row of the file, in its order."""
    [path] = glob.glob(
        f"{ENVIRONMENT}/lib/python3*/site-packages/sklearn/datasets/data/breast_cancer.csv"
    )
    found = []
    with open(path, encoding="utf-8") as file:
        next(file)  # a header
        for line in file:
            *features, target = map(float, line.split(","))
            assert len(features) == FEATURES
            found.append((features, target == MALIGNANT))
    return found


def f1_of_highest(scores: Sequence[float], anomalies: Sequence[bool]) -> float:
    """Returns F1 when the rows with the highest scores, as many as there are anomalies, count as
    anomalies, as with IsolationForest's `contamination`."""
    count = sum(anomalies)
    highest = sorted(range(len(scores)), key=lambda row: -scores[row])[:count]
    return sum(anomalies[row] for row in highest) / count  # precision and recall are equal


def isolation_forest(seeds: int) -> list[float]:
    """Returns F1 of scikit-learn's IsolationForest with its defaults: 100 trees of 256 rows."""
    done = subprocess.run(
        [os.path.join(ENVIRONMENT, "bin", "python"), __file__, str(seeds)],
        capture_output=True,
        text=True,
        check=True,
    )
    values: list[float] = json.loads(done.stdout)
    return values


def main() -> None:
    from sklearn.ensemble import IsolationForest

    data = rows()
    features = [row for row, _ in data]
    anomalies = [is_malignant for _, is_malignant in data]
    values = []
    for seed in range(int(sys.argv[1])):
        model = IsolationForest(random_state=seed).fit(features)
        values.append(f1_of_highest([-score for score in model.score_samples(features)], anomalies))
    print(json.dumps(values))


if __name__ == "__main__":
    main()
