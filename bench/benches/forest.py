"""Measures random cut forests next to AWS's own library."""

from __future__ import annotations

import array
import hashlib
import json
import os
import random
import statistics
import subprocess
import tempfile
from collections.abc import Sequence

from bench.rows import BIN, ROOT, Row, row

ARTIFACT = "software.amazon.randomcutforest:randomcutforest-core:4.4.0"
SHA256 = "2e851c82add6d4bcdd13e5cd85fdd091b8a28185fe104775761e8ff6606fd51b"
FOLDER = os.path.join(ROOT, "build", "randomcutforest")
JAR = os.path.join(FOLDER, "randomcutforest-core-4.4.0.jar")
PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"

ROUNDS = int(os.environ.get("TRAINYARD_BENCH_FOREST_ROUNDS", "5"))
ROWS = int(os.environ.get("TRAINYARD_BENCH_FOREST_ROWS", "20000"))
DIMENSIONS = (4, 32)
TREES, SAMPLES = 100, 256
# The programs draw different samples and cuts from a seed. The scores of a few forests, averaged,
# have the order on which the algorithms agree; two single forests of a hundred trees agree less,
# even from one program.
SEEDS = 5
WARMING = 1  # rounds, in which Java compiles its loops
CORRELATION_MIN = 0.99
NAMES = {
    "train": "training on all rows",
    "score": "scores of all rows",
    "stream": "a stream: score, then learn each row",
}


def get_library() -> None:
    """Downloads the jar of AWS's library from Maven, and verifies its checksum."""
    if not os.path.exists(JAR):
        subprocess.run(
            ["mvn", "-q", "-B", f"{PLUGIN}:copy", f"-Dartifact={ARTIFACT}"]
            + [f"-DoutputDirectory={FOLDER}"],
            check=True,
        )
    with open(JAR, "rb") as file:
        found = hashlib.sha256(file.read()).hexdigest()
    assert found == SHA256, f"{JAR} has the checksum {found}, and not {SHA256}"


def compile_peer() -> None:
    source = os.path.join(ROOT, "bench", "programs", "ScoreForest.java")
    subprocess.run(["javac", "-cp", JAR, "-d", FOLDER, source], check=True)


def make_rows(dimensions: int, path: str) -> None:
    """Returns rows in three clusters of different widths; one row in a hundred is anywhere."""
    numbers = random.Random(dimensions)
    centres = [[numbers.uniform(-10, 10) for _ in range(dimensions)] for _ in range(3)]
    values = array.array("f")
    for index in range(ROWS):
        centre = centres[numbers.randrange(3)]
        width = 20 if index % 100 == 99 else 1 + index % 3
        values.extend(numbers.gauss(each, width) for each in centre)
    with open(path, "wb") as file:
        values.tofile(file)


def ranks(values: Sequence[float]) -> list[float]:
    """Returns the rank of each value; equal values have the mean of their ranks."""
    order = sorted(range(len(values)), key=values.__getitem__)
    result = [0.0] * len(values)
    at = 0
    while at < len(order):
        end = at
        while end < len(order) and values[order[end]] == values[order[at]]:
            end += 1
        for index in order[at:end]:
            result[index] = (at + end - 1) / 2
        at = end
    return result


def rank_correlation(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Returns Spearman's rank correlation."""
    return statistics.correlation(ranks(ours), ranks(theirs))


def measure(
    command: list[str], rows: str, dimensions: int, seed: int, scores: str
) -> tuple[dict[str, float], array.array[float]]:
    words = [rows, *map(str, (dimensions, TREES, SAMPLES, seed, WARMING)), scores]
    done = subprocess.run([*command, *words], check=True, capture_output=True, text=True)
    values = array.array("d")
    with open(scores, "rb") as file:
        values.frombytes(file.read())
    speeds: dict[str, float] = json.loads(done.stdout)
    return speeds, values


def mean(columns: Sequence[Sequence[float]]) -> list[float]:
    return [statistics.fmean(each) for each in zip(*columns, strict=True)]


def forest() -> list[Row]:
    """Trains and scores random cut forests on one thread, next to AWS's own library for Java."""
    get_library()
    compile_peer()
    programs = {
        "ours": [os.path.join(BIN, "score_forest")],
        "peer": ["java", "-cp", f"{JAR}:{FOLDER}", "ScoreForest"],
    }
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for dimensions in DIMENSIONS:
            rows = os.path.join(folder, f"rows-{dimensions}")
            make_rows(dimensions, rows)
            speeds: dict[str, list[dict[str, float]]] = {"ours": [], "peer": []}
            scores: dict[str, list[array.array[float]]] = {"ours": [], "peer": []}
            for number in range(max(ROUNDS, SEEDS)):
                for side, command in programs.items():
                    speed, values = measure(
                        command, rows, dimensions, number + 1, os.path.join(folder, side)
                    )
                    speeds[side].append(speed)
                    scores[side].append(values)
            for key, name in NAMES.items():
                found.append(
                    row(
                        "forest",
                        f"{dimensions} features, {name}",
                        "rows/s",
                        [each[key] for each in speeds["ours"]],
                        [each[key] for each in speeds["peer"]],
                        "AWS's library",
                        ">= 1.0 of it",
                        lambda ours, peer: ours >= peer,
                    )
                )
            correlation = rank_correlation(mean(scores["ours"]), mean(scores["peer"]))
            # The agreement of two forests of the same program limits what can be expected.
            own = rank_correlation(scores["peer"][0], scores["peer"][1])
            found.append(
                row(
                    "forest",
                    f"{dimensions} features, rank correlation of mean scores",
                    "",
                    [correlation],
                    [own],
                    "two forests of the library",
                    f">= {CORRELATION_MIN}",
                    lambda ours, peer: ours >= CORRELATION_MIN,
                )
            )
    return found
