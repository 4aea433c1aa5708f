"""Jobs that put links, hard links, FIFOs, devices and mounts where the agent reads and writes their files.

Each attack is a job. The machine's secret is a file that the agent, which is root, could read: how it opens what the job
names is all that keeps it out of the bucket.
"""

import io
import os
import tarfile

import pytest

import jobs
from trainyard_server import wait_for


SECRET = "canary of the machine"
METRIC = '{"MetricName": "stolen", "Value": 1}\n'

# name, shell script (MACHINE: the machine's directory), how the job ends, what its log or its FailureReason says
DURING = [
    ("intermediate-link", "rmdir /opt/ml/output/intermediate; ln -s MACHINE /opt/ml/output/intermediate; sleep 3", "Failed", "leads through a link"),
    ("intermediate-etc", "rmdir /opt/ml/output/intermediate; ln -s /etc /opt/ml/output/intermediate; sleep 3", "Failed", "leads through a link"),
    ("intermediate-up", "cd /opt/ml/output; rmdir intermediate; ln -s ../../../../../../../../MACHINE intermediate; sleep 3", "Failed", "leads through a link"),
    ("intermediate-parent", "mv /opt/ml/output /opt/ml/moved; ln -s MACHINE /opt/ml/output; sleep 3", "Failed", "leads through a link"),
    ("intermediate-file", "ln -s MACHINE/secret /opt/ml/output/intermediate/secret; ln -s MACHINE /opt/ml/output/intermediate/d; sleep 3", "Completed", "it is a link"),
    ("intermediate-proc", "rmdir /opt/ml/output/intermediate; ln -s /proc/1/root/etc /opt/ml/output/intermediate; sleep 3", "Failed", "leads through a link"),
    ("checkpoint-link", "rm -r /opt/ml/checkpoints; ln -s MACHINE /opt/ml/checkpoints; sleep 3", "Failed", "leads through a link"),
    ("checkpoint-swap", "cd /opt/ml; echo 1 > checkpoints/a; for i in $(seq 300); do mv checkpoints c; ln -s MACHINE checkpoints; rm checkpoints; mv c checkpoints; sleep 0.01; done", "Completed", None),
    ("checkpoint-below", "cd /opt/ml/checkpoints; mkdir d; echo 1 > d/secret; for i in $(seq 300); do mv d e; ln -s MACHINE d; rm d; mv e d; sleep 0.01; done", "Completed", None),
    ("checkpoint-marks", "cd /opt/ml/checkpoints; ln -s MACHINE/made a.sagemaker-uploading; ln -s MACHINE/made a.sagemaker-uploaded; echo 1 > a; sleep 4", "Completed", None),
    ("checkpoint-again", "rm -r /opt/ml/checkpoints; mkdir /opt/ml/checkpoints; echo 1 > /opt/ml/checkpoints/again", "Completed", None),
    ("model-link", "rmdir /opt/ml/model; ln -s MACHINE /opt/ml/model", "Completed", "/opt/ml/model is not kept"),
    ("model-file", "ln -s MACHINE/secret /opt/ml/model/secret; ln -s MACHINE /opt/ml/model/d", "Completed", "leads out of /opt/ml/model"),
    ("model-fifo", "mkfifo /opt/ml/model/secret", "Completed", "is neither a file"),
    ("data-link", "rmdir /opt/ml/output/data; ln -s MACHINE /opt/ml/output/data", "Completed", "/opt/ml/output/data is not kept"),
    ("data-parent", "mv /opt/ml/output /opt/ml/moved; mkdir -p /opt/ml/output/intermediate; ln -s MACHINE /opt/ml/output/data", "Completed", "/opt/ml/output/data is not kept"),
    ("failure-link", "ln -s MACHINE/secret /opt/ml/output/failure; echo my own words; exit 3", "Failed", "my own words"),
    ("failure-fifo", "mkfifo /opt/ml/output/failure; echo my own words; exit 3", "Failed", "my own words"),
    ("failure-parent", "mv /opt/ml/output /opt/ml/moved; mkdir -p /opt/ml/output/intermediate; ln -s MACHINE/secret /opt/ml/output/failure; echo my own words; exit 3", "Failed", "my own words"),
    ("failure-directory", "mkdir /opt/ml/output/failure; echo my own words; exit 3", "Failed", "my own words"),
    ("metrics-link", "mkdir -p /opt/ml/output/metrics; rm -rf /opt/ml/output/metrics/sagemaker; ln -s MACHINE /opt/ml/output/metrics/sagemaker; sleep 3", "Completed", None),
    ("metrics-file", "mkdir -p /opt/ml/output/metrics/sagemaker; cd /opt/ml/output/metrics/sagemaker; ln -s MACHINE/1.json 1.json; mkfifo 2.json; sleep 3", "Completed", None),
    ("fifos", "for d in output/intermediate checkpoints model output/data; do mkfifo /opt/ml/$d/fifo; done; sleep 3", "Completed", "it is no file"),
    ("device", "cd /opt/ml/model; if mknod zero c 1 5 || mknod disk b 254 0; then echo REACHED; fi", "Completed", None),
    ("hard-link", "cd /opt/ml/model; for f in /etc/passwd /etc/hosts /usr/bin/env /etc/resolv.conf; do if ln $f stolen; then echo REACHED; fi; done", "Completed", None),
    ("own-hard-link", "cd /opt/ml/checkpoints; echo 1 > step; ln step last", "Completed", None),
    ("mount", "mkdir /opt/ml/model/m; if mount --bind /etc /opt/ml/model/m || mount -t tmpfs none /opt/ml/model/m; then echo REACHED; fi", "Completed", None),
    ("umount", "if umount -l /opt/ml || umount /etc/hosts; then echo REACHED; fi", "Completed", None),
    ("namespace", "if unshare -Urm sh -c 'mount --bind /etc /opt/ml/model'; then echo REACHED; fi", "Completed", None),
    ("after", "(trap '' TERM HUP; while :; do rm -rf /opt/ml/model; ln -sfn MACHINE /opt/ml/model; rm -rf /opt/ml/output/data; ln -sfn MACHINE /opt/ml/output/data; done) & until [ -L /opt/ml/model ] && [ -L /opt/ml/output/data ]; do sleep 0.1; done", "Completed", "is not kept"),
]


@pytest.fixture(scope="module")
def yard(server):
    server.boto("s3").create_bucket(Bucket="yard")
    return server


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """A directory of the machine that no container sees."""
    path = tmp_path_factory.mktemp("machine")
    for name, text in (("secret", SECRET), ("1.json", METRIC), ("shadow", SECRET)):
        (path / name).write_text(text)
        (path / name).chmod(0o600)
    return path


@pytest.fixture(scope="module")
def attacked(yard, machine):
    """All attacks at once: they are one another's tenants too."""
    for name, script, _, _ in DURING:
        yard.boto("sagemaker").create_training_job(**jobs.request(
            name, script.replace("MACHINE", str(machine)), CheckpointConfig={"S3Uri": f"s3://yard/ckpt/{name}"}))
    return yard


def contents(yard, prefix):
    """Every object below a prefix, and every member of the archives among them: name -> bytes."""
    s3, found = yard.boto("s3"), {}
    for entry in s3.list_objects_v2(Bucket="yard", Prefix=prefix).get("Contents", []):
        body = s3.get_object(Bucket="yard", Key=entry["Key"])["Body"].read()
        found[entry["Key"]] = body
        if entry["Key"].endswith(".tar.gz"):
            with tarfile.open(fileobj=io.BytesIO(body)) as archive:
                for member in archive.getmembers():
                    found[entry["Key"] + "/" + member.name] = archive.extractfile(member).read() if member.isfile() else member.linkname.encode()
    return found


def expect_nothing_of_the_machine(yard, machine, name):
    """Neither in the bucket nor in the log, nor changed on the machine."""
    with open("/etc/shadow", "rb") as file:
        shadow = file.read()
    for prefix in (f"models/{name}/", f"ckpt/{name}/"):
        for key, body in contents(yard, prefix).items():
            assert SECRET.encode() not in body and body != shadow, key
            assert not key.endswith(("/shadow", "/passwd")), key
    log = "\n".join(jobs.log_lines(yard.boto("logs"), name))
    assert SECRET not in log and "REACHED" not in log, log
    assert sorted(os.listdir(machine)) == ["1.json", "secret", "shadow"]
    assert (machine / "secret").read_text() == SECRET


@pytest.mark.parametrize("name,status,said", [(row[0], row[2], row[3]) for row in DURING], ids=[row[0] for row in DURING])
def test_attacks_while_the_job_runs(attacked, machine, name, status, said):
    yard = attacked
    done = jobs.wait_until(yard.boto("sagemaker"), name)
    log = "\n".join(jobs.log_lines(yard.boto("logs"), name))
    assert done["TrainingJobStatus"] == status, (done.get("FailureReason"), log)
    assert SECRET not in done.get("FailureReason", "")
    if said:
        assert said in log + done.get("FailureReason", ""), (done.get("FailureReason"), log)
    assert "stolen" not in [metric["MetricName"] for metric in done.get("FinalMetricDataList", [])]
    expect_nothing_of_the_machine(yard, machine, name)


def test_what_is_the_jobs_own_still_arrives(attacked):
    """After the attacks above: files that were never in danger, hard links of the job's own, a directory made again."""
    for name in ("own-hard-link", "checkpoint-again", "checkpoint-swap", "checkpoint-below"):
        jobs.wait_until(attacked.boto("sagemaker"), name)
    found = contents(attacked, "ckpt/")
    assert found["ckpt/own-hard-link/last"] == found["ckpt/own-hard-link/step"] == b"1\n"
    assert found["ckpt/checkpoint-again/again"] == b"1\n"
    assert found["ckpt/checkpoint-swap/a"] == b"1\n"
    assert found["ckpt/checkpoint-below/d/secret"] == b"1\n"


BEFORE = {"up": "../../secret", "up-below": "d/../../../secret", "absolute": "/secret", "dot": "./secret", "empty": "a//b", "directory": "secret/"}


@pytest.mark.parametrize("name", BEFORE)
def test_names_of_stored_objects_lead_nowhere(yard, machine, name):
    """Before the process: what is brought into /opt/ml has names that another program chose."""
    name, key = f"before-{name}", BEFORE[name]
    yard.boto("s3").put_object(Bucket="yard", Key=f"ckpt/{name}/{key}", Body=b"overwritten")
    sagemaker = yard.boto("sagemaker")
    sagemaker.create_training_job(**jobs.request(name, "find /opt/ml/checkpoints", CheckpointConfig={"S3Uri": f"s3://yard/ckpt/{name}"}))
    done = jobs.wait_until(sagemaker, name)
    assert done["TrainingJobStatus"] == "Completed", done.get("FailureReason")
    assert (machine / "secret").read_text() == SECRET


def test_a_replaced_pipe_directory_is_not_written_to(yard, machine):
    """A channel in Pipe mode is the one thing that is written while the job runs."""
    yard.boto("s3").put_object(Bucket="yard", Key="pipe/a", Body=b"overwritten")
    request = jobs.request("piped", f"cd /opt/ml/input; cat data/train_0; mv data moved; ln -s {machine} data; cat moved/train_1; "
                                    f"until [ -p moved/train_2 ]; do sleep 0.05; done; rm moved/train_2; ln -s {machine}/secret moved/train_2; sleep 30",
                           channels={"train": ("s3://yard/pipe/", "FullyReplicated")}, AlgorithmSpecification={"TrainingInputMode": "Pipe"})
    sagemaker = yard.boto("sagemaker")
    sagemaker.create_training_job(**request)
    done = jobs.wait_until(sagemaker, "piped")
    assert done["TrainingJobStatus"] == "Failed" and "leads through a link" in done["FailureReason"], done
    assert "overwrittenoverwritten" in "".join(jobs.log_lines(yard.boto("logs"), "piped"))
    expect_nothing_of_the_machine(yard, machine, "piped")


def test_a_stopped_job_ends_although_its_files_are_links(yard, machine):
    sagemaker = yard.boto("sagemaker")
    sagemaker.create_training_job(**jobs.request("stopped", f"rmdir /opt/ml/model /opt/ml/output/data; ln -s {machine} /opt/ml/model; "
                                                            f"ln -s {machine} /opt/ml/output/data; echo ready; trap 'exit 0' TERM; while :; do sleep 0.05; done"))
    wait_for(lambda: "ready" in jobs.log_lines(yard.boto("logs"), "stopped"), "the job to run")
    sagemaker.stop_training_job(TrainingJobName="stopped")
    assert jobs.wait_until(sagemaker, "stopped")["TrainingJobStatus"] == "Stopped"
    expect_nothing_of_the_machine(yard, machine, "stopped")
