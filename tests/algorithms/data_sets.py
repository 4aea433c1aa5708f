"""Reads data sets that scikit-learn ships, as rows of numbers with the label first, and formats
them for channels."""

from __future__ import annotations

import csv
import glob
import gzip
import io
import os
from collections.abc import Sequence

from tests.algorithms.breast_cancer import ENVIRONMENT

Rows = list[list[float]]


def _path(name: str) -> str:
    [path] = glob.glob(f"{ENVIRONMENT}/lib/python3*/site-packages/sklearn/datasets/data/{name}")
    return path


def _table(name: str) -> Rows:
    with open(_path(name), encoding="utf-8") as file:
        next(file)  # a header
        return [[float(cell) for cell in line.split(",")] for line in file]


def _numbers(name: str) -> Rows:
    with gzip.open(_path(name), "rt", encoding="utf-8") as file:
        return [[float(cell) for cell in line.split()] for line in file]


def breast_cancer() -> Rows:
    """Returns 569 rows of 30 features; the label 1 is benign."""
    return [[target, *features] for *features, target in _table("breast_cancer.csv")]


def iris() -> Rows:
    """Returns 150 rows of 4 features. The 3 classes alternate, so that each part has all of
    them."""
    rows = [[target, *features] for *features, target in _table("iris.csv")]
    return [rows[50 * (index % 3) + index // 3] for index in range(len(rows))]


def diabetes() -> Rows:
    """Returns 442 rows of 10 features; the label is the progression of a disease."""
    targets = _numbers("diabetes_target.csv.gz")
    features = _numbers("diabetes_data_raw.csv.gz")
    return [[*target, *row] for target, row in zip(targets, features, strict=True)]


def as_csv(rows: Sequence[Sequence[float]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def as_libsvm(rows: Sequence[Sequence[float]]) -> str:
    return "".join(
        f"{label} " + " ".join(f"{column}:{value}" for column, value in enumerate(features)) + "\n"
        for label, *features in rows
    )


def auc(labels: Sequence[float], scores: Sequence[float]) -> float:
    """Returns the fraction of pairs of a positive and a negative row with scores in order."""
    positive = [score for label, score in zip(labels, scores, strict=True) if label == 1]
    negative = [score for label, score in zip(labels, scores, strict=True) if label == 0]
    won = sum((high > low) + (high == low) / 2 for high in positive for low in negative)
    return won / (len(positive) * len(negative))


assert os.path.isdir(ENVIRONMENT), f"{ENVIRONMENT} is missing: run ./yard packages xgboost"
