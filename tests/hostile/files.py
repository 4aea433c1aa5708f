"""Lists attacks of a job on the agent, which reads and writes the job's files: the job makes links,
hard links, FIFOs, devices and mounts in their places.

Each attack is a separate job. `attempt` is the job's script, in which MACHINE is a directory that
no container sees; `more`: how the job ends. After each attack, the test checks that the directory's
secret was not copied."""

import io
import os
import pathlib
import tarfile

from tests import jobs
from tests.hostile.table import JOB_LOG, NOWHERE, REASON, Attack
from tests.trainyard_server import Server

SECRET = "canary of the machine"
METRIC = '{"MetricName": "stolen", "Value": 1}\n'
LINK, KEPT, WORDS = "leads through a link", "is not kept", "my own words"
WATCHED = "sleep 3"  # so that the agent reads these directories several times


def row(
    name: str, tried: str, script: str, status: str, refused: str = r"^$", logged: str = JOB_LOG
) -> Attack:
    return Attack(name, tried, refused, logged, script, (status,))


def race(script: str) -> str:
    return "for i in $(seq 300); do " + script + "; sleep 0.01; done"


ATTACKS = (
    row(
        "intermediate-link",
        "make output/intermediate a link",
        f"rmdir /opt/ml/output/intermediate; ln -s MACHINE /opt/ml/output/intermediate; {WATCHED}",
        "Failed",
        LINK,
        REASON,
    ),
    row(
        "intermediate-etc",
        "make output/intermediate a link to /etc",
        f"rmdir /opt/ml/output/intermediate; ln -s /etc /opt/ml/output/intermediate; {WATCHED}",
        "Failed",
        LINK,
        REASON,
    ),
    row(
        "intermediate-up",
        "make output/intermediate a link upwards",
        "cd /opt/ml/output; rmdir intermediate; ln -s ../../../../../../../../MACHINE"
        f" intermediate; {WATCHED}",
        "Failed",
        LINK,
        REASON,
    ),
    row(
        "intermediate-parent",
        "make output a link",
        f"mv /opt/ml/output /opt/ml/moved; ln -s MACHINE /opt/ml/output; {WATCHED}",
        "Failed",
        LINK,
        REASON,
    ),
    row(
        "intermediate-file",
        "put links into output/intermediate",
        "ln -s MACHINE/secret /opt/ml/output/intermediate/secret; ln -s MACHINE"
        f" /opt/ml/output/intermediate/d; {WATCHED}",
        "Completed",
        "it is a link",
    ),
    row(
        "intermediate-proc",
        "make output/intermediate a link through /proc/1/root",
        "rmdir /opt/ml/output/intermediate; ln -s /proc/1/root/etc /opt/ml/output/intermediate;"
        f" {WATCHED}",
        "Failed",
        LINK,
        REASON,
    ),
    row(
        "checkpoint-link",
        "make the checkpoints a link",
        f"rm -r /opt/ml/checkpoints; ln -s MACHINE /opt/ml/checkpoints; {WATCHED}",
        "Failed",
        LINK,
        REASON,
    ),
    row(
        "checkpoint-swap",
        "exchange the checkpoints for a link, again and again",
        "cd /opt/ml; echo 1 > checkpoints/a; "
        + race("mv checkpoints c; ln -s MACHINE checkpoints; rm checkpoints; mv c checkpoints"),
        "Completed",
        logged=NOWHERE,
    ),
    row(
        "checkpoint-below",
        "exchange a directory of them for a link, again and again",
        "cd /opt/ml/checkpoints; mkdir d; echo 1 > d/secret; "
        + race("mv d e; ln -s MACHINE d; rm d; mv e d"),
        "Completed",
        logged=NOWHERE,
    ),
    row(
        "checkpoint-marks",
        "have the agent write its marks through links",
        "cd /opt/ml/checkpoints; ln -s MACHINE/made a.sagemaker-uploading; ln -s MACHINE/made"
        " a.sagemaker-uploaded; echo 1 > a; sleep 4",
        "Completed",
        logged=NOWHERE,
    ),
    row(
        "model-link",
        "make the model a link",
        "rmdir /opt/ml/model; ln -s MACHINE /opt/ml/model",
        "Completed",
        "/opt/ml/model is not kept",
    ),
    row(
        "model-file",
        "put links into the model",
        "ln -s MACHINE/secret /opt/ml/model/secret; ln -s MACHINE /opt/ml/model/d",
        "Completed",
        "leads out of /opt/ml/model",
    ),
    row(
        "model-fifo",
        "have the agent wait for a FIFO of the model",
        "mkfifo /opt/ml/model/secret",
        "Completed",
        "is neither a file",
    ),
    row(
        "data-link",
        "make output/data a link",
        "rmdir /opt/ml/output/data; ln -s MACHINE /opt/ml/output/data",
        "Completed",
        "/opt/ml/output/data is not kept",
    ),
    row(
        "data-parent",
        "make output/data a link in another output",
        "mv /opt/ml/output /opt/ml/moved; mkdir -p /opt/ml/output/intermediate; ln -s MACHINE"
        " /opt/ml/output/data",
        "Completed",
        "/opt/ml/output/data is not kept",
    ),
    row(
        "failure-link",
        "make the failure file a link",
        f"ln -s MACHINE/secret /opt/ml/output/failure; echo {WORDS}; exit 3",
        "Failed",
        WORDS,
        REASON,
    ),
    row(
        "failure-fifo",
        "make the failure file a FIFO",
        f"mkfifo /opt/ml/output/failure; echo {WORDS}; exit 3",
        "Failed",
        WORDS,
        REASON,
    ),
    row(
        "failure-parent",
        "make the failure file a link in another output",
        "mv /opt/ml/output /opt/ml/moved; mkdir -p /opt/ml/output/intermediate; ln -s"
        f" MACHINE/secret /opt/ml/output/failure; echo {WORDS}; exit 3",
        "Failed",
        WORDS,
        REASON,
    ),
    row(
        "failure-directory",
        "make the failure file a directory",
        f"mkdir /opt/ml/output/failure; echo {WORDS}; exit 3",
        "Failed",
        WORDS,
        REASON,
    ),
    row(
        "metrics-link",
        "make the directory of metric files a link",
        "mkdir -p /opt/ml/output/metrics; rm -rf /opt/ml/output/metrics/sagemaker; ln -s MACHINE"
        f" /opt/ml/output/metrics/sagemaker; {WATCHED}",
        "Completed",
        logged=NOWHERE,
    ),
    row(
        "metrics-file",
        "make metric files links and FIFOs",
        "mkdir -p /opt/ml/output/metrics/sagemaker; cd /opt/ml/output/metrics/sagemaker; ln -s"
        f" MACHINE/1.json 1.json; mkfifo 2.json; {WATCHED}",
        "Completed",
        logged=NOWHERE,
    ),
    row(
        "metrics-flood",
        "write more metrics than a message of the agent holds, all at once",
        """mkdir -p /opt/ml/output/metrics/sagemaker; cd /opt/ml/output/metrics/sagemaker; yes"""
        """ '{"MetricName":"a","Value":1}' | head -n 36000 > ../flood;"""
        f" for i in $(seq 15); do ln ../flood $i.json; done; {WATCHED}",
        "Completed",
        logged=NOWHERE,
    ),
    row(
        "fifos",
        "put FIFOs into all directories that are read",
        "for d in output/intermediate checkpoints model output/data; do mkfifo /opt/ml/$d/fifo;"
        f" done; {WATCHED}",
        "Completed",
        "it is not a regular file",
    ),
    row(
        "device",
        "make device files in the model",
        "cd /opt/ml/model; if mknod zero c 1 5 || mknod disk b 254 0; then echo REACHED; fi",
        "Completed",
        "mknod: .*Operation not permitted",
    ),
    row(
        "disk",
        "have more of the server's disk than the volume",
        "for f in /etc/hosts /etc/resolv.conf /opt/trainyard/activity; do if fallocate -l 2G $f;"
        " then echo REACHED; fi; : > $f; done",
        "Completed",
        "fallocate: .*No space left on device",
    ),
    row(
        "hard-link",
        "link files of the machine into the model",
        "cd /opt/ml/model; for f in /etc/passwd /etc/hosts /usr/bin/env /etc/resolv.conf; do if ln"
        " $f stolen; then echo REACHED; fi; done",
        "Completed",
        "ln: .*Invalid cross-device link",
    ),
    row(
        "mount",
        "mount into the model",
        "mkdir /opt/ml/model/m; if mount --bind /etc /opt/ml/model/m || mount -t tmpfs none"
        " /opt/ml/model/m; then echo REACHED; fi",
        "Completed",
        "mount: .*(permission denied|must be superuser)",
    ),
    row(
        "unmount",
        "unmount /opt/ml",
        "if umount -l /opt/ml || umount /etc/hosts; then echo REACHED; fi",
        "Completed",
        "umount: .*(permission denied|must be superuser|not permitted)",
    ),
    row(
        "namespace",
        "mount in a namespace of its own",
        "if unshare -Urm sh -c 'mount --bind /etc /opt/ml/model'; then echo REACHED; fi",
        "Completed",
        "unshare: .*Operation not permitted",
    ),
    row(
        "after",
        "exchange model and data while they are collected",
        "(trap '' TERM HUP; while :; do rm -rf /opt/ml/model; ln -sfn MACHINE /opt/ml/model; rm -rf"
        " /opt/ml/output/data; ln -sfn MACHINE /opt/ml/output/data; done) & until [ -L"
        " /opt/ml/model ] && [ -L /opt/ml/output/data ]; do sleep 0.1; done",
        "Completed",
        KEPT,
    ),
)

# Operations that a job may do, which the confinement must permit.
ORDINARY = (
    ("own-hard-link", "cd /opt/ml/checkpoints; echo 1 > step; ln step last"),
    (
        "checkpoint-again",
        "rm -r /opt/ml/checkpoints; mkdir /opt/ml/checkpoints; echo 1 > /opt/ml/checkpoints/again",
    ),
)


def make_hidden(path: pathlib.Path) -> pathlib.Path:
    """Makes a directory at `path` with the machine's secrets, which no container sees."""
    for name, text in (("secret", SECRET), ("1.json", METRIC), ("shadow", SECRET)):
        (path / name).write_text(text)
        (path / name).chmod(0o600)
    return path


def stored(server: Server, prefix: str) -> dict[str, bytes]:
    """Returns every object below a prefix, and every member of the archives among them: name ->
    bytes."""
    s3, found = server.boto("s3"), {}
    for entry in s3.list_objects_v2(Bucket="yard", Prefix=prefix).get("Contents", []):
        body = s3.get_object(Bucket="yard", Key=entry["Key"])["Body"].read()
        found[entry["Key"]] = body
        if entry["Key"].endswith(".tar.gz"):
            with tarfile.open(fileobj=io.BytesIO(body)) as archive:
                for member in archive.getmembers():
                    found[entry["Key"] + "/" + member.name] = (
                        archive.extractfile(member).read()
                        if member.isfile()
                        else member.linkname.encode()
                    )
    return found


def expect_nothing_of_the_machine(server: Server, hidden: pathlib.Path, name: str) -> None:
    """Checks that the machine's secrets are neither in the bucket nor in the log, and are
    unchanged."""
    with open("/etc/shadow", "rb") as file:
        shadow = file.read()
    for prefix in (f"models/{name}/", f"ckpt/{name}/"):
        for key, body in stored(server, prefix).items():
            assert SECRET.encode() not in body and body != shadow, key
            assert not key.endswith(("/shadow", "/passwd")), key
    log = "\n".join(jobs.log_lines(server.boto("logs"), name))
    assert SECRET not in log and "REACHED" not in log, log
    assert sorted(os.listdir(hidden)) == ["1.json", "secret", "shadow"]
    assert (hidden / "secret").read_text() == SECRET
