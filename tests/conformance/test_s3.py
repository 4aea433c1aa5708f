"""Tests S3 through unmodified clients: boto3 and the AWS CLI, the current versions and Debian's."""

import os
import pathlib
import subprocess
import urllib.request
from collections.abc import Callable, Iterator

import pytest

from tests.trainyard_server import ROOT, WAIT_SECONDS_MAX, Answer, Server

TODAYS_PYTHON = os.path.join(ROOT, "build", "venv", "bin", "python")
DEBIANS_PYTHON = "/usr/bin/python3"
CALLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "s3_calls.py")
NOT_IN_DEBIANS = {"only_if_absent"}  # its boto3 has no such parameter


@pytest.fixture(scope="module")
def other_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Starts a server for Debian's calls, which make the same buckets."""
    from tests.trainyard_server import Server

    one = Server(tmp_path_factory.mktemp("yard") / "data").start()
    yield one
    one.clean()


@pytest.mark.parametrize("python", [TODAYS_PYTHON, DEBIANS_PYTHON], ids=["todays", "debians"])
@pytest.mark.parametrize(
    "call",
    [
        "buckets",
        "objects",
        "ranges",
        "conditions",
        "only_if_absent",
        "checksums",
        "listing",
        "copies",
        "multipart",
        "presigned",
        "over_tls",
        "side_by_side",
    ],
)
def test_boto3(server: Server, other_server: Server, call: str, python: str) -> None:
    if python == DEBIANS_PYTHON and call in NOT_IN_DEBIANS:
        pytest.skip("Debian's boto3 does not know it")
    env = (server if python == TODAYS_PYTHON else other_server).environment()
    done = subprocess.run(
        [python, CALLS, call], env=env, capture_output=True, text=True, timeout=WAIT_SECONDS_MAX
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def bucket(aws: Callable[..., Answer], request: pytest.FixtureRequest) -> Iterator[str]:
    name = (
        "cli-"
        + request.node.callspec.id.replace("_", "-")
        + "-"
        + request.node.originalname[5:].replace("_", "-")
    )
    aws("s3", "mb", f"s3://{name}")
    yield name
    aws("s3", "rb", "--force", f"s3://{name}")


def test_cp_ls_rm(aws: Callable[..., Answer], bucket: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_bytes(b"hello")
    aws("s3", "cp", str(tmp_path / "file"), f"s3://{bucket}/some dir/file")
    assert "file" in aws("s3", "ls", f"s3://{bucket}/some dir/")
    assert "PRE some dir/" in aws("s3", "ls", f"s3://{bucket}")
    assert bucket in aws("s3", "ls")
    aws("s3", "cp", f"s3://{bucket}/some dir/file", str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == b"hello"
    aws("s3", "mv", f"s3://{bucket}/some dir/file", f"s3://{bucket}/moved")
    aws("s3", "rm", f"s3://{bucket}/moved")
    assert aws("s3", "ls", f"s3://{bucket}", check=False).stdout == ""


def test_cp_streams(aws: Callable[..., Answer], bucket: str, server: Server) -> None:
    """Copies from standard input and to standard output."""
    from tests.trainyard_server import DEBIANS_AWS, TODAYS_AWS

    program = TODAYS_AWS if "todays" in bucket else DEBIANS_AWS
    put = subprocess.run(
        [program, "s3", "cp", "-", f"s3://{bucket}/piped"],
        input=b"through a pipe",
        env=server.environment(),
        capture_output=True,
        timeout=WAIT_SECONDS_MAX,
    )
    assert put.returncode == 0, put.stderr
    assert aws("s3", "cp", f"s3://{bucket}/piped", "-") == "through a pipe"


def test_cp_in_parts(aws: Callable[..., Answer], bucket: str, tmp_path: pathlib.Path) -> None:
    body = os.urandom(20 << 20)
    (tmp_path / "big").write_bytes(body)
    aws("s3", "cp", "--quiet", str(tmp_path / "big"), f"s3://{bucket}/big")
    assert aws("s3api", "head-object", "--bucket", bucket, "--key", "big")["ETag"].endswith('-3"')
    aws("s3", "cp", "--quiet", f"s3://{bucket}/big", str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == body
    part = tmp_path / "part"
    aws(
        "s3api",
        "get-object",
        "--bucket",
        bucket,
        "--key",
        "big",
        "--range",
        "bytes=1000000-1000009",
        str(part),
    )
    assert part.read_bytes() == body[1000000:1000010]


def test_sync(aws: Callable[..., Answer], bucket: str, tmp_path: pathlib.Path) -> None:
    tree = {"a": b"1", "d/b": b"22", "d/e/c \u00fc": b"333", "d/empty": b""}
    for name, body in tree.items():
        (tmp_path / "from" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "from" / name).write_bytes(body)
    aws("s3", "sync", str(tmp_path / "from"), f"s3://{bucket}/tree")
    assert aws("s3", "sync", str(tmp_path / "from"), f"s3://{bucket}/tree") == "", (
        "nothing is left to do"
    )
    aws("s3", "sync", f"s3://{bucket}/tree", str(tmp_path / "to"))
    assert {name: (tmp_path / "to" / name).read_bytes() for name in tree} == tree
    (tmp_path / "from" / "a").unlink()
    aws("s3", "sync", "--delete", str(tmp_path / "from"), f"s3://{bucket}/tree")
    assert " a\n" not in aws("s3", "ls", "--recursive", f"s3://{bucket}/tree/")
    aws("s3", "rm", "--recursive", f"s3://{bucket}/tree")


def test_presign(aws: Callable[..., Answer], bucket: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_bytes(b"by url")
    aws("s3", "cp", str(tmp_path / "file"), f"s3://{bucket}/file")
    url = aws("s3", "presign", f"s3://{bucket}/file", "--expires-in", "60").strip()
    import ssl

    context = (
        ssl.create_default_context(cafile=os.environ.get("AWS_CA_BUNDLE"))
        if url.startswith("https")
        else None
    )
    if context is not None:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    assert urllib.request.urlopen(url, context=context).read() == b"by url"


def test_errors_of_the_cli(aws: Callable[..., Answer]) -> None:
    done = aws("s3", "cp", "s3://never-made/x", "-", check=False)
    assert (done.returncode != 0 and "404" in done.stderr) or "NoSuchBucket" in done.stderr
    done = aws("s3", "ls", "s3://never-made", check=False)
    assert "NoSuchBucket" in done.stderr
    done = aws("s3", "mb", "s3://Bad_Name", check=False)
    assert done.returncode != 0
