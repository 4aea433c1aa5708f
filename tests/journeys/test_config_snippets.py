"""Tests that `trainyard doctor --config` accepts each snippet of the documents that is a
configuration of the server, or a part of one."""

import pathlib
import subprocess

import pytest

from tests import trainyard_server
from tests.journeys import documents
from tests.journeys.documents import Block

DOCTOR_SECONDS_MAX = 120
# Files that the snippets name, which are written next to the config.
FILES = {
    "alice.json": '{"Version": "2012-10-17", "Statement": []}',
    "team-data.json": '{"Version": "2012-10-17", "Statement": []}',
    "trust.json": """{"Version": "2012-10-17", "Statement": {"Effect": "Allow",
        "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"}}""",
    "registry-password": "secret",
    "ledger-password": "secret",
    "slurm-token": "secret",
    "alerts-token": "Bearer secret",
    "mail.password": "secret",
    "scrape.token": "a-token-of-a-secret-store",
    "mimir.authorization": "Bearer secret",
    "mimir.headers": "X-Scope-OrgID: team",
    "collector.headers": "dd-api-key: secret",
}
# Beginnings of lines that occur only in other files: of jobs and campaigns.
OTHERS = ("image = ", "training_job", "[watch]", "[[watch]]")


def is_config(block: Block) -> bool:
    return block.language == "toml" and not any(
        line.startswith(OTHERS) or "[training_job]" in line for line in block.text.splitlines()
    )


CONFIGS = [one for page in documents.PAGES for one in documents.blocks(page) if is_config(one)]


def test_the_pages_have_configs() -> None:
    pages = {block.page for block in CONFIGS}
    assert {f"docs/operating/{name}.md" for name in ("README", "security", "slurm")} <= pages


@pytest.mark.parametrize("block", CONFIGS, ids=lambda block: f"{block.page}:{block.line}")
def test_a_config_in_the_documents_is_accepted(block: Block, tmp_path: pathlib.Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        (tmp_path / name).chmod(0o600)
    config = tmp_path / "trainyard.toml"
    config.write_text(block.text, encoding="utf-8")
    done = subprocess.run(
        [
            trainyard_server.PROGRAM,
            *("doctor", "--data", str(tmp_path / "data"), "--config", str(config)),
        ],
        capture_output=True,
        text=True,
        timeout=DOCTOR_SECONDS_MAX,
        check=True,
    )
    # Warnings are accepted: they depend on the machine, and this one is not the example's.
    findings = [line.split() for line in done.stdout.splitlines() if " config " in line]
    assert findings and all(state != "missing" for state, *_ in findings), done.stdout
