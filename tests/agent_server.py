"""Provides a small server for tests of the agent: the server's side of the wire
(docs/formats/wire.md), and an object store in a dictionary that checks no signatures."""

from __future__ import annotations

import http.server
import os
import socket
import struct
import threading
import time
import urllib.parse
import xml.sax.saxutils
from collections.abc import Iterable, Sequence
from typing import Any

STATES = [
    "placed",
    "preparing",
    "downloading",
    "running",
    "draining",
    "uploading",
    "finished",
    "failed",
    "lost",
]
FAULTS = ["algorithm", "client", "internal", "lost"]
CAUSES = {"user": 1, "max_runtime": 2, "host_failed": 4}

Value = Any  # the values of struct formats: numbers


class Fields:
    def __init__(self, payload: bytes) -> None:
        self.payload, self.at = payload, 0

    def take(self, form: str) -> Value:
        size = struct.calcsize("<" + form)
        values = struct.unpack_from("<" + form, self.payload, self.at)
        self.at += size
        return values[0]

    def text(self) -> str:
        size = self.take("I")
        self.at += size
        return self.payload[self.at - size : self.at].decode()

    def optional(self, form: str) -> Value:
        return self.take(form) if self.take("B") else None


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<I", len(data)) + data


class WireServer:
    """Listens for one agent at a time, and records and acknowledges its messages. go_away() makes
    it unreachable."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = str(path)
        self.facts: list[dict[str, Any]] = []
        self.lines: list[str] = []
        self.points: list[tuple[str, float, bool]] = []  # name, value, whether of the host
        self.hellos: list[tuple[int, int, int, int, str]] = []
        self.state_acknowledged = self.data_acknowledged = 0
        self.refuse: str | None = None
        self.peers: Sequence[str] | None = None
        self.acknowledges_data = True
        self.link: socket.socket | None = None
        self.lock = threading.Lock()
        self.open()

    @property
    def address(self) -> str:
        return "unix:" + self.path

    def open(self) -> None:
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()

    def go_away(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        os.unlink(self.path)
        if self.link:
            self.link.shutdown(socket.SHUT_RDWR)

    def accept(self, listener: socket.socket) -> None:
        while True:
            try:
                link, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(link,), daemon=True).start()

    def say(self, kind: int, body: bytes, link: socket.socket | None = None) -> None:
        payload = struct.pack("<B", kind) + body
        to = link or self.link
        assert to is not None, "no agent is there"
        to.sendall(struct.pack("<I", len(payload)) + payload)

    def stop(self, cause: str = "user", grace_seconds: float = 120) -> None:
        self.say(8, struct.pack("<Bq", CAUSES[cause], grace_seconds * 1000))

    def drained(self, staged: Sequence[str]) -> None:
        self.peers = staged
        if self.link:
            self.say(10, struct.pack("<I", len(staged)) + b"".join(text(key) for key in staged))

    def serve(self, link: socket.socket) -> None:
        file = link.makefile("rb")
        try:
            while True:
                head = file.read(4)
                if len(head) < 4:
                    return
                payload = file.read(struct.unpack("<I", head)[0])
                self.hear(link, Fields(payload))
        except (OSError, struct.error):
            return

    def hear(self, link: socket.socket, fields: Fields) -> None:
        kind = fields.take("B")
        if kind == 1:
            self.hellos.append(
                (
                    fields.take("I"),
                    fields.take("Q"),
                    fields.take("I"),
                    fields.take("I"),
                    fields.text(),
                )
            )
            if self.refuse:
                return self.say(6, text(self.refuse), link)
            self.link = link
            self.say(5, struct.pack("<QQ", self.state_acknowledged, self.data_acknowledged))
            self.say(
                9,
                text("AKIATEST")
                + text("secret")
                + text("session")
                + struct.pack("<q", int((time.time() + 3600) * 1000)),
            )
            if self.peers is not None:
                self.drained(self.peers)
        elif kind == 2:
            number = fields.take("Q")
            _ = fields.take("q")
            state = STATES[fields.take("B")]
            message = fields.text()
            fact = {
                "state": state,
                "message": message,
                "exit_code": fields.optional("i"),
                "fault": fields.optional("B"),
            }
            fact["fault"] = None if fact["fault"] is None else FAULTS[fact["fault"]]
            fact.update(
                staged_model=fields.text(), model_uri=fields.text(), output_uri=fields.text()
            )
            with self.lock:
                if number == self.state_acknowledged + 1:
                    self.state_acknowledged = number
                    self.facts.append(fact)
                    # The log up to here must have arrived by then.
                    fact["lines_before"] = len(self.lines)
            self.say(7, struct.pack("<BQ", 0, self.state_acknowledged), link)
            if state in ("finished", "failed"):
                self.say(11, b"", link)
        elif kind in (3, 4):
            number = fields.take("Q")
            new = number == self.data_acknowledged + 1
            for _ in range(fields.take("I")):
                if kind == 3:
                    _, line = fields.take("q"), fields.text()
                    if new:
                        self.lines.append(line)
                else:
                    name = fields.text()
                    _ = fields.take("q")
                    value = fields.take("d")
                    of_host = fields.take("B")
                    if new:
                        self.points.append((name, value, bool(of_host)))
            if new:
                self.data_acknowledged = number
            if self.acknowledges_data:
                self.say(7, struct.pack("<BQ", 1, self.data_acknowledged), link)

    def states(self) -> list[str]:
        return [fact["state"] for fact in self.facts]


class Store(http.server.ThreadingHTTPServer):
    """Implements the part of S3 that an agent needs: objects by (bucket, key)."""

    daemon_threads = True

    def __init__(self, buckets: Iterable[str]) -> None:
        self.buckets = set(buckets)
        self.objects: dict[tuple[str, str], bytes] = {}
        self.parts: dict[tuple[str, str], dict[int, bytes]] = {}
        super().__init__(("127.0.0.1", 0), StoreHandler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def authority(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


class StoreHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Store

    def log_message(self, *_: object) -> None:
        pass

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def fault(self, status: int, code: str) -> None:
        self.answer(status, f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode())

    def place(self) -> tuple[str, str, dict[str, str]]:
        url = urllib.parse.urlsplit(self.path)
        bucket, _, key = url.path[1:].partition("/")
        return (
            bucket,
            urllib.parse.unquote(key),
            dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True)),
        )

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def do_GET(self) -> None:
        bucket, key, query = self.place()
        if bucket not in self.server.buckets:
            return self.fault(404, "NoSuchBucket")
        if key:
            content = self.server.objects.get((bucket, key))
            if content is None:
                return self.fault(404, "NoSuchKey")
            return self.answer(
                200, content, ETag='"e"', Last_Modified="Fri, 20 Nov 2026 09:45:00 GMT"
            )
        keys = sorted(
            k
            for b, k in self.server.objects
            if b == bucket and k.startswith(query.get("prefix", ""))
        )
        contents = "".join(
            f"<Contents><Key>{xml.sax.saxutils.escape(urllib.parse.quote(k))}</Key>"
            f"<Size>{len(self.server.objects[bucket, k])}</Size>"
            "<ETag>&quot;e&quot;</ETag><LastModified>2026-11-20T09:45:00.000Z</LastModified></Contents>"
            for k in keys
        )
        self.answer(
            200,
            f"<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>false</IsTruncated>{contents}</ListBucketResult>".encode(),
        )

    do_HEAD = do_GET

    def do_PUT(self) -> None:
        bucket, key, query = self.place()
        content = self.body()
        if bucket not in self.server.buckets:
            return self.fault(404, "NoSuchBucket")
        if "partNumber" in query:
            self.server.parts[bucket, key][int(query["partNumber"])] = content
        else:
            self.server.objects[bucket, key] = content
        self.answer(200, ETag='"e"')

    def do_POST(self) -> None:
        bucket, key, query = self.place()
        self.body()
        if "uploads" in query:
            self.server.parts[bucket, key] = {}
            return self.answer(
                200,
                f"<InitiateMultipartUploadResult><Bucket>{bucket}</Bucket><Key>{key}</Key><UploadId>1</UploadId></InitiateMultipartUploadResult>".encode(),
            )
        parts = self.server.parts.pop((bucket, key))
        self.server.objects[bucket, key] = b"".join(parts[number] for number in sorted(parts))
        self.answer(
            200,
            b"<CompleteMultipartUploadResult><ETag>&quot;e&quot;</ETag></CompleteMultipartUploadResult>",
        )

    def do_DELETE(self) -> None:
        bucket, key, _ = self.place()
        self.server.objects.pop((bucket, key), None)
        self.answer(204)
