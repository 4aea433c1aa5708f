"""Tests the pages of docs/operating: their console and Python snippets are run as they are
printed."""

import pathlib

import pytest

from tests.journeys import documents

START = """\
build/trainyard serve > /dev/null 2>&1 &
echo $! > server.pid
for _ in $(seq 600); do [ -e "$HOME/.local/share/trainyard/server.json" ] && break; sleep 0.1; done
eval "$(build/trainyard env)"
ACCOUNT=$(aws sts get-caller-identity --query Account --output text)
"""
QUEUE = """\
aws batch create-compute-environment --compute-environment-name machines --type MANAGED \\
    --compute-resources type=EC2,maxvCpus=8,subnets=any
aws batch create-job-queue --job-queue-name nightly --priority 1 \\
    --compute-environment-order order=1,computeEnvironment=machines
aws batch register-job-definition --job-definition-name train --type container \\
    --container-properties '{"image": "trainyard/host", "command": ["true"],
      "resourceRequirements": [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "64"}]}'
"""
ARRAY = """\
aws batch submit-job --job-name nightly --job-queue nightly --job-definition train \\
    --array-properties size=10 --container-overrides command=sleep,600
"""
IMAGES = "aws s3 mb s3://data; echo image > 1.jpg; aws s3 cp 1.jpg s3://data/imagenet/1.jpg"
TEAM = "aws s3 mb s3://team; aws iam create-user --user-name ann"
RUNS = {
    "docs/operating/README.md": documents.Run(
        skipped={
            "trainyard jobs --watch": "shows the jobs until it is stopped",
            "trainyard downgrade": "tests/upgrade has data of an earlier version",
        },
        before={
            "trainyard submit job.toml": "mkdir data; echo 1 > data/a.csv",
            "trainyard stop nightly:7": QUEUE + ARRAY,
            "trainyard cost --by tag:project": "trainyard stop nightly",
        },
    ),
    "docs/operating/batch.md": documents.Run(before={"aws batch submit-job": START + QUEUE}),
    "docs/operating/campaigns.md": documents.Run(
        skipped={"trainyard campaign run": "the suite `campaign` runs one over four servers"},
        before={"trainyard campaign change": START},
    ),
    "docs/operating/console.md": documents.Run(before={"trainyard console": START}),
    "docs/operating/fsx.md": documents.Run(
        before={
            "FS=$(aws fsx create-file-system": START
            + "aws s3 mb s3://imagenet; echo 1 > 1; aws s3 cp 1 s3://imagenet/resized/1",
        },
    ),
    "docs/operating/kubernetes.md": documents.Run(
        skipped={
            "kubectl create namespace": "tests/kubernetes/test_chart.py makes one",
            "kubectl label namespace": "as above",
            "helm install": "as above",
        }
    ),
    "docs/operating/notifications.md": documents.Run(
        before={"TOPIC=$(aws sns create-topic": START},
    ),
    "docs/operating/logs.md": documents.Run(before={"aws logs create-log-group": START}),
    "docs/operating/fast-file.md": documents.Run(
        before={"trainyard cache warm": START + IMAGES},
    ),
    "docs/operating/metrics.md": documents.Run(
        before={"aws cloudwatch put-metric-data --namespace Team --metric-name loss": START},
    ),
    "docs/operating/prometheus.md": documents.Run(
        before={"trainyard metrics-token > trainyard.token": START},
    ),
    "docs/operating/several-servers.md": documents.Run(
        skipped={
            "trainyard ledger copy": "tests/system/test_ledger_moves.py has a PostgreSQL server",
            "trainyard ledger adopt": "as above",
        }
    ),
    "docs/operating/slurm-cluster.md": documents.Run(
        skipped={"trainyard cluster": "tests/cluster has machines"},
    ),
    "docs/operating/security.md": documents.Run(
        before={
            "aws iam create-role": START,
            "aws s3api put-bucket-policy": TEAM,
        }
    ),
}


def test_every_page_with_snippets_is_run() -> None:
    pages = {
        page
        for page in documents.PAGES
        if any(block.language in documents.RUN for block in documents.blocks(page))
    }
    # The last one is run as several users: tests/journeys/administrator.
    assert pages == {"README.md", *RUNS, "docs/operating/onboarding.md"}


@pytest.mark.parametrize("page", list(RUNS))
def test_a_page_runs_as_it_is_printed(page: str, tmp_path: pathlib.Path) -> None:
    documents.run_page(page, tmp_path, RUNS[page])
