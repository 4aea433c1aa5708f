"""Runs the commands and snippets of the README from the first to the last, with the SageMaker SDKs
that the snippets name."""

import pathlib
import re
import subprocess

from tests.journeys import documents

RUN = documents.Run(
    skipped={
        "./yard demo": "the suite `example` runs it",
        "./yard test": "it would run this test again",
        "./yard build": "./yard test has built the programs",
        "build/trainyard shell": "needs a running host and a terminal: tests/system/test_shell.py",
    },
)


def test_the_readme_runs_as_it_is_printed(tmp_path: pathlib.Path) -> None:
    # Downloads the digits in advance: the page runs in a network namespace without a connection.
    subprocess.run([documents.ROOT / "examples/01_digits/prepare"], check=True)
    printed = documents.run_page("README.md", tmp_path, RUN)
    assert "make_bucket: yard" in printed
    assert "download: s3://yard/models/first/output/model.tar.gz to ./model.tar.gz" in printed
    # One rank with each SDK, and two ranks on two hosts, which end with the same weights.
    trained = re.findall(r"rank (\d) of (\d): weights ([0-9a-f]{16})", printed)
    assert sorted({(rank, world) for rank, world, _ in trained}) == [
        ("0", "1"),
        ("0", "2"),
        ("1", "2"),
    ], trained
    assert len({weights for _, world, weights in trained if world == "2"}) == 1
    accuracy = re.findall(r"epoch 5 of 5: accuracy=([0-9.]+)", printed)
    assert len(accuracy) >= 3 and all(float(one) > 0.9 for one in accuracy), accuracy
    assert re.search(r"^first +Completed", printed, re.M), printed[-3000:]
