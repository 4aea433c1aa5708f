"""Makes asymmetric_vectors.json: requests that AWS's common runtime signed with SigV4a
(AWS4-ECDSA-P256-SHA256), for signing_test to verify. Each run gives other signatures:
ECDSA is random.

usage: build/venv/bin/python src/foundation/signing/make_asymmetric_vectors.py >
src/foundation/signing/asymmetric_vectors.json
"""

import datetime
import hashlib
import json
from typing import Any

import awscrt.auth
import awscrt.http

NOW = datetime.datetime(2026, 11, 20, 9, 45, 0, tzinfo=datetime.UTC)
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
TOKEN = "IQoJb3JpZ2luX2VjEXAMPLE//////////wEaCXVz"

# name, method, path and query, headers, body, service, region set, with a token
CASES = [
    ("get-vanilla", "GET", "/", {}, b"", "service", "us-east-1", False),
    ("get-vanilla-token", "GET", "/", {}, b"", "service", "us-east-1", True),
    ("get-query-order", "GET", "/?Param2=value2&Param1=value1", {}, b"", "service", "*", False),
    (
        "get-relative",
        "GET",
        "/example1/example2/../..",
        {},
        b"",
        "service",
        "us-east-1,eu-west-1",
        False,
    ),
    ("header-folding", "GET", "/", {"My-Header1": "  a   b   c  "}, b"", "service", "us-*", False),
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
        "*",
        True,
    ),
    (
        "s3-put",
        "PUT",
        "/bucket/a%20b/c%2Bd~e",
        {"Content-Type": "text/plain", "x-amz-meta-one": "two"},
        b"hello",
        "s3",
        "eu-west-1",
        False,
    ),
    ("s3-dots-stay", "GET", "/bucket/a/../b//c", {}, b"", "s3", "*", False),
    (
        "s3-query",
        "GET",
        "/bucket?list-type=2&prefix=a%2Fb%20c&encoding-type=url",
        {},
        b"",
        "s3",
        "eu-*",
        True,
    ),
]


# name, method, target, headers, body, service, regions, whether with a token
Case = tuple[str, str, str, dict[str, str], bytes, str, str, bool]


def sign(case: Case, presigned: bool) -> dict[str, Any]:
    name, method, target, headers, body, service, region_set, with_token = case
    s3 = service == "s3"
    request = awscrt.http.HttpRequest(method, target)
    request.headers.add("Host", "127.0.0.1:4566")
    for header, value in headers.items():
        request.headers.add(header, value)
    kinds = awscrt.auth.AwsSignatureType
    payload = "UNSIGNED-PAYLOAD" if presigned and s3 else hashlib.sha256(body).hexdigest()
    config = awscrt.auth.AwsSigningConfig(
        algorithm=awscrt.auth.AwsSigningAlgorithm.V4_ASYMMETRIC,
        signature_type=kinds.HTTP_REQUEST_QUERY_PARAMS if presigned else kinds.HTTP_REQUEST_HEADERS,
        credentials_provider=awscrt.auth.AwsCredentialsProvider.new_static(
            "AKIDEXAMPLE", SECRET, TOKEN if with_token else None
        ),
        region=region_set,
        service=service,
        date=NOW,
        use_double_uri_encode=not s3,
        should_normalize_uri_path=not s3,
        signed_body_value=payload,
        signed_body_header_type=awscrt.auth.AwsSignedBodyHeaderType.NONE
        if presigned
        else awscrt.auth.AwsSignedBodyHeaderType.X_AMZ_CONTENT_SHA_256,
        expiration_in_seconds=900 if presigned else None,
    )
    awscrt.auth.aws_sign_request(request, config).result(60)
    return {
        "name": ("presigned-" if presigned else "") + name,
        "method": method,
        "target": request.path,
        "service": service,
        "region_set": region_set,
        "token": TOKEN if with_token else "",
        "body_sha256": hashlib.sha256(body).hexdigest(),
        "headers": [list(field) for field in request.headers],
    }


def main() -> None:
    cases = [sign(case, False) for case in CASES] + [
        sign(case, True) for case in CASES if not case[3] and not case[4]
    ]
    print(
        json.dumps(
            {
                "now": "20261120T094500Z",
                "access_key": "AKIDEXAMPLE",
                "secret": SECRET,
                "cases": cases,
            },
            indent=1,
        )
    )


main()
