"""Tests the permissions of a job's keys if roles are open. Their default permissions are in the
table of tests/hostile/keys.py, which test_hostile.py runs."""

import json
import os
from collections.abc import Callable, Sequence

from botocore.client import BaseClient

from tests import jobs
from tests.hostile import keys
from tests.trainyard_server import ROOT, Server, wait_for

MACHINE = "[[machine]]\nname = 'box'\ncpus = 8.0\nmemory_gib = 32.0\n"  # both jobs fit


def tried(server: Server, name: str, attacks: Sequence[str]) -> dict[str, int]:
    """Sends these requests of the attack table from a job; returns their statuses."""
    s3 = server.boto("s3")
    with open(os.path.join(ROOT, "tests", "hostile", "signer.py"), encoding="utf-8") as file:
        contents = {
            "attack.py": keys.SCRIPT,
            "signer.py": file.read(),
            "calls.json": json.dumps(
                [[one.name, one.attempt] for one in keys.ATTACKS if one.name in attacks]
            ),
        }
    for path, text in contents.items():
        s3.put_object(Bucket="yard", Key=f"code/{path}", Body=text.encode())
    account = server.boto("sts").get_caller_identity()["Account"]
    server.boto("sagemaker").create_training_job(
        **jobs.request(
            name,
            "exec python3 /opt/ml/input/data/code/attack.py",
            Environment={"ACCOUNT": account},
            channels={
                "code": ("s3://yard/code/", "FullyReplicated"),
                "train": ("s3://yard/data/", "FullyReplicated"),
            },
        )
    )
    done = jobs.wait_until(server.boto("sagemaker"), name)
    lines = jobs.log_lines(server.boto("logs"), name)
    assert done["TrainingJobStatus"] == "Completed", (done.get("FailureReason"), lines[-20:])
    return {line.split()[1]: int(line.split()[3]) for line in lines if line.startswith("TRIED ")}


def prepare(server: Server) -> BaseClient:
    s3 = server.boto("s3")
    s3.create_bucket(Bucket="yard")
    s3.put_object(Bucket="yard", Key="data/part-0", Body=b"data")
    s3.put_object(Bucket="yard", Key="secret/object", Body=b"secret")
    server.boto("sagemaker").create_training_job(**jobs.request("victim", "sleep 1000"))
    jobs.wait_until(server.boto("sagemaker"), "victim", ("Training",))
    return s3


def test_open_roles_keep_their_permissions(start: Callable[..., Server]) -> None:
    server = start('roles = "open"\n' + MACHINE + "[jobs]\nstop_grace_seconds = 1\n")
    prepare(server)
    replies = tried(
        server,
        "attacker",
        ["foreign-get", "list-jobs", "create-job", "assume-admin", "assume-TrainyardOwner"],
    )
    assert replies == {
        "foreign-get": 200,
        "list-jobs": 200,
        "create-job": 200,
        "assume-admin": 200,
        "assume-TrainyardOwner": 403,
    }
    assert wait_for(
        lambda: server.boto("sagemaker").list_training_jobs(NameContains="spawned")[
            "TrainingJobSummaries"
        ],
        "the job of the job",
    )
