"""Tests checkpoints and intermediate output: they are copied to S3 while a job runs, and
checkpoints are restored when it is started again."""

import hashlib
import json
import os
import signal
from typing import Any

import pytest

from tests import jobs
from tests.trainyard_server import Server, wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="containers need root")
PLACE = "/opt/ml/checkpoints"


@pytest.fixture(scope="module")
def cluster(server: Server) -> Server:
    server.boto("s3").create_bucket(Bucket="yard")
    return server


def keys(cluster: Server, prefix: str) -> list[str]:
    listed = cluster.boto("s3").list_objects_v2(Bucket="yard", Prefix=prefix)
    return [entry["Key"][len(prefix) :] for entry in listed.get("Contents", [])]


def content(cluster: Server, key: str) -> bytes:
    return cluster.boto("s3").get_object(Bucket="yard", Key=key)["Body"].read()


def start(cluster: Server, name: str, script: str, **more: Any) -> None:
    more.setdefault("CheckpointConfig", {"S3Uri": f"s3://yard/{name}"})
    cluster.boto("sagemaker").create_training_job(**jobs.request(name, script, **more))


def finish(cluster: Server, name: str, status: str = "Completed") -> list[str]:
    done = jobs.wait_until(cluster.boto("sagemaker"), name)
    assert done["TrainingJobStatus"] == status, (
        done.get("FailureReason"),
        jobs.log_lines(cluster.boto("logs"), name),
    )
    return jobs.log_lines(cluster.boto("logs"), name)


def test_checkpoints_of_a_job_are_restored_in_the_next(cluster: Server) -> None:
    """While the job runs, whole files, deletions and marks are copied, and ignored files are not.
    Another job restores all of it."""
    cluster.boto("s3").put_object(Bucket="yard", Key="keeps/older/model", Body=b"before")
    start(
        cluster,
        "keeps",
        f"""
set -e; cd {PLACE}; cat /opt/ml/input/config/checkpointconfig.json; echo; cat older/model; echo
echo part > half.sagemaker-ignore
head -c 3000000 /dev/zero > step-1.sagemaker-ignore; mv step-1.sagemaker-ignore step-1
until [ -e step-1.sagemaker-uploaded ]; do sleep 0.05; done
[ ! -e step-1.sagemaker-uploading ]; echo marked
rm -r older; echo two > step-2; until [ ! -e step-1 ]; do sleep 0.05; done
echo late > last; ln -s step-2 latest; chmod 600 last""",
        StoppingCondition={"MaxRuntimeInSeconds": 60},
    )
    wait_for(
        lambda: keys(cluster, "keeps/") == ["step-1", "step-2"], "the deletion and the second step"
    )
    agent_view = wait_for(
        lambda: [
            path
            for path in attempts(cluster)
            if os.path.exists(f"{path}/ml/checkpoints/step-2.sagemaker-uploaded")
        ],
        "the mark",
    )
    os.unlink(f"{agent_view[0]}/ml/checkpoints/step-1")
    lines = finish(cluster, "keeps")
    assert (
        json.loads(lines[0]) == {"LocalPath": PLACE} and lines[1] == "before" and "marked" in lines
    )
    assert [
        line for line in lines if "latest is not copied to s3://yard/keeps/: it is a link" in line
    ]
    assert keys(cluster, "keeps/") == ["last", "step-2"], "also what was written since the scan"
    described = cluster.boto("sagemaker").describe_training_job(TrainingJobName="keeps")
    assert described["CheckpointConfig"] == {"S3Uri": "s3://yard/keeps"}

    start(
        cluster,
        "keeps-again",
        "cd /var/tmp/ckpt; cat last step-2; ls | wc -l; echo changed > last",
        CheckpointConfig={"S3Uri": "s3://yard/keeps/", "LocalPath": "/var/tmp/ckpt/"},
    )
    assert finish(cluster, "keeps-again") == ["late", "two", "2"]
    assert content(cluster, "keeps/last") == b"changed\n"


def attempts(cluster: Server) -> list[str]:
    """Returns the hosts' directories as their agents see them: a job's volume is mounted for its
    agent only."""
    found = []
    for agent in cluster.agents():
        with open(f"/proc/{agent}/cmdline", "rb") as file:
            words = file.read().decode().split("\0")
        found.append(f"/proc/{agent}/root{words[words.index('--directory') + 1]}")
    return found


def test_a_stopped_job_keeps_its_last_output(cluster: Server) -> None:
    start(
        cluster,
        "stopped",
        f"trap 'echo saved > {PLACE}/last; exit 0' TERM; echo ready; while :; do sleep 0.05; done",
    )
    wait_for(lambda: "ready" in jobs.log_lines(cluster.boto("logs"), "stopped"), "the job to run")
    cluster.boto("sagemaker").stop_training_job(TrainingJobName="stopped")
    finish(cluster, "stopped", "Stopped")
    assert content(cluster, "stopped/last") == b"saved\n"


def test_hosts_share_one_directory(cluster: Server) -> None:
    cluster.boto("s3").put_object(Bucket="yard", Key="shared/algo-9", Body=b"")
    meet = """python3 -c "
import os, socket, time
if os.uname().nodename == 'algo-2': socket.create_server(('', 7000)).accept()
else:
    for _ in range(600):
        try: socket.create_connection(('algo-2', 7000)); break
        except OSError: time.sleep(0.1)
" """
    start(
        cluster,
        "shared",
        f"cd {PLACE}; ls; {meet}; echo $(hostname) > $(hostname); [ $(hostname) = algo-2 ] || rm"
        " algo-9; true",
        hosts=2,
    )
    lines = finish(cluster, "shared")
    assert lines.count("algo-9") == 2
    assert keys(cluster, "shared/") == ["algo-1", "algo-2"]
    assert content(cluster, "shared/algo-2") == b"algo-2\n"


def test_a_killed_agent_leaves_whole_files(cluster: Server) -> None:
    """A writer replaces one file repeatedly, each content with its own digest, and the agent is
    killed. The writer continues while a file is being copied, or after two seconds, which may be
    between two scans."""
    writer = f"""
import hashlib, os, time
os.chdir('{PLACE}')
for n in range(10**9):
    body = (str(n) * 400000).encode()
    with open('t.sagemaker-ignore', 'wb') as file: file.write(hashlib.sha256(body).digest() + body)
    os.rename('t.sagemaker-ignore', 'model')
    with open('in-place', 'wb') as file: file.write(hashlib.sha256(body).digest() + body)
    for _ in range(200): os.path.exists('model.sagemaker-uploading') or time.sleep(0.01)
"""
    for number in range(3):
        name = f"killed-{number}"
        start(
            cluster, name, f'python3 -c "{writer}"', CheckpointConfig={"S3Uri": "s3://yard/killed"}
        )
        wait_for(lambda: "model" in keys(cluster, "killed/"), "the first checkpoint")
        seen = cluster.boto("s3").head_object(Bucket="yard", Key="killed/model")["ETag"]
        wait_for(
            lambda: (
                cluster.boto("s3").head_object(Bucket="yard", Key="killed/model")["ETag"] != seen
            ),
            "another one",
        )
        for agent in cluster.agents():
            os.kill(agent, signal.SIGKILL)
        finish(cluster, name, "Failed")
        for key in keys(cluster, "killed/"):
            body = content(cluster, "killed/" + key)
            assert body[:32] == hashlib.sha256(body[32:]).digest(), f"{key} is torn"


def test_intermediate_output_is_seen_while_the_job_runs(cluster: Server) -> None:
    start(
        cluster,
        "between",
        "mkdir /opt/ml/output/intermediate/a; echo 1 > /opt/ml/output/intermediate/a/b; until [ -e"
        " /opt/ml/model/go ]; do sleep 0.05; done; rm -r /opt/ml/output/intermediate/a",
    )
    wait_for(lambda: keys(cluster, "models/between/output/intermediate/") == ["a/b"], "the file")
    for path in attempts(cluster):
        open(f"{path}/ml/model/go", "w", encoding="utf-8").close()
    finish(cluster, "between")
    assert keys(cluster, "models/between/output/intermediate/") == ["a/b"]


def test_invalid_checkpoint_configs_are_reported(cluster: Server) -> None:
    start(cluster, "nowhere", "true", CheckpointConfig={"S3Uri": "s3://no-such-bucket/x"})
    done = jobs.wait_until(cluster.boto("sagemaker"), "nowhere")
    assert done["FailureReason"].startswith(
        "ClientError: Checkpoint download failed: s3://no-such-bucket/x: bucket no-such-bucket"
    )
    for path in ("checkpoints", "/opt/ml", "/opt/ml/input/x", "/a/../b", "/proc/1"):
        with pytest.raises(cluster.boto("sagemaker").exceptions.ClientError, match="LocalPath"):
            start(
                cluster,
                "refused",
                "true",
                CheckpointConfig={"S3Uri": "s3://yard/x", "LocalPath": path},
            )
