"""Makes the rows of ./yard bench xgboost, and runs the stock library on them, in build/xgboost.

stock_xgboost.py make TRAIN ROWS TEST ROWS COLUMNS
stock_xgboost.py train TRAIN PARAMETERS ROUNDS MODEL
stock_xgboost.py auc TEST MODEL                       prints the AUC on the rows of TEST"""

from __future__ import annotations

import json
import sys

import numpy
import xgboost

PIECE_ROWS = 100_000


def make(path: str, rows: int, columns: int, seed: int) -> None:
    """Writes rows of two classes, which depend on products and squares of some features, with
    noise."""
    numbers = numpy.random.default_rng(seed)
    with open(path, "w", encoding="utf-8") as file:
        for start in range(0, rows, PIECE_ROWS):
            count = min(PIECE_ROWS, rows - start)
            features = numbers.normal(size=(count, columns))
            score = features[:, 0] * features[:, 1] + features[:, 2] ** 2 - features[:, 3]
            labels = score + numbers.normal(size=count) > 1
            numpy.savetxt(
                file, numpy.column_stack([labels, features]), fmt=["%d"] + ["%.5g"] * columns,
                delimiter=",",
            )  # fmt: skip


def matrix(path: str) -> xgboost.DMatrix:
    return xgboost.DMatrix(f"{path}?format=csv&label_column=0")


def auc(labels: numpy.ndarray, scores: numpy.ndarray) -> float:
    """Returns the AUC from the ranks of the positive rows; equal scores have the mean of their
    ranks."""
    _, place, counts = numpy.unique(scores, return_inverse=True, return_counts=True)
    ranks = (numpy.cumsum(counts) - (counts - 1) / 2)[place]
    positive = labels == 1
    many, few = int(positive.sum()), int((~positive).sum())
    return float((ranks[positive].sum() - many * (many + 1) / 2) / (many * few))


def main() -> None:
    what, *arguments = sys.argv[1:]
    if what == "make":
        train, rows, test, test_rows, columns = arguments
        make(train, int(rows), int(columns), 1)
        make(test, int(test_rows), int(columns), 2)
    elif what == "train":
        path, parameters, rounds, model = arguments
        train_rows = matrix(path)
        xgboost.train(
            json.loads(parameters),
            train_rows,
            int(rounds),
            evals=[(train_rows, "train")],
            verbose_eval=False,
        ).save_model(model)
    else:
        path, model = arguments
        rows_of_test = matrix(path)
        scores = xgboost.Booster(model_file=model).predict(rows_of_test)
        print(auc(rows_of_test.get_label(), scores))


if __name__ == "__main__":
    main()
