"""Tests jobs on the nodes of a real Slurm cluster, from API to log."""

import glob
import hmac
import json
import os
import pathlib
import re
import subprocess
import time
from collections.abc import Callable

import pytest

from tests import jobs
from tests.calls import fresh
from tests.cluster_jobs import (
    REACH_THE_FIRST,
    SOME_SECONDS,
    WAIT_FOR_STOP,
    create,
    finish,
    lines,
    wait_for_line,
)
from tests.ports import free_port
from tests.slurm.cluster import CONTROLLER, Cluster
from tests.slurm.conftest import INTERFACES, interface_keys, rest_keys
from tests.trainyard_server import PROGRAM, Server, wait_for

SHOW_ARGUMENTS = """
import os, sys
print(f"{sys.argv[2]} epochs of {os.listdir(os.environ['SM_CHANNEL_TRAIN'])}")
"""
SHORT_FORM = """
image = "trainyard/host"
instance_type = "ml.m5.large"
max_runtime_seconds = 600
[code]
directory = "./src"
entry = "train.py"
[channels]
train = "./data"
[hyperparameters]
epochs = 3
"""
# Slurm may signal it, and then the agent: the second signal has no effect.
SAVE_WHEN_STOPPED = (
    "cd /opt/ml/checkpoints; if [ -e state ]; then echo resumed from $(cat state); exit 0; fi; "
    "trap 'trap : TERM; echo saving; sleep 1; echo step 7 > state; exit 0' TERM; "
    "echo ready; while :; do sleep 0.1; done"
)
SLURM_HOST = os.path.join(os.path.dirname(PROGRAM), "trainyard-slurm-host")


def slurm_job_of(cluster: Cluster) -> list[str]:
    """Returns the id, state, reason, nodes, name and comment of the last job."""
    return max(cluster.jobs(), key=lambda job: int(job[0]))


def test_a_job_runs_on_a_node_and_its_log_arrives(cluster: Cluster, server: Server) -> None:
    name = fresh("job")
    request = jobs.request(name, "echo hello from $(hostname)")
    server.aws(
        "sagemaker",
        "create-training-job",
        "--cli-input-json",
        json.dumps(request),
    )
    job = finish(server, name)
    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    assert lines(server, name) == ["hello from algo-1"]
    # The mark depends on the data directory's key, not on its path.
    with open(os.path.join(server.data, "sealing.key"), encoding="utf-8") as file:
        key = bytes.fromhex(file.read())
    mark = hmac.new(key, b"mark of jobs in Slurm", "sha256").hexdigest()[:6]
    assert any(job[4].startswith(f"trainyard-{mark}-") for job in cluster.jobs())


def test_the_hosts_of_a_gang_reach_each_other_across_nodes(
    cluster: Cluster, server: Server
) -> None:
    name = create(
        server,
        f"python3 -c '{REACH_THE_FIRST}'",
        hosts=2,
        instance_type="ml.c5.4xlarge",
    )
    job = finish(server, name)
    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    assert lines(server, name, 2) == ["received 1000000"]
    assert re.fullmatch(r"n\[\d-\d\]|n\[\d,\d\]", slurm_job_of(cluster)[3])


def test_a_job_uses_its_role_and_writes_its_model(server: Server) -> None:
    name = create(server, "echo weights > /opt/ml/model/model.txt")
    job = finish(server, name)
    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    uri = job["ModelArtifacts"]["S3ModelArtifacts"]
    bucket, key = uri.removeprefix("s3://").split("/", 1)
    assert server.boto("s3").head_object(Bucket=bucket, Key=key)["ContentLength"] > 0


def test_the_short_form_of_trainyard_submit_runs_on_a_node(
    server: Server, tmp_path: pathlib.Path
) -> None:
    """With a directory of code and one of data, which are uploaded first."""
    for name, text in (
        ("data/part", "one\n"),
        ("src/train.py", SHOW_ARGUMENTS),
        ("job.toml", SHORT_FORM),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        [PROGRAM, "submit", "job.toml", "--follow", "--name", fresh("short")],
        env=server.environment(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "3 epochs of ['part']" in done.stdout, done.stdout


def test_the_exit_code_of_a_failed_job_is_reported(server: Server) -> None:
    name = create(server, "echo bad; exit 7")
    job = finish(server, name)
    assert job["TrainingJobStatus"] == "Failed"
    assert "ExitCode 7" in job["FailureReason"] or "exit code: 7" in job["FailureReason"].lower()


def test_a_job_stops_on_request(cluster: Cluster, server: Server) -> None:
    name = create(server, WAIT_FOR_STOP)
    wait_for_line(server, name, "ready")
    server.boto("sagemaker").stop_training_job(TrainingJobName=name)
    assert finish(server, name)["TrainingJobStatus"] == "Stopped"
    assert "stopping" in lines(server, name)
    wait_for(lambda: not cluster.live_jobs(), "Slurm's job to end")


def test_a_killed_server_finds_its_jobs_again(cluster: Cluster, server: Server) -> None:
    name = create(server, SOME_SECONDS, hosts=2, instance_type="ml.c5.4xlarge")
    wait_for_line(server, name, "ready")
    before = cluster.live_jobs()
    server.kill()
    server.start()
    job = finish(server, name)
    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    assert lines(server, name, 1) == ["ready", "continued"]
    assert len(before) == 1
    transitions = [each["Status"] for each in job["SecondaryStatusTransitions"]]
    assert transitions.count("Training") == 1, "the job was started twice"


def test_a_failed_node_is_a_lost_host_with_slurms_reason(cluster: Cluster, server: Server) -> None:
    name = create(server, WAIT_FOR_STOP, instance_type="ml.c5.4xlarge")
    wait_for_line(server, name, "ready")
    node = slurm_job_of(cluster)[3]
    cluster.fail_node(node)
    try:
        job = finish(server, name)
    finally:
        cluster.start_node(node)
        cluster.wait_for_idle()
    cluster.run_on(node, SLURM_HOST, "--clean", f"{server.data}/nodes")
    assert os.listdir(f"{server.data}/nodes/{node}/attempts") == []
    assert job["TrainingJobStatus"] == "Failed"
    assert re.search("is NODE_FAIL|was requeued", job["FailureReason"]), job["FailureReason"]
    assert "Not responding" in job["FailureReason"], job["FailureReason"]


def preempt_and_finish(cluster: Cluster, server: Server, name: str) -> str:
    """Lets an urgent job take the node of the last job, and waits until that has ended. Returns the
    message of its interruption."""
    urgent = cluster.run(
        "sbatch",
        "--parsable",
        "--partition=urgent",
        "--exclusive",
        f"--nodelist={slurm_job_of(cluster)[3]}",
        "--output=/dev/null",
        "--wrap=sleep 600",
    ).strip()
    cluster.wait_for(lambda: [urgent, "RUNNING"] in cluster.jobs("%A|%T"), "the urgent job to run")
    # The next attempt may have been placed on this node before Slurm showed who has it.
    cluster.run("scancel", urgent)
    job = finish(server, name)
    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    transitions = job["SecondaryStatusTransitions"]
    interrupted = [each for each in transitions if each["Status"] == "Interrupted"]
    assert len(interrupted) == 1, transitions
    message: str = interrupted[0]["StatusMessage"]
    return message


def test_a_job_that_slurm_preempts_is_interrupted_and_starts_again(
    cluster: Cluster, server: Server
) -> None:
    name = create(server, SOME_SECONDS, instance_type="ml.c5.4xlarge")
    wait_for_line(server, name, "ready")
    message = preempt_and_finish(cluster, server, name)
    assert re.search("preempted on machine .* is PREEMPTED", message), message
    assert lines(server, name).count("ready") == 2


@pytest.mark.parametrize("interface", INTERFACES)
def test_a_preempted_job_saves_a_checkpoint_within_the_partitions_grace_time(
    cluster: Cluster, start: Callable[..., Server], interface: str
) -> None:
    server = start(interface_keys(cluster, interface), partition="patient")
    server.boto("s3").create_bucket(Bucket="yard")
    name = create(
        server,
        SAVE_WHEN_STOPPED,
        instance_type="ml.c5.4xlarge",
        CheckpointConfig={"S3Uri": f"s3://yard/{fresh('checkpoints')}"},
    )
    wait_for_line(server, name, "ready")
    message = preempt_and_finish(cluster, server, name)
    # Slurm may have ended the job when the server looks: "is PREEMPTED".
    assert re.search("preempted on machine .*(preempted|PREEMPTED)", message), message
    shown = [line for line in lines(server, name) if line != "Terminated"]  # of the shell's sleep
    assert shown == ["ready", "saving", "resumed from step 7"]


def test_secrets_are_neither_in_the_job_nor_in_arguments(cluster: Cluster, server: Server) -> None:
    name = create(server, WAIT_FOR_STOP, instance_type="ml.c5.4xlarge")
    wait_for_line(server, name, "ready")
    job, _, _, node, *_ = slurm_job_of(cluster)
    orders = glob.glob(f"{server.data}/nodes/{node}/attempts/*/0/order.json")
    assert len(orders) == 1
    assert os.stat(orders[0]).st_mode & 0o077 == 0
    with open(orders[0], encoding="utf-8") as file:
        token = re.search(r'"token":\s*"([0-9a-f]+)"', file.read())
    assert token
    shown = cluster.run("scontrol", "show", "--details", "job", job)
    assert job in shown
    assert token[1] not in shown
    for path in glob.glob("/proc/[0-9]*/cmdline") + glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as process:
                assert token[1].encode() not in process.read(), path
        except OSError:
            continue
    server.boto("sagemaker").stop_training_job(TrainingJobName=name)
    finish(server, name)


def test_a_copied_comment_of_another_user_is_ignored(cluster: Cluster, server: Server) -> None:
    name = create(server, SOME_SECONDS, instance_type="ml.c5.4xlarge")
    wait_for_line(server, name, "ready")
    _, _, _, _, slurm_name, comment = slurm_job_of(cluster)
    cluster.run(
        "sbatch",
        "--uid=nobody",
        f"--job-name={slurm_name}",
        f"--comment={comment}",
        "--mem=100",
        "--output=/dev/null",
        "--chdir=/",
        "--wrap",
        "sleep 600",
    )
    copy = max(cluster.live_jobs(), key=int)
    job = finish(server, name)
    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    assert [copy, "RUNNING"] in cluster.jobs("%A|%T"), "the server ended another user's job"
    cluster.cancel_all()


def test_an_agent_that_is_killed_is_a_lost_host(cluster: Cluster, server: Server) -> None:
    name = create(server, WAIT_FOR_STOP, hosts=2, instance_type="ml.c5.4xlarge")
    wait_for(
        lambda: "ready" in lines(server, name, 1) and "ready" in lines(server, name, 2),
        "both hosts",
    )
    agents = server.agents()
    assert len(agents) == 2
    os.kill(agents[0], 9)
    job = finish(server, name)
    assert job["TrainingJobStatus"] == "Failed"
    assert "lost the host's agent" in job["FailureReason"], job["FailureReason"]
    wait_for(lambda: not cluster.live_jobs(), "Slurm's job to end")


def test_nodes_keep_nothing_of_ended_jobs(cluster: Cluster, server: Server) -> None:
    name = create(server, "echo done")
    finish(server, name)
    wait_for(lambda: not cluster.live_jobs(), "Slurm's job to end")
    assert glob.glob(f"{server.data}/nodes/*/attempts/*") == []
    for node in cluster.names:
        links = subprocess.run(
            ["ip", "-n", cluster.namespace(node), "-o", "link"], capture_output=True, text=True
        ).stdout
        assert not re.search(r": t[yvx][0-9a-f]", links), links


def test_the_server_does_not_start_with_a_missing_partition(start: Callable[..., Server]) -> None:
    with pytest.raises(AssertionError, match="partition 'no-such'"):
        start(partition="no-such")


def test_jobs_survive_an_outage_of_slurmctld(cluster: Cluster, server: Server) -> None:
    name = create(server, SOME_SECONDS)
    wait_for_line(server, name, "ready")
    cluster.kill_controller()
    try:
        later = create(server, "echo later")
        wait_for(lambda: "cannot query Slurm" in server.log_text(), "the server to notice")
    finally:
        cluster.start_controller()
    for each, last in ((name, "continued"), (later, "later")):
        job = finish(server, each)
        assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
        assert lines(server, each)[-1] == last


def test_a_hanging_slurmctld_delays_only_operations_that_use_it(
    cluster: Cluster, server: Server
) -> None:
    sagemaker = server.boto("sagemaker")
    running = create(server, WAIT_FOR_STOP)
    wait_for_line(server, running, "ready")
    cluster.pause_controller()
    try:
        later = create(server, "echo later")

        def waits() -> bool:
            job = sagemaker.describe_training_job(TrainingJobName=later)
            return "until Slurm answers" in job["SecondaryStatusTransitions"][-1]["StatusMessage"]

        wait_for(waits, "the job's pending reason")
        sagemaker.stop_training_job(TrainingJobName=running)
        assert finish(server, running)["TrainingJobStatus"] == "Stopped"
        assert waits(), "slurmctld does not answer yet"
    finally:
        cluster.resume_controller()
    job = finish(server, later)
    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    assert len(job["SecondaryStatusTransitions"]) > 1
    wait_for(lambda: not cluster.live_jobs(), "Slurm's jobs to end")


def test_a_server_without_slurmctld_does_not_start(
    cluster: Cluster, start: Callable[..., Server]
) -> None:
    cluster.kill_controller()
    try:
        with pytest.raises(AssertionError, match="slurmctld does not answer"):
            start()
    finally:
        cluster.start_controller()


def test_nodes_of_other_users_jobs_are_not_used(cluster: Cluster, server: Server) -> None:
    cluster.run(
        "sbatch",
        "--nodes=2",
        "--exclusive",
        "--nodelist=n1,n2",
        "--wrap",
        "sleep 600",
        "--output=/dev/null",
        "--job-name=foreign",
    )
    foreign = max(cluster.live_jobs(), key=int)
    cluster.wait_for(lambda: [foreign, "RUNNING"] in cluster.jobs("%A|%T"), "a foreign job to run")
    name = create(server, "echo hello", instance_type="ml.c5.4xlarge")
    job = finish(server, name)
    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    assert slurm_job_of(cluster)[3] == "n3"
    cluster.cancel_all()


def test_jobs_pending_in_slurm_show_slurms_reason(
    cluster: Cluster, start: Callable[..., Server]
) -> None:
    """Another job has the only licence."""
    cluster.take_the_licence()
    server = start('licenses = "solver:1"')
    server.boto("s3").create_bucket(Bucket="yard")
    name = create(server, "echo hello")
    sagemaker = server.boto("sagemaker")

    def reason() -> bool:
        job = sagemaker.describe_training_job(TrainingJobName=name)
        return "is PENDING (Licenses)" in job["SecondaryStatusTransitions"][-1]["StatusMessage"]

    wait_for(reason, "Slurm's reason")
    cluster.cancel_foreign()
    assert finish(server, name)["TrainingJobStatus"] == "Completed"


def test_a_job_that_slurm_has_not_started_can_be_stopped(
    cluster: Cluster, start: Callable[..., Server]
) -> None:
    cluster.take_the_licence()
    server = start('licenses = "solver:1"')
    server.boto("s3").create_bucket(Bucket="yard")
    name = create(server, "echo hello")
    wait_for(lambda: len(cluster.live_jobs()) == 2, "the job to be submitted")
    server.boto("sagemaker").stop_training_job(TrainingJobName=name)
    assert finish(server, name)["TrainingJobStatus"] == "Stopped"
    wait_for(lambda: len(cluster.live_jobs()) == 1, "Slurm's job to be cancelled")
    cluster.cancel_foreign()


def test_gpus_are_requested_as_gres(cluster: Cluster, server: Server) -> None:
    """Slurm's GPUs are terminals here, so the job fails without a /dev/nvidia file, and says so."""
    name = create(server, "echo hello", instance_type="ml.g4dn.xlarge")
    job = finish(server, name)
    assert slurm_job_of(cluster)[3] == "n3"
    assert "gpus=1" in slurm_job_of(cluster)[5]
    assert "gpu:1" in max(cluster.jobs("%A|%b"), key=lambda each: int(each[0]))[1]
    assert re.search("/dev/nvidia[0-3]", job["FailureReason"]), job


def test_drained_nodes_get_no_jobs(cluster: Cluster, server: Server) -> None:
    for node in ("n1", "n2"):
        cluster.run("scontrol", "update", f"nodename={node}", "state=drain", "reason=disk")
    try:
        name = create(server, "echo hello")
        assert finish(server, name)["TrainingJobStatus"] == "Completed"
        assert slurm_job_of(cluster)[3] == "n3"
    finally:
        for node in ("n1", "n2"):
            cluster.run("scontrol", "update", f"nodename={node}", "state=resume")
        cluster.wait_for_idle()


def test_an_expired_token_is_reported_at_the_start_and_while_running(
    cluster: Cluster, start: Callable[..., Server]
) -> None:
    made = int(time.time())
    keys = rest_keys(cluster, seconds=1)
    wait_for(lambda: time.time() >= made + 2, "the end of its lifetime, in whole seconds")
    with pytest.raises(AssertionError, match="the token expired at"):
        start(keys)
    server = start(rest_keys(cluster))
    server.boto("s3").create_bucket(Bucket="yard")
    name = create(server, WAIT_FOR_STOP)
    wait_for_line(server, name, "ready")
    with open(cluster.at("token"), "w", encoding="utf-8") as file:
        file.write("wrong")
    wait_for(lambda: "the file does not contain a JWT" in server.log_text(), "the server to notice")
    rest_keys(cluster)
    server.boto("sagemaker").stop_training_job(TrainingJobName=name)
    assert finish(server, name)["TrainingJobStatus"] == "Stopped"


def test_agents_find_a_restarted_server_by_tcp(
    cluster: Cluster, start: Callable[..., Server]
) -> None:
    server = start(f'agents_listen = "{CONTROLLER}:{free_port()}"')
    server.boto("s3").create_bucket(Bucket="yard")
    name = create(server, WAIT_FOR_STOP, hosts=2, instance_type="ml.c5.4xlarge")
    for host in (1, 2):
        wait_for(lambda host=host: lines(server, name, host) == ["ready"], f"host {host}")
    server.kill()
    server.start()
    server.boto("sagemaker").stop_training_job(TrainingJobName=name)
    assert finish(server, name)["TrainingJobStatus"] == "Stopped"
    assert lines(server, name, 2) == ["ready", "stopping"]


def test_an_instance_type_has_its_own_partition_and_time_limit(
    cluster: Cluster, start: Callable[..., Server]
) -> None:
    """A job that exceeds the partition's limit of two minutes stays pending; others run."""
    server = start('[slurm.instance_types."ml.m5.large"]\npartition = "short"')
    server.boto("s3").create_bucket(Bucket="yard")
    long = create(server, "true", instance_type="ml.m5.large")
    wait_for(
        lambda: ["PartitionTimeLimit", "short", "36:00"] in cluster.jobs("%r|%P|%l"),
        "Slurm's reason",
    )
    other = create(server, "true")
    assert finish(server, other)["TrainingJobStatus"] == "Completed"
    server.boto("sagemaker").stop_training_job(TrainingJobName=long)
    assert finish(server, long)["TrainingJobStatus"] == "Stopped"


def test_rejections_by_slurm_fail_the_job(cluster: Cluster, start: Callable[..., Server]) -> None:
    server = start('reservation = "no-such"')
    server.boto("s3").create_bucket(Bucket="yard")
    job = finish(server, create(server, "true"))
    assert job["TrainingJobStatus"] == "Failed"
    assert "Requested reservation is invalid" in job["FailureReason"]


def test_the_doctor_counts_usable_nodes(cluster: Cluster, server: Server) -> None:
    cluster.wait_for_idle()
    config = ["--config", server.data + ".toml"]
    found = subprocess.run(
        [PROGRAM, "doctor", "--data", server.data, *config], capture_output=True, text=True
    ).stdout
    assert "3 of 3 nodes can be used (partition train)" in found, found
