"""Signs requests with Signature Version 4, using the standard library only: this file also runs
inside containers.

Every part of a signature can be overridden, to make requests with exactly one error."""

from __future__ import annotations

import datetime
import hashlib
import hmac
import http.client
import json
import os
import re
import urllib.parse
import urllib.request
from typing import Any

REGION = "us-east-1"
PREFIXES = {"sagemaker": "SageMaker", "logs": "Logs_20140328", "trainyard": "Trainyard"}


class Caller:
    """Sends requests with one set of keys. `keys`: AccessKeyId, SecretAccessKey and, for temporary
    keys, Token."""

    last_request_id = ""  # of the newest answer to any caller

    def __init__(self, endpoint: str, keys: dict[str, str]) -> None:
        self.authority = urllib.parse.urlsplit(endpoint).netloc
        self.keys = keys

    def signed(
        self,
        service: str,
        method: str = "POST",
        path: str = "/",
        query: str = "",
        headers: dict[str, str] | None = None,
        body: bytes = b"",
        region: str = REGION,
        at: datetime.datetime | None = None,
        unsigned: dict[str, str] | None = None,
        scope_service: str | None = None,
    ) -> dict[str, str]:
        """Returns the header fields of a signed request. `unsigned`: further fields, which are sent
        but not signed."""
        at = at or datetime.datetime.now(datetime.UTC)
        now = at.strftime("%Y%m%dT%H%M%SZ")
        scope = f"{now[:8]}/{region}/{scope_service or service}/aws4_request"
        hashed = hashlib.sha256(body).hexdigest()
        sent = {"host": self.authority, "x-amz-date": now, "x-amz-content-sha256": hashed}
        if "Token" in self.keys:
            sent["x-amz-security-token"] = self.keys["Token"]
        sent |= {name.lower(): value for name, value in (headers or {}).items()}
        names = ";".join(sorted(sent))
        # S3 signs the path as it is; other services encode it a second time
        shown = path if service == "s3" else urllib.parse.quote(path, safe="/-_.~")
        canonical = "\n".join(
            [
                method,
                shown,
                query,
                *(f"{name}:{sent[name]}" for name in sorted(sent)),
                "",
                names,
                sent["x-amz-content-sha256"],
            ]
        )
        text = "\n".join(
            ["AWS4-HMAC-SHA256", now, scope, hashlib.sha256(canonical.encode()).hexdigest()]
        )
        key = ("AWS4" + self.keys["SecretAccessKey"]).encode()
        for part in (now[:8], region, scope_service or service, "aws4_request"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
        sent["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={self.keys['AccessKeyId']}/{scope},"
            f" SignedHeaders={names}, Signature={signature}"
        )
        return sent | (unsigned or {})

    def call(
        self,
        service: str,
        method: str = "POST",
        path: str = "/",
        query: str = "",
        headers: dict[str, str] | None = None,
        body: bytes = b"",
        sent: dict[str, str] | None = None,
        sent_method: str | None = None,
        sent_path: str | None = None,
        sent_body: bytes | None = None,
        **more: Any,
    ) -> tuple[int, str]:
        """Returns status and text of the response. `sent*`: values sent in place of the signed
        ones."""
        fields = self.signed(service, method, path, query, headers, body, **more)
        fields |= sent or {}
        return self.send(
            sent_method or method,
            (sent_path or path) + ("?" + query if query else ""),
            fields,
            body if sent_body is None else sent_body,
        )

    def send(
        self, method: str, target: str, fields: dict[str, str], body: bytes = b""
    ) -> tuple[int, str]:
        connection = http.client.HTTPConnection(self.authority, timeout=30)
        try:
            connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            fields = {name.lower(): value for name, value in fields.items()}
            if body and "content-length" not in fields and "transfer-encoding" not in fields:
                fields["content-length"] = str(len(body))
            for name, value in ({"host": self.authority} | fields).items():
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders(body or None)
            answer = connection.getresponse()
            Caller.last_request_id = (
                answer.getheader("x-amzn-requestid") or answer.getheader("x-amz-request-id") or ""
            )
            return answer.status, answer.read().decode(errors="replace")
        finally:
            connection.close()

    def target(self, service: str, operation: str, **members: Any) -> tuple[int, str]:
        return self.call(
            service,
            headers={
                "X-Amz-Target": f"{PREFIXES[service]}.{operation}",
                "Content-Type": "application/x-amz-json-1.1",
            },
            body=json.dumps(members).encode(),
        )

    def form(self, service: str, version: str, **members: str) -> tuple[int, str]:
        return self.call(
            service,
            headers={"Content-Type": "application/x-www-form-urlencoded"},
            body=urllib.parse.urlencode({"Version": version, **members}).encode(),
        )


def code_of(text: str) -> str:
    """Returns the error code of a response in any of the protocols; "-" when it has none."""
    found = re.search(r"<Code>([\w.]+)</Code>", text) or re.search(
        r'"__type": ?"(?:[^"#]*#)?(\w+)"', text
    )
    return found.group(1) if found else "-"


def caller_of_this_job() -> Caller:
    """Returns a caller with the keys of the job that runs this file."""
    with urllib.request.urlopen(
        "http://169.254.170.2" + os.environ["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"]
    ) as answer:
        return Caller(os.environ["AWS_ENDPOINT_URL"], json.load(answer))
