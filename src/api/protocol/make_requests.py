"""Makes requests.json: requests that botocore wrote, with their parameters. protocol_test decodes
them and compares the results with the parameters.

usage: build/venv/bin/python PATH/make_requests.py > src/api/protocol/requests.json
"""

import base64
import datetime
import json
from typing import Any

import botocore.serialize
import botocore.session

SESSION = botocore.session.get_session()
WHEN = datetime.datetime(2026, 11, 20, 9, 45, 0, 123000, tzinfo=datetime.UTC)
SECOND = WHEN.replace(microsecond=0)

CREATE = {
    "TrainingJobName": "mnist-1",
    "RoleArn": "arn:aws:iam::123456789012:role/Train",
    "AlgorithmSpecification": {
        "TrainingImage": "python",
        "TrainingInputMode": "File",
        "ContainerEntrypoint": ["/bin/sh", "-c"],
        "MetricDefinitions": [{"Name": "loss", "Regex": "loss=([0-9.]+)"}],
    },
    "HyperParameters": {"epochs": "3"},
    "InputDataConfig": [
        {
            "ChannelName": "train",
            "DataSource": {
                "S3DataSource": {
                    "S3DataType": "S3Prefix",
                    "S3Uri": "s3://data/train/",
                    "S3DataDistributionType": "ShardedByS3Key",
                }
            },
        }
    ],
    "OutputDataConfig": {"S3OutputPath": "s3://models/"},
    "EnableNetworkIsolation": True,
    "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 2, "VolumeSizeInGB": 5},
    "StoppingCondition": {"MaxRuntimeInSeconds": 600},
    "Tags": [{"Key": "a", "Value": ""}],
    "Environment": {"NAME": '"a b" \\ \u00e9 \U0001f600 \n\t\x01'},
}
PUT_METRICS = {
    "Namespace": "mine",
    "MetricData": [
        {
            "MetricName": "loss",
            "Dimensions": [
                {"Name": "Host", "Value": "a&b=c d+e"},
                {"Name": "Job", "Value": "\u00e9"},
            ],
            "Timestamp": SECOND,
            "Value": -0.25,
            "Unit": "None",
        },
        {
            "MetricName": "time",
            "StatisticValues": {"SampleCount": 2.0, "Sum": 3e10, "Minimum": 1.0, "Maximum": 2.5},
            "Values": [1.0, 2.0],
            "Counts": [3.0, 4.0],
            "StorageResolution": 1,
        },
    ],
}
STATISTICS = {
    "Namespace": "mine",
    "MetricName": "loss",
    "StartTime": SECOND,
    "EndTime": SECOND,
    "Period": 60,
    "Statistics": ["Average", "Sum"],
    "Dimensions": [{"Name": "Job", "Value": "x"}],
}

# service, operation, parameters, protocols (of those that the service supports here)
CASES: list[tuple[str, str, dict[str, Any], list[str]]] = [
    ("sagemaker", "CreateTrainingJob", CREATE, ["json"]),
    (
        "sagemaker",
        "ListTrainingJobs",
        {"CreationTimeAfter": WHEN, "MaxResults": 7, "SortBy": "Name", "NameContains": "x"},
        ["json"],
    ),
    ("sagemaker", "ListTrainingJobs", {}, ["json"]),
    (
        "logs",
        "PutLogEvents",
        {
            "logGroupName": "g",
            "logStreamName": "s",
            "logEvents": [{"timestamp": 1763631900123, "message": "tab\there"}],
        },
        ["json"],
    ),
    (
        "logs",
        "GetLogEvents",
        {"logGroupName": "g", "logStreamName": "s", "startFromHead": True, "limit": 10},
        ["json"],
    ),
    ("cloudwatch", "PutMetricData", PUT_METRICS, ["json", "query"]),
    ("cloudwatch", "GetMetricStatistics", STATISTICS, ["json", "query"]),
    (
        "cloudwatch",
        "ListMetrics",
        {"Namespace": "mine", "Dimensions": [{"Name": "only"}]},
        ["json", "query"],
    ),
    ("sts", "GetCallerIdentity", {}, ["query"]),
    (
        "ec2",
        "CreateVpc",
        {
            "CidrBlock": "10.0.0.0/16",
            "InstanceTenancy": "default",
            "DryRun": True,
            "TagSpecifications": [
                {
                    "ResourceType": "vpc",
                    "Tags": [{"Key": "a", "Value": "b&c"}, {"Key": "\u00e9", "Value": ""}],
                }
            ],
        },
        ["ec2"],
    ),
    (
        "ec2",
        "ModifyVpcAttribute",
        {"VpcId": "vpc-1", "EnableDnsSupport": {"Value": False}},
        ["ec2"],
    ),
    (
        "ec2",
        "DescribeSecurityGroups",
        {
            "GroupIds": ["sg-1", "sg-2"],
            "Filters": [{"Name": "vpc-id", "Values": ["vpc-1", "vpc-2"]}, {"Name": "tag-key"}],
            "MaxResults": 5,
        },
        ["ec2"],
    ),
    (
        "ec2",
        "AuthorizeSecurityGroupIngress",
        {
            "GroupId": "sg-1",
            "IpPermissions": [
                {
                    "IpProtocol": "tcp",
                    "FromPort": 22,
                    "ToPort": 22,
                    "IpRanges": [{"CidrIp": "10.0.0.0/8", "Description": "office"}],
                    "UserIdGroupPairs": [{"GroupId": "sg-2"}],
                },
                {"IpProtocol": "-1", "Ipv6Ranges": [{"CidrIpv6": "::/0"}]},
            ],
        },
        ["ec2"],
    ),
    (
        "ec2",
        "DescribeSpotPriceHistory",
        {"StartTime": SECOND, "InstanceTypes": ["m5.large"]},
        ["ec2"],
    ),
    ("s3", "ListBuckets", {}, ["rest-xml"]),
    (
        "s3",
        "CreateBucket",
        {"Bucket": "b", "CreateBucketConfiguration": {"LocationConstraint": "eu-west-1"}},
        ["rest-xml"],
    ),
    ("s3", "CreateBucket", {"Bucket": "b"}, ["rest-xml"]),
    ("s3", "HeadBucket", {"Bucket": "b", "ExpectedBucketOwner": "123456789012"}, ["rest-xml"]),
    ("s3", "DeleteBucket", {"Bucket": "b"}, ["rest-xml"]),
    ("s3", "GetBucketLocation", {"Bucket": "b"}, ["rest-xml"]),
    (
        "s3",
        "GetObject",
        {
            "Bucket": "b",
            "Key": "a b/c+d/\u00e9~",
            "Range": "bytes=0-9",
            "IfModifiedSince": SECOND,
            "PartNumber": 3,
            "ResponseContentType": "a/b; c",
        },
        ["rest-xml"],
    ),
    ("s3", "HeadObject", {"Bucket": "b", "Key": "k", "IfMatch": '"abc"'}, ["rest-xml"]),
    (
        "s3",
        "PutObject",
        {
            "Bucket": "b",
            "Key": "..",
            "ContentType": "text/plain",
            "Metadata": {"one": "1", "two": "b c"},
            "ContentLength": 0,
            "BucketKeyEnabled": True,
        },
        ["rest-xml"],
    ),
    ("s3", "CopyObject", {"Bucket": "b", "Key": "k", "CopySource": "c/d"}, ["rest-xml"]),
    ("s3", "DeleteObject", {"Bucket": "b", "Key": "k"}, ["rest-xml"]),
    (
        "s3",
        "DeleteObjects",
        {"Bucket": "b", "Delete": {"Objects": [{"Key": "a&<b>"}, {"Key": " x "}], "Quiet": True}},
        ["rest-xml"],
    ),
    ("s3", "ListObjects", {"Bucket": "b", "Prefix": "p/"}, ["rest-xml"]),
    (
        "s3",
        "ListObjectsV2",
        {
            "Bucket": "b",
            "Prefix": "a b/",
            "Delimiter": "/",
            "MaxKeys": 5,
            "EncodingType": "url",
            "StartAfter": "x",
            "OptionalObjectAttributes": ["RestoreStatus"],
        },
        ["rest-xml"],
    ),
    ("s3", "CreateMultipartUpload", {"Bucket": "b", "Key": "k"}, ["rest-xml"]),
    (
        "s3",
        "UploadPart",
        {"Bucket": "b", "Key": "k", "PartNumber": 2, "UploadId": "u/1=", "ContentMD5": "abc="},
        ["rest-xml"],
    ),
    (
        "s3",
        "UploadPartCopy",
        {
            "Bucket": "b",
            "Key": "k",
            "PartNumber": 2,
            "UploadId": "u",
            "CopySource": "c/d",
            "CopySourceRange": "bytes=0-1",
        },
        ["rest-xml"],
    ),
    (
        "s3",
        "CompleteMultipartUpload",
        {
            "Bucket": "b",
            "Key": "k",
            "UploadId": "u",
            "MultipartUpload": {
                "Parts": [
                    {"ETag": '"x"', "PartNumber": 1},
                    {"ETag": '"y"', "PartNumber": 2, "ChecksumCRC32": "abc="},
                ]
            },
        },
        ["rest-xml"],
    ),
    ("s3", "AbortMultipartUpload", {"Bucket": "b", "Key": "k", "UploadId": "u"}, ["rest-xml"]),
    (
        "s3",
        "ListParts",
        {"Bucket": "b", "Key": "k", "UploadId": "u", "MaxParts": 2, "PartNumberMarker": 1},
        ["rest-xml"],
    ),
    ("s3", "ListMultipartUploads", {"Bucket": "b", "Prefix": "p"}, ["rest-xml"]),
]


Value = Any  # of a request, in JSON or in botocore's form


def plain(value: Value) -> Value:
    """Converts parameters to JSON: times to seconds, bytes to base64."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if isinstance(value, datetime.datetime):
        seconds = value.timestamp()
        return int(seconds) if seconds == int(seconds) else round(seconds, 3)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value


def main() -> None:
    out = []
    for service, operation, parameters, protocols in CASES:
        model = SESSION.get_service_model(service)
        for protocol in protocols:
            serializer = botocore.serialize.create_serializer(protocol, include_validation=False)
            request = serializer.serialize_to_request(
                dict(parameters), model.operation_model(operation)
            )
            body = request["body"]
            headers = dict(request["headers"])
            if protocol in ("query", "ec2"):
                import urllib.parse

                body = urllib.parse.urlencode(body)
                headers = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}
            target = request["url_path"]
            if request["query_string"]:
                pairs = request["query_string"]
                if isinstance(pairs, dict):
                    pairs = list(pairs.items())
                from botocore.utils import percent_encode_sequence

                target += ("&" if "?" in target else "?") + percent_encode_sequence(pairs)
            out.append(
                {
                    "service": service,
                    "operation": operation,
                    "protocol": "query" if protocol == "ec2" else protocol,
                    "method": request["method"],
                    "target": target,
                    "headers": [
                        [key, value if isinstance(value, str) else str(value)]
                        for key, value in sorted(headers.items())
                    ],
                    "body": body.decode() if isinstance(body, bytes) else body,
                    "meant": plain(parameters),
                }
            )
    print(json.dumps(out, indent=1))


main()
