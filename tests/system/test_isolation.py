"""Tests the rights of a container: all that an image expects of root, over its own ids and devices,
and nothing else."""

import os
import pathlib
import stat
import subprocess
from collections.abc import Callable, Iterator

import pytest

from tests import jobs, oci
from tests.trainyard_server import Server, wait_for

# Each host runs Debian's sshd on port 22 as an image would: privilege separation, host keys that it
# made itself, a key that all hosts of the gang know.
SSH = r"""set -e
mkdir -p /run/sshd /root/.ssh /tmp/keys; chmod 700 /root/.ssh
cp /opt/ml/input/data/keys/id /opt/ml/input/data/keys/id.pub /root/.ssh/; chmod 600 /root/.ssh/id
cp /root/.ssh/id.pub /root/.ssh/authorized_keys
ssh-keygen -q -t ed25519 -N '' -f /tmp/keys/host
echo 'root:*:19000::::::' >/etc/shadow; chmod 640 /etc/shadow
printf 'Port 22\nHostKey /tmp/keys/host\nPasswordAuthentication no\nStrictModes yes\n' >/tmp/keys/sshd_config
echo "FROM_ENVIRONMENT=$(hostname)" >>/etc/environment
/usr/sbin/sshd -f /tmp/keys/sshd_config -E /tmp/keys/log
say() { ssh -i /root/.ssh/id -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR "$@"; }
other=algo-$((3 - ${HOSTNAME#algo-}))
for i in $(seq 300); do say $other true 2>/dev/null && break; sleep 0.1; done
say $other 'echo "$SSH_CONNECTION" | wc -w; cat /etc/environment; id -u; echo on $(hostname)'
touch /tmp/mine; chown sshd:nogroup /tmp/mine; stat -c %U /tmp/mine
say $other "touch /tmp/done.$HOSTNAME" 2>/dev/null || true  # the other host and its sshd may end before this connection
for i in $(seq 300); do [ -e /tmp/done.$other ] && break; sleep 0.1; done
[ -e /tmp/done.$other ] && echo both are done
"""


def test_hosts_reach_each_other_through_their_own_sshd(
    start: Callable[..., Server], tmp_path: pathlib.Path
) -> None:
    server = start("[[machine]]\nname = 'box'\ncpus = 8.0\nmemory_gib = 32.0\n")
    s3, sagemaker, logs = server.boto("s3"), server.boto("sagemaker"), server.boto("logs")
    s3.create_bucket(Bucket="yard")
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "id"], check=True
    )
    for name in ("id", "id.pub"):
        s3.upload_file(str(tmp_path / name), "yard", f"keys/{name}")
    s3.put_object(Bucket="yard", Key="keys/run.sh", Body=SSH.encode())
    sagemaker.create_training_job(
        **jobs.request(
            "ssh",
            "exec bash /opt/ml/input/data/keys/run.sh",
            hosts=2,
            channels={"keys": ("s3://yard/keys/", "FullyReplicated")},
        )
    )
    done = jobs.wait_until(sagemaker, "ssh")
    for host, other in ((1, 2), (2, 1)):
        lines = [
            line for line in jobs.log_lines(logs, "ssh", host) if not line.startswith("trainyard: ")
        ]
        assert lines == [
            "4",
            f"FROM_ENVIRONMENT=algo-{other}",
            "0",
            f"on algo-{other}",
            "sshd",
            "both are done",
        ], (done.get("FailureReason"), lines)
    assert done["TrainingJobStatus"] == "Completed"


@pytest.fixture
def devices() -> Iterator[list[str]]:
    """Makes files in place of GPUs: devices that a container may open only if they are assigned to
    it."""
    names = [f"/dev/trainyard-test-{os.getpid()}-{number}" for number in range(3)]
    for name, minor in zip(names, (200, 229, 237)):
        os.mknod(name, stat.S_IFCHR | 0o666, os.makedev(10, minor))
        os.chmod(name, 0o666)
    yield names
    for name in names:
        os.unlink(name)


def test_gpus_are_handed_out_whole(start: Callable[..., Server], devices: list[str]) -> None:
    server = start(
        "[[machine]]\nname = 'box'\ncpus = 64.0\nmemory_gib = 512.0\ngpu_devices ="
        f" {devices}\n[jobs]\nstop_grace_seconds = 1\n"
    )
    s3, sagemaker, logs = server.boto("s3"), server.boto("sagemaker"), server.boto("logs")
    s3.create_bucket(Bucket="yard")
    seen = (
        "ls /dev | grep trainyard-test; : 3<>/dev/$(ls /dev | grep -m1 trainyard-test) && echo"
        " opened; echo ready; sleep 1000"
    )
    for name in ("one", "two"):
        sagemaker.create_training_job(**jobs.request(name, seen, instance_type="ml.g4dn.xlarge"))
    sagemaker.create_training_job(**jobs.request("none", "ls /dev; echo ready"))
    lines = {
        name: wait_for(
            lambda: (found := jobs.log_lines(logs, name))[-1:] == ["ready"] and found,
            f"{name} to say what it sees",
        )
        for name in ("one", "two", "none")
    }
    given = {
        name: {"/dev/" + line for line in lines[name] if "trainyard-test" in line} for name in lines
    }
    assert len(given["one"]) == len(given["two"]) == 1 and given["none"] == set()
    assert "opened" in lines["one"] and "opened" in lines["two"]
    assert not given["one"] & given["two"], "two jobs never share one"
    server.kill()
    server.start()
    sagemaker.create_training_job(**jobs.request("three", seen, instance_type="ml.g4dn.xlarge"))
    third = wait_for(
        lambda: (found := jobs.log_lines(logs, "three"))[-1:] == ["ready"] and found,
        "three to start after the server came back",
    )
    assert {"/dev/" + line for line in third if "trainyard-test" in line} == set(devices) - given[
        "one"
    ] - given["two"]
    sagemaker.create_training_job(**jobs.request("four", seen, instance_type="ml.g4dn.xlarge"))
    wait_for(
        lambda: (
            "1 more GPU"
            in str(
                sagemaker.describe_training_job(TrainingJobName="four").get(
                    "SecondaryStatusTransitions"
                )
            )
        ),
        "four to wait for a GPU",
    )
    sagemaker.stop_training_job(TrainingJobName="one")
    fourth = wait_for(
        lambda: (found := jobs.log_lines(logs, "four"))[-1:] == ["ready"] and found,
        "four to get what one had",
    )
    assert {"/dev/" + line for line in fourth if "trainyard-test" in line} == given["one"]
    for name in ("two", "three", "four"):
        sagemaker.stop_training_job(TrainingJobName=name)


def test_a_volume_has_the_requested_size(
    start: Callable[..., Server], tmp_path: pathlib.Path
) -> None:
    server = start()
    s3, sagemaker, logs = server.boto("s3"), server.boto("sagemaker"), server.boto("logs")
    s3.create_bucket(Bucket="yard")
    fill = (
        "df -B1M --output=size /opt/ml | tail -1; fallocate -l 900M /opt/ml/output/data/a && head"
        " -c 300000000 /dev/zero >/opt/ml/output/data/b"
    )
    sagemaker.create_training_job(**jobs.request("large", fill))
    done = jobs.wait_until(sagemaker, "large")
    lines = jobs.log_lines(logs, "large")
    assert done["TrainingJobStatus"] == "Failed"
    assert "the volume of 1 GiB (VolumeSizeInGB) is full" in done["FailureReason"], done[
        "FailureReason"
    ]
    assert 900 <= int(lines[0]) <= 1024, lines
    assert any("No space left on device" in line for line in lines), lines
    assert any("VolumeSizeInGB" in line for line in lines), lines
    layout = oci.Layout(tmp_path / "layout")
    layout.image("v1", [oci.base() + [oci.link("bin/dd", "busybox")]])
    over = (
        "dd if=/dev/zero of=/tmp/../here bs=1M count=100 2>&1; dd if=/dev/zero of=/over bs=1M"
        " count=2000 2>&1"
    )
    sagemaker.create_training_job(**jobs.request("over", over, image=f"oci:{layout.path}:v1"))
    done = jobs.wait_until(sagemaker, "over")
    assert "the volume of 1 GiB (VolumeSizeInGB) is full" in done["FailureReason"], (
        done["FailureReason"],
        jobs.log_lines(logs, "over"),
    )
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        assert server.data not in file.read(), "nothing of it is mounted for others"
