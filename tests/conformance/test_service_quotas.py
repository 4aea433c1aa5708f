"""Tests Service Quotas through unmodified clients."""

from collections.abc import Callable

import pytest

from tests import jobs
from tests.trainyard_server import Answer, Server, wait_for


def test_the_limits_of_this_server(server: Server) -> None:
    quotas = server.boto("service-quotas")
    assert {one["ServiceCode"] for one in quotas.list_services()["Services"]} == {
        "batch",
        "sagemaker",
    }
    listed = [
        one
        for page in quotas.get_paginator("list_service_quotas").paginate(
            ServiceCode="batch", PaginationConfig={"PageSize": 5}
        )
        for one in page["Quotas"]
    ]
    queues = next(one for one in listed if one["QuotaName"] == "Job queue limit")
    assert (
        queues["Value"] == 50
        and not queues["Adjustable"]
        and len(listed) == len({one["QuotaCode"] for one in listed})
    )
    assert (
        quotas.get_service_quota(ServiceCode="batch", QuotaCode=queues["QuotaCode"])["Quota"]
        == queues
    )
    assert (
        quotas.get_aws_default_service_quota(ServiceCode="batch", QuotaCode=queues["QuotaCode"])[
            "Quota"
        ]
        == queues
    )
    assert queues in quotas.list_aws_default_service_quotas(ServiceCode="batch")["Quotas"]
    assert quotas.list_service_quotas(ServiceCode="batch", QuotaCode=queues["QuotaCode"])[
        "Quotas"
    ] == [queues]
    with pytest.raises(quotas.exceptions.IllegalArgumentException, match="not raised by a request"):
        quotas.request_service_quota_increase(
            ServiceCode="batch", QuotaCode=queues["QuotaCode"], DesiredValue=60
        )
    with pytest.raises(quotas.exceptions.NoSuchResourceException):
        quotas.get_service_quota(ServiceCode="batch", QuotaCode="L-NONE")
    with pytest.raises(quotas.exceptions.NoSuchResourceException):
        quotas.list_service_quotas(ServiceCode="sheep")
    with pytest.raises(quotas.exceptions.InvalidPaginationTokenException):
        quotas.list_service_quotas(ServiceCode="batch", NextToken="OTk5")
    assert quotas.list_requested_service_quota_change_history()["RequestedQuotas"] == []


def test_both_command_lines(server: Server, aws: Callable[..., Answer]) -> None:
    assert "batch" in [
        one["ServiceCode"] for one in aws("service-quotas", "list-services")["Services"]
    ]


def test_instances_have_the_quotas_of_the_config(start: Callable[..., Server]) -> None:
    config = (
        "[[quota]]\ninstance_type = 'ml.m5.large'\ncount = 2\n[[quota]]\nregion ="
        " 'eu-west-1'\ninstance_type = 'ml.m5.large'\ncount = 0\n[regions.'eu-west-1']\n"
    )
    server = start(config)
    for region, count in (("us-east-1", 2), ("eu-west-1", 0)):
        quotas = server.boto("service-quotas", region_name=region)
        found = [
            one
            for one in quotas.list_service_quotas(ServiceCode="sagemaker")["Quotas"]
            if one["QuotaName"] == "ml.m5.large for training job usage"
        ]
        assert [one["Value"] for one in found] == [count]
        assert (
            quotas.get_service_quota(ServiceCode="sagemaker", QuotaCode=found[0]["QuotaCode"])[
                "Quota"
            ]
            == found[0]
        )
    server.boto("s3").create_bucket(Bucket="yard")
    sagemaker = server.boto("sagemaker")
    sagemaker.create_training_job(**jobs.request("too-many", hosts=3, instance_type="ml.m5.large"))
    described = wait_for(
        lambda: [
            one
            for one in [sagemaker.describe_training_job(TrainingJobName="too-many")]
            if "training job usage" in one["SecondaryStatusTransitions"][-1]["StatusMessage"]
        ],
        "the sentence",
    )
    assert "raise its [[quota]]" in described[0]["SecondaryStatusTransitions"][-1]["StatusMessage"]
    server.reload(config.replace("count = 2", "count = 3"))
    assert jobs.wait_until(sagemaker, "too-many")["TrainingJobStatus"] == "Completed", (
        "SIGHUP raised it"
    )
    found = server.boto("service-quotas").list_service_quotas(ServiceCode="sagemaker")["Quotas"]
    assert [
        one["Value"] for one in found if one["QuotaName"] == "ml.m5.large for training job usage"
    ] == [3]
