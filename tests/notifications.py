"""Has receivers of notifications: an HTTP endpoint and a mail server on loopback ports, and the
checks of notifications that AWS's SDKs make."""

from __future__ import annotations

import base64
import email
import email.message
import email.policy
import http.server
import json
import os
import re
import socketserver
import ssl
import subprocess
import tempfile
import threading
import urllib.request
from collections.abc import Callable
from typing import Any, Self

from tests.trainyard_server import Server, wait_for

# The endpoints of tests are on this machine, to which the server connects only if configured.
LOOPBACK_CONFIG = '[notifications]\nallow_networks = ["127.0.0.0/8"]\n'


class Received:
    def __init__(self, path: str, headers: dict[str, str], body: bytes) -> None:
        self.path, self.headers, self.body = path, headers, body

    def json(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.body)
        return parsed


class HttpReceiver:
    """Stores posted requests. `answers`: path -> statuses, used one after another; then 200. A path
    in `hanging` gets no response before close()."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.answers: dict[str, list[int]] = {}
        self.redirects: dict[str, str] = {}
        self.hanging: set[str] = set()
        self.held = 0
        self.closing = threading.Event()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                headers = {name.lower(): value for name, value in self.headers.items()}
                if self.path in receiver.hanging:
                    receiver.held += 1
                    receiver.closing.wait()
                    return
                left = receiver.answers.get(self.path, [])
                status = left.pop(0) if left else 200
                if self.path in receiver.redirects:
                    status = 302
                receiver.received.append(Received(self.path, headers, body))
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", receiver.redirects[self.path])
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("0.0.0.0", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def at(self, path: str) -> list[Received]:
        return [each for each in list(self.received) if each.path == path]

    def wait(self, path: str, count: int = 1) -> list[Received]:
        """Waits until this number of requests has arrived at the path."""
        return wait_for(
            lambda: len(self.at(path)) >= count and self.at(path),
            f"{count} requests to {path}, there are {[each.path for each in self.received]}",
        )

    def wait_messages(self, path: str, count: int = 1) -> list[dict[str, Any]]:
        """Waits for notifications; confirmations do not count."""

        def found() -> list[dict[str, Any]]:
            bodies = [each.json() for each in self.at(path)]
            return [each for each in bodies if each["Type"] == "Notification"]

        return wait_for(lambda: len(found()) >= count and found(), f"{count} messages at {path}")


class MailReceiver:
    """Is a mail server that accepts all mails except to `rejected` recipients."""

    def __init__(self) -> None:
        self.mails: list[tuple[str, list[str], email.message.EmailMessage]] = []
        self.rejected: set[str] = set()
        receiver = self

        class Handler(socketserver.StreamRequestHandler):
            def say(self, text: str) -> None:
                self.wfile.write(text.encode() + b"\r\n")

            def handle(self) -> None:
                self.say("220 receiver ESMTP")
                sender, recipients = "", list[str]()
                while line := self.rfile.readline().decode().strip():
                    word = line.upper().split(" ")[0].split(":")[0]
                    address = re.search("<(.*?)>", line)
                    if word == "QUIT":
                        self.say("221 bye")
                        return
                    if word == "MAIL" and address:
                        sender, recipients = address[1], []
                    if word == "RCPT" and address:
                        if address[1] in receiver.rejected:
                            self.say("550 no such mailbox")
                            continue
                        recipients.append(address[1])
                    if word != "DATA":
                        self.say("250 ok")
                        continue
                    self.say("354 continue")
                    lines = []
                    while (part := self.rfile.readline()) != b".\r\n":
                        lines.append(part[1:] if part.startswith(b"..") else part)
                    mail = email.message_from_bytes(b"".join(lines), policy=email.policy.default)
                    assert isinstance(mail, email.message.EmailMessage)
                    receiver.mails.append((sender, recipients, mail))
                    self.say("250 kept")

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def wait(self, recipient: str, count: int = 1) -> list[email.message.EmailMessage]:
        def found() -> list[email.message.EmailMessage]:
            return [mail for _, to, mail in list(self.mails) if recipient in to]

        return wait_for(lambda: len(found()) >= count and found(), f"{count} mails to {recipient}")


def fetch(server: Server, url: str) -> tuple[int, bytes]:
    """Sends a GET without a signature, verified with the server's certificate authority."""
    context = ssl.create_default_context(cafile=os.path.join(server.data, "tls", "ca.pem"))
    try:
        with urllib.request.urlopen(url, context=context, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


SIGNED = {
    "Notification": ("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"),
    "SubscriptionConfirmation": (
        "Message",
        "MessageId",
        "SubscribeURL",
        "Timestamp",
        "Token",
        "TopicArn",
        "Type",
    ),
}


def is_genuine(server: Server, message: dict[str, Any]) -> bool:
    """Checks a message as the validators of SDKs do: the certificate is the server's, and its key
    has signed the members of the message."""
    assert message["SignatureVersion"] == "2"
    assert message["SigningCertURL"].split("://")[1].startswith(server.listen + "/_sns/")
    assert message["SigningCertURL"].endswith(".pem")
    status, certificate = fetch(server, message["SigningCertURL"])
    assert status == 200
    text = "".join(
        f"{name}\n{message[name]}\n" for name in SIGNED[message["Type"]] if name in message
    )
    with tempfile.TemporaryDirectory() as folder:

        def write(name: str, content: bytes) -> str:
            path = os.path.join(folder, name)
            with open(path, "wb") as file:
                file.write(content)
            return path

        key = subprocess.run(
            ["openssl", "x509", "-pubkey", "-noout", "-in", write("certificate", certificate)],
            check=True,
            capture_output=True,
        ).stdout
        checked = subprocess.run(
            [
                "openssl",
                "dgst",
                "-sha256",
                "-verify",
                write("key", key),
                "-signature",
                write("signature", base64.b64decode(message["Signature"])),
                write("text", text.encode()),
            ],
            capture_output=True,
        )
    return checked.returncode == 0


def subscribe(
    server: Server,
    topic: str,
    receiver: HttpReceiver,
    path: str,
    host: str = "127.0.0.1",
    **attributes: str,
) -> str:
    """Subscribes a path of the receiver, confirms it by its link, and returns the ARN."""
    sns = server.boto("sns")
    arn: str = sns.subscribe(
        TopicArn=topic,
        Protocol="http",
        Endpoint=receiver.url.replace("127.0.0.1", host) + path,
        Attributes=attributes,
        ReturnSubscriptionArn=True,
    )["SubscriptionArn"]
    confirmation = receiver.wait(path)[0].json()
    status, _ = fetch(server, confirmation["SubscribeURL"])
    assert status == 200
    return arn


def wait_until(condition: Callable[[], bool], what: str) -> None:
    wait_for(condition, what)
