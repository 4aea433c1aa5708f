"""Tests bad input: each causes a clear error, and nothing is lost."""

import http.client
import json
import os
import pathlib
import re
import subprocess
from collections.abc import Callable, Iterator

import botocore.auth
import botocore.awsrequest
import botocore.credentials
import botocore.exceptions
import pytest

from tests import jobs
from tests.trainyard_server import PROGRAM, Server, wait_for

SETTINGS = "[jobs]\nstop_grace_seconds = 2\n"


@pytest.fixture(scope="module")
def cluster(start: Callable[..., Server]) -> Server:
    server = start(SETTINGS)
    server.boto("s3").create_bucket(Bucket="yard")
    return server


def post(
    server: Server,
    target: str,
    body: bytes,
    sign: bool = True,
    secret: str | None = None,
    headers: dict[str, str] | None = None,
    method: str = "POST",
    path: str = "/",
    service: str = "sagemaker",
) -> tuple[int, dict[str, str], bytes]:
    """Sends a request signed by botocore, without its checks; returns (status, headers, body)."""
    head = (
        {"Content-Type": "application/x-amz-json-1.1"}
        | ({"X-Amz-Target": target} if target else {})
        | (headers or {})
    )
    request = botocore.awsrequest.AWSRequest(method, f"http://{server.listen}{path}", head, body)
    if sign:
        keys = botocore.credentials.Credentials(
            server.env["AWS_ACCESS_KEY_ID"], secret or server.env["AWS_SECRET_ACCESS_KEY"]
        )
        botocore.auth.SigV4Auth(keys, service, "us-east-1").add_auth(request)
    connection = http.client.HTTPConnection(server.listen, timeout=30)
    try:
        connection.request(method, path, body, dict(request.headers))
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def alive(server: Server) -> str:
    return server.boto("sts").get_caller_identity()["Account"]


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'"text"', b'{"TrainingJobName": 7}', b"\xff\xfe", b'{"a":' * 5000, b"null"],
)
def test_malformed_bodies(cluster: Server, body: bytes) -> None:
    status, headers, answer = post(cluster, "SageMaker.DescribeTrainingJob", body)
    assert status == 400, answer
    assert json.loads(answer)["__type"] in ("SerializationException", "ValidationException"), answer
    assert headers["x-amzn-requestid"]
    assert alive(cluster)


def test_unknown_operations_are_400(cluster: Server) -> None:
    status, _, answer = post(cluster, "SageMaker.CreateWorldPeace", b"{}")
    assert status == 400 and json.loads(answer)["__type"] == "UnknownOperationException"
    status, _, answer = post(
        cluster,
        None,
        b"Action=CreateWorldPeace&Version=2011-06-15",
        headers={"Content-Type": "application/x-www-form-urlencoded"},
        service="sts",
    )
    assert status == 400, answer


def test_wrong_signatures(cluster: Server) -> None:
    status, _, answer = post(cluster, "SageMaker.ListTrainingJobs", b"{}", secret="wrong")
    assert status in (400, 403) and "signature" in json.loads(answer)["message"].lower()
    status, _, answer = post(cluster, "SageMaker.ListTrainingJobs", b"{}", sign=False)
    assert status in (400, 403)
    assert b"MissingAuthenticationToken" in answer


def test_every_request_id_is_in_the_log(cluster: Server) -> None:
    _, headers, _ = post(cluster, "SageMaker.ListTrainingJobs", b"{}")
    wait_for(
        lambda: headers["x-amzn-requestid"] in cluster.log_text(),
        "the request id in the server's log",
        10,
    )


def test_oversized_bodies(cluster: Server) -> None:
    connection = http.client.HTTPConnection(cluster.listen, timeout=30)
    connection.putrequest("POST", "/")
    connection.putheader("X-Amz-Target", "SageMaker.CreateTrainingJob")
    connection.putheader("Content-Length", str(1 << 40))
    connection.endheaders()
    assert connection.getresponse().status == 403, (
        "refused for its missing signature before its length counts"
    )
    connection.close()
    assert post(cluster, "SageMaker.CreateTrainingJob", b" " * (5 << 20))[0] == 413
    assert alive(cluster)


def test_keys_do_not_traverse(cluster: Server) -> None:
    s3 = cluster.boto("s3")
    for key in ("../../escaped", "a/../../../escaped", "..", "/etc/passwd", "a//b", "%2e%2e/x"):
        s3.put_object(Bucket="yard", Key=key, Body=key.encode())
        assert s3.get_object(Bucket="yard", Key=key)["Body"].read() == key.encode()
        s3.delete_object(Bucket="yard", Key=key)
    assert not subprocess.run(
        ["find", os.path.dirname(cluster.data), "-name", "*escaped*"], capture_output=True
    ).stdout


def test_a_channel_with_a_traversing_key_is_refused(cluster: Server) -> None:
    cluster.boto("s3").put_object(Bucket="yard", Key="trap/../../../escaped", Body=b"x")
    cluster.boto("sagemaker").create_training_job(
        **jobs.request("traversal", channels={"train": ("s3://yard/trap/", "FullyReplicated")})
    )
    done = jobs.wait_until(cluster.boto("sagemaker"), "traversal")
    assert (
        done["TrainingJobStatus"] == "Failed"
        and done["FailureReason"].startswith("ClientError")
        and ".." in done["FailureReason"]
    )


def test_a_missing_bucket(cluster: Server) -> None:
    with pytest.raises(botocore.exceptions.ClientError, match="NoSuchBucket"):
        cluster.boto("s3").get_object(Bucket="never-made", Key="k")
    cluster.boto("sagemaker").create_training_job(
        **jobs.request("no-bucket", "echo x > /opt/ml/model/x", bucket="never-made")
    )
    done = jobs.wait_until(cluster.boto("sagemaker"), "no-bucket")
    assert done["TrainingJobStatus"] == "Failed" and "never-made" in done["FailureReason"]


def test_a_process_that_forks_is_bounded_and_removed(cluster: Server) -> None:
    cluster.boto("sagemaker").create_training_job(
        **jobs.request(
            "forks",
            "(sleep 1000 &) ; (setsid sleep 1001 &); for i in 1 2 3 4 5 6 7 8 9; do (sleep 1002 &)"
            " ; done; exit 0",
        )
    )
    assert jobs.wait_until(cluster.boto("sagemaker"), "forks")["TrainingJobStatus"] == "Completed"
    assert not re.search(
        r"sleep 100[012]", subprocess.run(["ps", "ax"], capture_output=True, text=True).stdout
    )


# The first process ends when a fork was refused; the others keep running.
FORK_BOMB = (
    """exec python3 -c 'import os, subprocess; bomb = subprocess.Popen(["sh", "-c", """
    """"b() { b | b & }; b"], stderr=subprocess.PIPE); os.write(1, bomb.stderr.readline());"""
    """ os._exit(0)'"""
)


def test_a_fork_bomb_hits_its_limit(cluster: Server) -> None:
    cluster.boto("sagemaker").create_training_job(**jobs.request("bomb", FORK_BOMB))
    # it uses all the CPU time that it gets
    done = jobs.wait_until(cluster.boto("sagemaker"), "bomb", seconds_max=300)
    assert done["TrainingJobStatus"] == "Completed", done.get("FailureReason")
    assert "Cannot fork" in "".join(jobs.log_lines(cluster.boto("logs"), "bomb"))
    assert alive(cluster)


def test_a_job_that_ignores_sigterm_is_killed(cluster: Server) -> None:
    sagemaker = cluster.boto("sagemaker")
    sagemaker.create_training_job(
        **jobs.request(
            "deaf",
            "trap '' TERM; echo deaf; echo kept > /opt/ml/model/kept; while true; do sleep 1; done",
        )
    )
    wait_for(lambda: jobs.log_lines(cluster.boto("logs"), "deaf") == ["deaf"], "the process")
    sagemaker.stop_training_job(TrainingJobName="deaf")
    done = jobs.wait_until(sagemaker, "deaf", seconds_max=60)
    assert done["TrainingJobStatus"] == "Stopped"


def test_heavy_output_does_not_delay_the_end_of_a_job(cluster: Server) -> None:
    """The job prints 1 GB and ends; its last line is stored, and dropped bytes are counted."""
    sagemaker, logs = cluster.boto("sagemaker"), cluster.boto("logs")
    sagemaker.create_training_job(
        **jobs.request(
            "flood",
            "yes 0123456789012345678901234567890123456789012345678901234567890 | head -c"
            " 1000000000; echo; echo last",
        )
    )
    done = jobs.wait_until(sagemaker, "flood", seconds_max=300)
    assert done["TrainingJobStatus"] == "Completed", done.get("FailureReason")
    stream = logs.describe_log_streams(
        logGroupName="/aws/sagemaker/TrainingJobs", logStreamNamePrefix="flood/"
    )["logStreams"][0]["logStreamName"]
    tail = logs.get_log_events(
        logGroupName="/aws/sagemaker/TrainingJobs",
        logStreamName=stream,
        startFromHead=False,
        limit=10,
    )["events"]
    assert tail[-1]["message"] == "last"
    assert alive(cluster)


def test_binary_output(cluster: Server) -> None:
    cluster.boto("sagemaker").create_training_job(
        **jobs.request(
            "binary", "head -c 100000 /dev/urandom; echo; printf 'a\\000b\\377c\\n'; echo end"
        )
    )
    assert jobs.wait_until(cluster.boto("sagemaker"), "binary")["TrainingJobStatus"] == "Completed"
    assert jobs.log_lines(cluster.boto("logs"), "binary")[-1] == "end"


def test_out_of_memory_is_named(cluster: Server) -> None:
    cluster.boto("sagemaker").create_training_job(
        **jobs.request(
            "eats",
            "exec python3 -c 'x = [bytearray(50_000_000) for _ in range(1_000_000)]'",
            instance_type="ml.t3.medium",
        )
    )
    done = jobs.wait_until(cluster.boto("sagemaker"), "eats")
    assert done["TrainingJobStatus"] == "Failed" and "OutOfMemory" in done["FailureReason"], done[
        "FailureReason"
    ]


def test_a_full_disk_rejects_puts_and_keeps_objects(tmp_path: pathlib.Path) -> None:
    """Puts fail with an explanation, acknowledged objects stay, and deleting an object frees
    space."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(disk)], check=True)
    server = Server(disk / "data")
    try:
        server.start()
        s3, acknowledged = server.boto("s3"), {}
        s3.create_bucket(Bucket="yard")
        with pytest.raises(botocore.exceptions.ClientError) as caught:
            for number in range(40):
                body = os.urandom(2 << 20)
                s3.put_object(Bucket="yard", Key=f"k{number}", Body=body)
                acknowledged[f"k{number}"] = body
        assert re.search("full|space", caught.value.response["Error"]["Message"], re.I), (
            caught.value
        )
        assert acknowledged
        for key, body in acknowledged.items():
            assert s3.get_object(Bucket="yard", Key=key)["Body"].read() == body
        for key in acknowledged:
            s3.delete_object(Bucket="yard", Key=key)
        s3.put_object(Bucket="yard", Key="again", Body=b"room")
        assert alive(server)
    finally:
        server.clean()
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_job_waits_for_exactly_what_its_pending_reason_says(start: Callable[..., Server]) -> None:
    machine = "[[machine]]\nname = 'box'\ncpus = {cpus}\nmemory_gib = 64.0\n"
    server = start(machine.format(cpus="2.0"))
    server.boto("s3").create_bucket(Bucket="yard")
    sagemaker = server.boto("sagemaker")
    sagemaker.create_training_job(**jobs.request("wide", instance_type="ml.m5.xlarge"))  # 4 vCPU

    def reason() -> float:
        described = sagemaker.describe_training_job(TrainingJobName="wide")
        found = re.search(
            r"([\d.]+) more vCPU|at least ([\d.]+) vCPU",
            described["SecondaryStatusTransitions"][-1]["StatusMessage"],
        )
        return float(found[1] or found[2]) + (2.0 if found[1] else 0.0) if found else 0.0

    cpus = wait_for(reason, "a sentence that says what is missing")
    assert (
        sagemaker.describe_training_job(TrainingJobName="wide")["TrainingJobStatus"] == "InProgress"
    )
    server.reload(machine.format(cpus=cpus))
    assert jobs.wait_until(sagemaker, "wide")["TrainingJobStatus"] == "Completed"
    assert cpus == 4.0


def test_a_newer_data_directory_is_refused(tmp_path: pathlib.Path) -> None:
    server = Server(tmp_path / "data").start()
    server.stop()
    (tmp_path / "data" / "VERSION").write_text("999\n")
    with pytest.raises(AssertionError, match="newer trainyard"):
        server.start()


def test_a_data_directory_has_one_server(cluster: Server) -> None:
    with pytest.raises(AssertionError, match="another|holds|locked"):
        second = Server(cluster.data, listen="127.0.0.1:0")
        os.rename(cluster.data + "/server.json", cluster.data + "/server.json.kept")
        try:
            second.start()
        finally:
            os.rename(cluster.data + "/server.json.kept", cluster.data + "/server.json")


@pytest.fixture
def elsewhere() -> Iterator[Callable[..., str]]:
    """Runs a command on another machine, which reaches this one at 10.231.9.1."""
    space = "trainyard-test-elsewhere"

    def ip(*arguments: str) -> None:
        subprocess.run(["ip", *arguments], check=True)

    ip("netns", "add", space)
    try:
        ip("link", "add", "elsewhere0", "type", "veth", "peer", "name", "eth0", "netns", space)
        ip("addr", "add", "10.231.9.1/30", "dev", "elsewhere0")
        ip("link", "set", "elsewhere0", "up")
        ip("-n", space, "addr", "add", "10.231.9.2/30", "dev", "eth0")
        ip("-n", space, "link", "set", "eth0", "up")
        yield (
            lambda *command: (
                subprocess.run(
                    ["ip", "netns", "exec", space, *command],
                    check=True,
                    capture_output=True,
                    text=True,
                    timeout=60,
                ).stdout
            )
        )
    finally:
        ip("netns", "del", space)


def test_plain_http_is_for_this_machine_only(
    start: Callable[..., Server], elsewhere: Callable[..., str]
) -> None:
    server = start(SETTINGS + "[server]\ncertificate_names = ['10.231.9.1']\n", listen="0.0.0.0:0")
    assert server.env["AWS_ENDPOINT_URL"].startswith("https://")
    port = server.listen.rsplit(":", 1)[1]
    refused = elsewhere(
        "curl", "--silent", "--write-out", "%{http_code}", f"http://10.231.9.1:{port}/"
    )
    assert refused.endswith("403") and "Use https://" in refused
    assert (
        elsewhere(
            "curl",
            "--silent",
            "--write-out",
            "%{http_code}",
            "--cacert",
            server.data + "/tls/ca.pem",
            "--output",
            "/dev/null",
            f"https://10.231.9.1:{port}/",
        )
        == "403"
    ), "not signed"
    trusting = {"verify": server.data + "/tls/ca.pem"}
    # Its jobs run on this machine, read and write its store, and call its API.
    s3 = server.boto("s3", **trusting)
    s3.create_bucket(Bucket="yard")
    s3.put_object(Bucket="yard", Key="in/word", Body=b"hello")
    script = (
        'cat /opt/ml/input/data/in/word > /opt/ml/model/word; python3 -c "import os,'
        " urllib.request; urllib.request.urlopen(os.environ['AWS_ENDPOINT_URL'])\"; true"
    )
    request = jobs.request("reads", script, channels={"in": ("s3://yard/in/", "FullyReplicated")})
    server.boto("sagemaker", **trusting).create_training_job(**request)
    done = jobs.wait_until(server.boto("sagemaker", **trusting), "reads")
    assert done["TrainingJobStatus"] == "Completed", done
    assert "HTTP Error 403" in "\n".join(
        jobs.log_lines(server.boto("logs", **trusting), "reads")
    ), "answered, though not signed"


def test_a_config_with_an_unknown_key_is_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(AssertionError, match="unknown key 'accunt_id'.*account_id"):
        Server(tmp_path / "data", "accunt_id = '1'\n").start()


BOX = "[[machine]]\nname = 'box'\n"
NUMBERS_OF_CONFIG = (
    (BOX + "memory_gib = 1.0\n", "cpus"),
    (BOX + "cpus = 1.0\n", "memory_gib"),
    (BOX + "cpus = 1.0\nmemory_gib = 1.0\n", "gpus"),
    ("[[quota]]\ninstance_type = 'ml.m5.large'\n", "count"),
    ("[[prices.instance]]\ntype = 'ml.m5.large'\n", "on_demand"),
    ("[[prices.instance]]\ntype = 'ml.m5.large'\non_demand = 1.0\n", "spot"),
    ("[jobs]\n", "stop_grace_seconds"),
    ("[jobs]\n", "stalled_after_seconds"),
    ("[storage]\n", "disk_reserve_mib"),
    ("[storage]\n", "upload_expiry_days"),
    ("[spot]\n", "notice_seconds"),
    ("[spot]\n", "interruptions_per_host_hour"),
    ("[network]\n", "connections_per_job_max"),
    ("[[role]]\nname = 'r'\n", "max_session_seconds"),
)


@pytest.mark.parametrize(
    ("before", "key"), NUMBERS_OF_CONFIG, ids=[key for _, key in NUMBERS_OF_CONFIG]
)
def test_extreme_numbers_of_a_config_are_refused(
    tmp_path: pathlib.Path, before: str, key: str
) -> None:
    """With a number out of range the server names the key and does not start."""
    file = tmp_path / "config.toml"
    for pill in (
        "-9223372036854775808",
        "-1",
        "9223372036854775807",
        "nan",
        "inf",
        "-inf",
        "1e300",
    ):
        file.write_text(f"{before}{key} = {pill}\n")
        done = subprocess.run(
            [
                PROGRAM,
                "serve",
                "--data",
                str(tmp_path / "data"),
                "--listen",
                "127.0.0.1:0",
                "--config",
                str(file),
            ],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 1 and key in done.stderr, (
            file.read_text(),
            done.returncode,
            done.stderr,
        )
