"""Makes vectors.json: requests signed by botocore, an implementation that is not ours,
for signing_test to compare with.

usage: build/venv/bin/python PATH/make_vectors.py > src/foundation/signing/vectors.json
"""

import datetime
import hashlib
import json
from typing import Any
from unittest import mock

import botocore.auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

NOW = datetime.datetime(2026, 11, 20, 9, 45, 0)
PLAIN = Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
SESSION = Credentials(
    "ASIAEXAMPLE",
    "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
    "IQoJb3JpZ2luX2VjEXAMPLE//////////wEaCXVz",
)

# name, method, path and query, headers, body, service, region, credentials
CASES = [
    ("get-vanilla", "GET", "/", {}, b"", "service", "us-east-1", PLAIN),
    (
        "get-query-order",
        "GET",
        "/?Param2=value2&Param1=value1",
        {},
        b"",
        "service",
        "us-east-1",
        PLAIN,
    ),
    (
        "get-query-order-by-value",
        "GET",
        "/?Param1=value2&Param1=Value1",
        {},
        b"",
        "service",
        "us-east-1",
        PLAIN,
    ),
    ("get-query-empty-value", "GET", "/?a=&b", {}, b"", "service", "us-east-1", PLAIN),
    (
        "get-unreserved",
        "GET",
        "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
        {},
        b"",
        "service",
        "us-east-1",
        PLAIN,
    ),
    ("get-utf8-path", "GET", "/%E1%88%B4", {}, b"", "service", "us-east-1", PLAIN),
    ("get-space-path", "GET", "/example%20space/", {}, b"", "service", "us-east-1", PLAIN),
    ("get-relative", "GET", "/example/..", {}, b"", "service", "us-east-1", PLAIN),
    (
        "get-relative-relative",
        "GET",
        "/example1/example2/../..",
        {},
        b"",
        "service",
        "us-east-1",
        PLAIN,
    ),
    ("get-slashes", "GET", "//example//", {}, b"", "service", "us-east-1", PLAIN),
    ("get-dot-slash", "GET", "/./example", {}, b"", "service", "us-east-1", PLAIN),
    (
        "header-folding",
        "GET",
        "/",
        {"My-Header1": "  a   b   c  ", "My-Header2": "value"},
        b"",
        "service",
        "us-east-1",
        PLAIN,
    ),
    ("header-upper", "POST", "/", {"MY-HEADER1": "VALUE1"}, b"", "service", "us-east-1", PLAIN),
    (
        "post-form",
        "POST",
        "/",
        {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"},
        b"Action=GetCallerIdentity&Version=2011-06-15",
        "sts",
        "eu-west-1",
        PLAIN,
    ),
    (
        "post-json",
        "POST",
        "/",
        {
            "Content-Type": "application/x-amz-json-1.1",
            "X-Amz-Target": "SageMaker.ListTrainingJobs",
        },
        b"{}",
        "sagemaker",
        "eu-west-1",
        SESSION,
    ),
    (
        "s3-put",
        "PUT",
        "/bucket/a%20b/c%2Bd~e",
        {"Content-Type": "text/plain", "x-amz-meta-one": "two"},
        b"hello",
        "s3",
        "us-west-2",
        PLAIN,
    ),
    ("s3-dots-stay", "GET", "/bucket/a/../b//c", {}, b"", "s3", "us-west-2", PLAIN),
    (
        "s3-query",
        "GET",
        "/bucket?list-type=2&prefix=a%2Fb%20c&delimiter=%2F&encoding-type=url",
        {},
        b"",
        "s3",
        "us-west-2",
        SESSION,
    ),
    ("s3-subresource", "POST", "/bucket/key?uploads", {}, b"", "s3", "us-west-2", PLAIN),
]


# name, method, target, headers, body, service, region, credentials
Case = tuple[str, str, str, dict[str, str], bytes, str, str, Credentials]


def signer(service: str) -> type[botocore.auth.BaseSigner]:
    kind: type[botocore.auth.BaseSigner] = (
        botocore.auth.S3SigV4Auth if service == "s3" else botocore.auth.SigV4Auth
    )
    return kind


def presigner(service: str) -> type[botocore.auth.BaseSigner]:
    kind: type[botocore.auth.BaseSigner] = (
        botocore.auth.S3SigV4QueryAuth if service == "s3" else botocore.auth.SigV4QueryAuth
    )
    return kind


def one(auth_class: type[botocore.auth.BaseSigner], case: Case, **more: Any) -> AWSRequest:
    _, method, target, headers, body, service, region, credentials = case
    request = AWSRequest(
        method=method, url="http://127.0.0.1:4566" + target, headers=dict(headers), data=body
    )
    request.headers["Host"] = "127.0.0.1:4566"
    request.context["payload_signing_enabled"] = True
    auth = auth_class(credentials, service, region, **more)
    auth.add_auth(request)
    return request


def main() -> None:
    out = []
    module = (
        "botocore.auth.get_current_datetime"
        if hasattr(botocore.auth, "get_current_datetime")
        else "botocore.auth.datetime"
    )
    with mock.patch(module) as clock:
        if module.endswith("get_current_datetime"):
            clock.return_value = NOW
        else:
            clock.datetime.utcnow.return_value = NOW
            clock.datetime.now.return_value = NOW
        for case in CASES:
            name, method, target, headers, body, service, region, credentials = case
            request = one(signer(service), case)
            out.append(
                {
                    "name": name,
                    "method": method,
                    "target": target,
                    "body": body.decode(),
                    "service": service,
                    "region": region,
                    "session": credentials is SESSION,
                    "body_sha256": hashlib.sha256(body).hexdigest(),
                    "headers": [[key, value] for key, value in request.headers.items()],
                }
            )
        for case in CASES:
            name, method, target, headers, body, service, region, credentials = case
            if headers or body:
                continue
            request = one(presigner(service), case, expires=900)
            out.append(
                {
                    "name": "presigned-" + name,
                    "method": method,
                    "target": request.url[len("http://127.0.0.1:4566") :],
                    "body": "",
                    "service": service,
                    "region": region,
                    "session": credentials is SESSION,
                    "body_sha256": hashlib.sha256(b"").hexdigest(),
                    "headers": [["Host", "127.0.0.1:4566"]],
                }
            )
    print(
        json.dumps(
            {
                "now": "20261120T094500Z",
                "secret": PLAIN.secret_key,
                "token": SESSION.token,
                "cases": out,
            },
            indent=1,
        )
    )


main()
