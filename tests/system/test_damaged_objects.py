"""Tests an object store whose answers are damaged on their way: no way of reading an object passes
wrong bytes to a job without an error."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import os
import random
import threading
from collections.abc import Callable, Iterator

import pytest

from tests import file_systems, jobs
from tests.trainyard_server import Server

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="containers need root"),
    pytest.mark.skipif(not os.path.exists("/dev/fuse"), reason="needs /dev/fuse"),
]

# More than the server reads before it answers, less than what is verified before a FIFO gets it.
CONTENT = random.Random(1).randbytes(400_000)
MESSAGE = "the bytes do not match the object's checksum (crc64nvme "
KEYS = "access_key_id = 'AKIASTORE'\nsecret_access_key = 'the-secret-of-the-store'\n"
READ = "cat /opt/ml/input/data/train"


@contextlib.contextmanager
def damaging_proxy(store: str) -> Iterator[str]:
    """Forwards requests to `store`, and flips a bit in the last byte of each answer to a get of
    "damaged/KEY". Yields the proxy's authority."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            connection = http.client.HTTPConnection(store)
            with contextlib.closing(connection):
                # With the Host header that was signed.
                connection.putrequest(
                    self.command, self.path, skip_host=True, skip_accept_encoding=True
                )
                for name, value in self.headers.items():
                    connection.putheader(name, value)
                connection.endheaders(body)
                answer = connection.getresponse()
                content = answer.read()
            if self.command == "GET" and "/damaged/" in self.path and answer.status < 300:
                content = content[:-1] + bytes([content[-1] ^ 1])
            self.send_response_only(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                    self.send_header(name, value)
            length = answer.getheader("Content-Length", "0")
            self.send_header(
                "Content-Length", length if self.command == "HEAD" else str(len(content))
            )
            self.end_headers()
            # The server may have closed the connection: it has seen the damage.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.wfile.write(content)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = forward

        def log_message(self, *_: object) -> None:
            pass

    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=proxy.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{proxy.server_address[1]}"
    finally:
        proxy.shutdown()
        thread.join()
        proxy.server_close()


def test_no_job_gets_damaged_bytes_without_an_error(start: Callable[..., Server]) -> None:
    store = start("[[access_key]]\nid = 'AKIASTORE'\nsecret = 'the-secret-of-the-store'\n")
    store_s3 = store.boto("s3")
    store_s3.create_bucket(Bucket="yard")
    for key in ("damaged/a", "whole/a"):
        store_s3.put_object(Bucket="yard", Key=key, Body=CONTENT, ChecksumAlgorithm="CRC64NVME")
    with damaging_proxy(store.listen) as proxy:
        server = start(f"[objects]\nendpoint = 'http://{proxy}'\n{KEYS}")
        sagemaker, logs, fsx = (server.boto(one) for one in ("sagemaker", "logs", "fsx"))

        def run(name: str, mode: str, script: str, prefix: str) -> dict[str, str]:
            request = jobs.request(
                name, script, channels={"train": (f"s3://yard/{prefix}/", "FullyReplicated")}
            )
            request["InputDataConfig"][0]["InputMode"] = mode
            sagemaker.create_training_job(**request)
            return jobs.wait_until(sagemaker, name)

        for mode, script in (
            ("File", f"{READ}/a | wc -c"),
            ("FastFile", f"{READ}/a | wc -c"),
            ("Pipe", f"{READ}_0 | wc -c"),
        ):
            name = f"whole-{mode}"
            assert run(name, mode, script, "whole")["TrainingJobStatus"] == "Completed"
            assert jobs.log_lines(logs, name) == [str(len(CONTENT))]

        for mode, script in (("File", f"{READ}/a"), ("Pipe", f"{READ}_0 | wc -c")):
            failed = run(f"damaged-{mode}", mode, script, "damaged")
            assert failed["TrainingJobStatus"] == "Failed"
            assert MESSAGE in failed["FailureReason"], failed["FailureReason"]
        failed = run("damaged-FastFile", "FastFile", f"{READ}/a > /dev/null", "damaged")
        assert failed["TrainingJobStatus"] == "Failed"
        lines = jobs.log_lines(logs, "damaged-FastFile")
        assert any("cannot read train/a (s3://" in line and MESSAGE in line for line in lines), (
            lines
        )
        assert any("Input/output error" in line for line in lines), lines

        file_systems.create(fsx, "s3://yard/whole/")
        made = fsx.create_file_system(**file_systems.request("s3://yard/damaged/"))
        found = file_systems.settled(fsx, made["FileSystem"]["FileSystemId"])
        assert found["Lifecycle"] == "FAILED"
        assert MESSAGE in found["FailureDetails"]["Message"], found["FailureDetails"]
