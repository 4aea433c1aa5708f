"""Tests training jobs through unmodified clients."""

import io
import json
import tarfile
from collections.abc import Callable
from typing import Any

import boto3
import botocore.config
import pytest
from botocore.client import BaseClient

from tests import jobs
from tests.calls import fresh, refused
from tests.trainyard_server import Answer, Server, wait_for


@pytest.fixture(scope="module")
def sagemaker(server: Server) -> BaseClient:
    return server.boto("sagemaker")


@pytest.fixture(scope="module")
def s3(server: Server) -> BaseClient:
    client = server.boto("s3")
    client.create_bucket(Bucket="yard")
    return client


@pytest.fixture(scope="module")
def logs(server: Server) -> BaseClient:
    return server.boto("logs")


def model_of(s3: BaseClient, description: dict[str, Any]) -> tarfile.TarFile:
    bucket, key = (
        description["ModelArtifacts"]["S3ModelArtifacts"].removeprefix("s3://").split("/", 1)
    )
    return tarfile.open(fileobj=io.BytesIO(s3.get_object(Bucket=bucket, Key=key)["Body"].read()))


def test_a_job_runs_and_leaves_its_model(
    sagemaker: BaseClient, s3: BaseClient, logs: BaseClient
) -> None:
    name = fresh("model")
    made = sagemaker.create_training_job(
        **jobs.request(
            name, "echo hello from $(hostname); echo weights > /opt/ml/model/weights.txt"
        )
    )
    assert made["TrainingJobArn"].endswith(f":training-job/{name}")
    done = jobs.wait_until(sagemaker, name)
    assert done["TrainingJobStatus"] == "Completed", done
    assert done["SecondaryStatus"] == "Completed"
    assert (
        done["ModelArtifacts"]["S3ModelArtifacts"] == f"s3://yard/models/{name}/output/model.tar.gz"
    )
    assert model_of(s3, done).extractfile("weights.txt").read() == b"weights\n"
    assert jobs.log_lines(logs, name) == ["hello from algo-1"]
    phases = [one["Status"] for one in done["SecondaryStatusTransitions"]]
    assert phases[0] in ("Starting", "Pending") and phases[-1] == "Completed"
    assert phases.index("Training") < phases.index("Uploading")
    for before, after in zip(
        done["SecondaryStatusTransitions"], done["SecondaryStatusTransitions"][1:]
    ):
        assert before["EndTime"] == after["StartTime"] and before["StatusMessage"]
    assert done["TrainingStartTime"] <= done["TrainingEndTime"]
    assert done["OutputDataConfig"]["KmsKeyId"] == ""


def test_the_command_line_describes_and_waits(
    server: Server, aws: Callable[..., Answer], sagemaker: BaseClient, s3: BaseClient
) -> None:
    name = fresh("cli")
    aws("sagemaker", "create-training-job", "--cli-input-json", json.dumps(jobs.request(name)))
    jobs.wait_until(sagemaker, name)
    aws("sagemaker", "wait", "training-job-completed-or-stopped", "--training-job-name", name)
    assert (
        aws("sagemaker", "describe-training-job", "--training-job-name", name)["TrainingJobStatus"]
        == "Completed"
    )
    listed = aws("sagemaker", "list-training-jobs", "--name-contains", name)["TrainingJobSummaries"]
    assert [one["TrainingJobName"] for one in listed] == [name]


def test_two_hosts_see_each_other_and_their_shards(
    sagemaker: BaseClient, s3: BaseClient, logs: BaseClient
) -> None:
    for shard in range(4):
        s3.put_object(Bucket="yard", Key=f"shards/part-{shard}", Body=f"{shard}\n".encode())
    name = fresh("gang")
    script = (
        "python3 -c 'import json;"
        ' print(json.load(open("/opt/ml/input/config/resourceconfig.json"))["hosts"])\'; cat'
        " /opt/ml/input/data/train/part-* | tr '\\n' ' '; echo; getent hosts algo-1 algo-2 | wc -l;"
        " echo $(hostname) > /opt/ml/model/$(hostname).txt; echo $(hostname) >"
        " /opt/ml/model/same.txt"
    )
    sagemaker.create_training_job(
        **jobs.request(
            name,
            script,
            hosts=2,
            channels={
                "train": ("s3://yard/shards/", "ShardedByS3Key"),
                "all": ("s3://yard/shards/", "FullyReplicated"),
            },
        )
    )
    done = jobs.wait_until(sagemaker, name)
    assert done["TrainingJobStatus"] == "Completed", (done, jobs.log_lines(logs, name))
    one, two = jobs.log_lines(logs, name, host=1), jobs.log_lines(logs, name, host=2)
    assert one[0] == two[0] == "['algo-1', 'algo-2']"
    assert (
        sorted(one[1].split() + two[1].split()) == ["0", "1", "2", "3"] and len(one[1].split()) == 2
    )
    assert one[2] == two[2] == "2"
    model = model_of(s3, done)
    assert sorted(model.getnames()) == ["algo-1.txt", "algo-2.txt", "same.txt", "same.txt.algo-2"]
    assert model.extractfile("same.txt").read() == b"algo-1\n"
    assert any("same.txt.algo-2" in line for line in one), "the log reports the repeated name"


def test_the_first_failing_host_says_why(sagemaker: BaseClient, s3: BaseClient) -> None:
    name = fresh("fail")
    sagemaker.create_training_job(
        **jobs.request(
            name,
            'if [ $(hostname) = algo-2 ]; then printf "out of ideas" > /opt/ml/output/failure; exit'
            " 3; fi; sleep 100",
            hosts=2,
        )
    )
    done = jobs.wait_until(sagemaker, name)
    assert done["TrainingJobStatus"] == "Failed"
    assert done["FailureReason"].startswith("AlgorithmError: out of ideas, exit code: 3"), done[
        "FailureReason"
    ]
    assert "algo-2" in done["FailureReason"]


def test_stop_gives_grace_and_uploads(
    sagemaker: BaseClient, s3: BaseClient, logs: BaseClient
) -> None:
    name = fresh("stop")
    sagemaker.create_training_job(
        **jobs.request(
            name,
            "trap 'echo saved > /opt/ml/model/checkpoint; exit 0' TERM; echo ready; while true; do"
            " sleep 0.1; done",
        )
    )
    jobs.wait_until(sagemaker, name, ("Training",))
    wait_for(lambda: "ready" in jobs.log_lines(logs, name), "the process to run")
    sagemaker.stop_training_job(TrainingJobName=name)
    done = jobs.wait_until(sagemaker, name)
    assert (done["TrainingJobStatus"], done["SecondaryStatus"]) == ("Stopped", "Stopped")
    assert model_of(s3, done).extractfile("checkpoint").read() == b"saved\n"


def test_max_runtime_stops(sagemaker: BaseClient, s3: BaseClient) -> None:
    name = fresh("late")
    sagemaker.create_training_job(
        **jobs.request(
            name,
            "echo x > /opt/ml/model/x; exec sleep 1000",
            StoppingCondition={"MaxRuntimeInSeconds": 1},
        )
    )
    done = jobs.wait_until(sagemaker, name)
    assert (done["TrainingJobStatus"], done["SecondaryStatus"]) == ("Stopped", "MaxRuntimeExceeded")
    assert model_of(s3, done).getnames() == ["x"]


def test_metrics_are_read_off_the_log(
    server: Server, sagemaker: BaseClient, s3: BaseClient
) -> None:
    name = fresh("metrics")
    request = jobs.request(name, 'for i in 3 2 1; do echo "epoch done loss=0.$i;"; done')
    request["AlgorithmSpecification"]["MetricDefinitions"] = [
        {"Name": "train:loss", "Regex": "loss=([0-9.]+);"}
    ]
    sagemaker.create_training_job(**request)
    done = jobs.wait_until(sagemaker, name)
    assert [(one["MetricName"], round(one["Value"], 6)) for one in done["FinalMetricDataList"]] == [
        ("train:loss", 0.1)
    ]
    points = server.boto("cloudwatch").get_metric_statistics(
        Namespace="/aws/sagemaker/TrainingJobs",
        MetricName="train:loss",
        Dimensions=[{"Name": "TrainingJobName", "Value": name}],
        StartTime=done["CreationTime"],
        EndTime=done["LastModifiedTime"].replace(year=done["LastModifiedTime"].year + 1),
        Period=86400,
        Statistics=["Minimum", "SampleCount"],
    )["Datapoints"]
    assert sum(point["SampleCount"] for point in points) == 3 and min(
        point["Minimum"] for point in points
    ) == pytest.approx(0.1)


def test_metrics_are_read_from_files(server: Server, sagemaker: BaseClient, s3: BaseClient) -> None:
    name = fresh("files")
    write = (
        'for i in 3 2 1; do printf \'{"MetricName": "file:loss", "Value": 0.%d, "Timestamp":'
        " %s}\\n' $i $(date +%s.%N); done > $SAGEMAKER_METRICS_DIRECTORY/$$.json"
    )
    sagemaker.create_training_job(
        **jobs.request(name, write + "; echo $SAGEMAKER_METRICS_DIRECTORY")
    )
    done = jobs.wait_until(sagemaker, name)
    assert jobs.log_lines(server.boto("logs"), name) == ["/opt/ml/output/metrics/sagemaker"], done
    points = server.boto("cloudwatch").get_metric_statistics(
        Namespace="/aws/sagemaker/TrainingJobs",
        MetricName="file:loss",
        Dimensions=[{"Name": "TrainingJobName", "Value": name}],
        StartTime=done["CreationTime"],
        EndTime=done["LastModifiedTime"].replace(year=done["LastModifiedTime"].year + 1),
        Period=86400,
        Statistics=["Minimum", "SampleCount"],
    )["Datapoints"]
    assert sum(point["SampleCount"] for point in points) == 3 and min(
        point["Minimum"] for point in points
    ) == pytest.approx(0.1)


def test_the_container_has_the_files_and_variables_of_the_contract(
    sagemaker: BaseClient, s3: BaseClient, logs: BaseClient
) -> None:
    name = fresh("contract")
    script = (
        "cat /opt/ml/input/config/hyperparameters.json; echo; echo $TRAINING_JOB_NAME $MY_VARIABLE"
        " $AWS_REGION; cat /opt/ml/input/config/resourceconfig.json"
    )
    sagemaker.create_training_job(
        **jobs.request(
            name,
            script,
            HyperParameters={"epochs": "3", "name": '"abc"'},
            Environment={"MY_VARIABLE": "mine"},
        )
    )
    done = jobs.wait_until(sagemaker, name)
    assert done["TrainingJobStatus"] == "Completed", done
    lines = jobs.log_lines(logs, name)
    assert json.loads(lines[0]) == {"epochs": "3", "name": '"abc"'}
    assert lines[1] == f"{name} mine us-east-1"
    resources = json.loads("".join(lines[2:]))
    assert resources["current_host"] == "algo-1" and resources["network_interface_name"] == "eth0"
    assert (
        resources["current_instance_type"] == "ml.t3.medium"
        and resources["current_group_name"] == "homogeneousCluster"
    )


def test_a_job_reaches_the_api_as_its_role(
    sagemaker: BaseClient, s3: BaseClient, logs: BaseClient
) -> None:
    name = fresh("inside")
    script = (
        "curl -s http://169.254.170.2$AWS_CONTAINER_CREDENTIALS_RELATIVE_URI | python3 -c 'import"
        ' json,sys; print(json.load(sys.stdin)["AccessKeyId"][:4])\'; curl -s -o /dev/null -w'
        " '%{http_code}\\n' $AWS_ENDPOINT_URL/yard/"
    )
    sagemaker.create_training_job(**jobs.request(name, script))
    done = jobs.wait_until(sagemaker, name)
    assert done["TrainingJobStatus"] == "Completed", done
    assert jobs.log_lines(logs, name) == [
        "ASIA",
        "403",
    ], "keys of the role; and an unsigned request is refused"


def test_names_of_jobs_are_unique(sagemaker: BaseClient, s3: BaseClient) -> None:
    name = fresh("twice")
    sagemaker.create_training_job(**jobs.request(name))
    code, message = refused(sagemaker.create_training_job, **jobs.request(name))
    assert code == "ResourceInUse" and name in message


# A machine of a known size: without one, larger gangs are scaled down to fit.
BOX = "[[machine]]\nname = 'box'\ncpus = 8.0\nmemory_gib = 32.0\n"


@pytest.fixture(scope="module")
def box(start: Callable[..., Server]) -> Server:
    server = start(BOX)
    server.boto("s3").create_bucket(Bucket="yard")
    return server


def with_preferences(name: str, *preferences: dict[str, Any], **resources: Any) -> dict[str, Any]:
    body = jobs.request(name, "grep -o 'ml[.a-z0-9]*' /opt/ml/input/config/resourceconfig.json")
    body["ResourceConfig"] = {
        "VolumeSizeInGB": 1,
        "InstancePreferences": list(preferences),
    } | resources
    return body


def test_the_first_instance_preference_with_capacity_is_selected(box: Server) -> None:
    sagemaker, name = box.boto("sagemaker"), fresh("choosy")
    preferences = [
        {"InstanceType": "ml.p4d.24xlarge", "InstanceCount": 4},
        {"InstanceType": "ml.t3.medium", "InstanceCount": 1},
        {"InstanceType": "ml.m5.large", "InstanceCount": 1},
    ]
    sagemaker.create_training_job(**with_preferences(name, *preferences))
    done = jobs.wait_until(sagemaker, name)
    assert done["TrainingJobStatus"] == "Completed", done
    assert done["ResourceConfig"] == {
        "VolumeSizeInGB": 1,
        "InstancePreferences": preferences,
        "SelectedInstanceType": "ml.t3.medium",
        "SelectedInstanceCount": 1,
    }
    assert set(jobs.log_lines(box.boto("logs"), name)) == {"ml.t3.medium"}


def test_instance_preferences_share_a_count(box: Server) -> None:
    sagemaker, name = box.boto("sagemaker"), fresh("choosy")
    sagemaker.create_training_job(
        **with_preferences(name, {"InstanceType": "ml.t3.medium"}, InstanceCount=1)
    )
    done = jobs.wait_until(sagemaker, name)["ResourceConfig"]
    assert (done["SelectedInstanceType"], done["SelectedInstanceCount"]) == ("ml.t3.medium", 1)
    assert done["InstanceCount"] == 1 and "InstanceType" not in done


def test_a_job_without_capacity_for_any_preference_waits(box: Server) -> None:
    sagemaker, name = box.boto("sagemaker"), fresh("choosy")
    sagemaker.create_training_job(
        **with_preferences(
            name,
            {"InstanceType": "ml.p4d.24xlarge"},
            {"InstanceType": "ml.p3.16xlarge"},
            InstanceCount=1,
        )
    )
    waits = wait_for(
        lambda: next(
            (
                seen
                for seen in [sagemaker.describe_training_job(TrainingJobName=name)]
                if "instance preferences" in seen["SecondaryStatusTransitions"][-1]["StatusMessage"]
            ),
            None,
        ),
        "the pending reason",
    )
    assert (
        "none of its 2 instance preferences has free capacity; ml.p4d.24xlarge: "
        in waits["SecondaryStatusTransitions"][-1]["StatusMessage"]
    )
    assert "SelectedInstanceType" not in waits["ResourceConfig"]
    sagemaker.stop_training_job(TrainingJobName=name)


A, B = {"InstanceType": "ml.t3.medium"}, {"InstanceType": "ml.m5.large"}
NOT_BOTH = "InstancePreferences is mutually exclusive with "
COUNTS = "InstancePreferences needs InstanceCount either on every preference or once"


@pytest.mark.parametrize(
    ("preferences", "resources", "more", "why"),
    [
        ([A, B], {}, {}, COUNTS),
        ([A | {"InstanceCount": 1}, B], {}, {}, COUNTS),
        ([A | {"InstanceCount": 1}], {"InstanceCount": 1}, {}, COUNTS),
        ([A, A], {"InstanceCount": 1}, {}, "can appear only once in InstancePreferences"),
        ([A], {"InstanceCount": 1, "InstanceType": "ml.m5.large"}, {}, NOT_BOTH + "InstanceType"),
        (
            [A],
            {
                "InstanceCount": 1,
                "InstanceGroups": [B | {"InstanceCount": 1, "InstanceGroupName": "g"}],
            },
            {},
            NOT_BOTH + "InstanceGroups",
        ),
        (
            [A],
            {"InstanceCount": 1},
            {
                "EnableManagedSpotTraining": True,
                "StoppingCondition": {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 60},
            },
            NOT_BOTH + "EnableManagedSpotTraining",
        ),
        ([A], {"InstanceCount": 0}, {}, "at least one instance"),
        ([A], {"InstanceCount": 2147483647}, {}, "less than or equal to 10000"),
        ([A | {"InstanceCount": 10001}], {}, {}, "less than or equal to 10000"),
        ([A] * 6, {"InstanceCount": 1}, {}, "length less than or equal to 5"),
        ([A], {"InstanceCount": 1, "SelectedInstanceType": "ml.t3.medium"}, {}, "read-only"),
    ],
)
def test_instance_preferences_are_validated(
    sagemaker: BaseClient,
    preferences: list[dict[str, Any]],
    resources: dict[str, Any],
    more: dict[str, Any],
    why: str,
) -> None:
    body = with_preferences(fresh("choosy"), *preferences, **resources) | more
    code, text = refused(lambda: sagemaker.create_training_job(**body))
    assert code == "ValidationException" and why in text, text


def test_missing_resources_have_the_texts_of_aws(sagemaker: BaseClient) -> None:
    code, message = refused(sagemaker.describe_training_job, TrainingJobName="never-made")
    assert code == "ValidationException" and "Requested resource not found" in message
    code, message = refused(sagemaker.stop_training_job, TrainingJobName="never-made")
    assert code == "ValidationException" and "Requested resource not found" in message


def test_all_violations_in_one_message(server: Server) -> None:
    sagemaker = server.boto(
        "sagemaker",
        config=botocore.config.Config(parameter_validation=False, retries={"max_attempts": 0}),
    )
    request = jobs.request("-bad-")
    request["StoppingCondition"] = {"MaxRuntimeInSeconds": 0}
    request["AlgorithmSpecification"]["TrainingInputMode"] = "Teleport"
    code, message = refused(sagemaker.create_training_job, **request)
    assert code == "ValidationException"
    assert message.startswith("3 validation errors detected: Value "), message
    assert (
        "Value '-bad-' at 'trainingJobName' failed to satisfy constraint: Member must satisfy"
        " regular expression pattern:" in message
    )
    assert (
        "'stoppingCondition.maxRuntimeInSeconds' failed to satisfy constraint: Member must have"
        " value greater than or equal to 1" in message
    )
    assert "failed to satisfy constraint: Member must satisfy enum value set:" in message


def test_lists_page_and_filter(sagemaker: BaseClient, s3: BaseClient) -> None:
    mark = fresh("page")
    for index in range(5):
        sagemaker.create_training_job(**jobs.request(f"{mark}-{index}"))
    names, token = [], {}
    while True:
        page = sagemaker.list_training_jobs(
            NameContains=mark, MaxResults=2, SortBy="Name", SortOrder="Ascending", **token
        )
        assert len(page["TrainingJobSummaries"]) <= 2
        names += [one["TrainingJobName"] for one in page["TrainingJobSummaries"]]
        if "NextToken" not in page:
            break
        token = {"NextToken": page["NextToken"]}
    assert names == [f"{mark}-{index}" for index in range(5)]
    for name in names:
        jobs.wait_until(sagemaker, name)
    done = sagemaker.list_training_jobs(
        NameContains=mark, StatusEquals="Completed", MaxResults=100
    )["TrainingJobSummaries"]
    assert len(done) == 5


def test_tags(sagemaker: BaseClient, s3: BaseClient) -> None:
    name = fresh("tags")
    arn = sagemaker.create_training_job(
        **jobs.request(name, Tags=[{"Key": "team", "Value": "vision"}])
    )["TrainingJobArn"]
    sagemaker.add_tags(
        ResourceArn=arn,
        Tags=[{"Key": "stage", "Value": "test"}, {"Key": "team", "Value": "speech"}],
    )
    tags = {tag["Key"]: tag["Value"] for tag in sagemaker.list_tags(ResourceArn=arn)["Tags"]}
    assert tags == {"team": "speech", "stage": "test"}
    sagemaker.delete_tags(ResourceArn=arn, TagKeys=["team"])
    assert [tag["Key"] for tag in sagemaker.list_tags(ResourceArn=arn)["Tags"]] == ["stage"]


def test_regions_have_their_own_names(
    server: Server, sagemaker: BaseClient, s3: BaseClient
) -> None:
    name = fresh("region")
    there = boto3.session.Session(
        aws_access_key_id=server.env["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=server.env["AWS_SECRET_ACCESS_KEY"],
        region_name="eu-west-1",
    ).client("sagemaker", endpoint_url=server.env["AWS_ENDPOINT_URL"])
    here_arn = sagemaker.create_training_job(**jobs.request(name))["TrainingJobArn"]
    there_arn = there.create_training_job(**jobs.request(name))["TrainingJobArn"]
    assert ":us-east-1:" in here_arn and ":eu-west-1:" in there_arn
    assert jobs.wait_until(there, name)["TrainingJobStatus"] == "Completed"


def test_the_former_name_of_the_host_image_is_accepted_with_a_notice(
    server: Server, sagemaker: BaseClient
) -> None:
    for image in ("trainyard/host", "trainyard/machine"):
        name = fresh("image-name")
        sagemaker.create_training_job(**jobs.request(name, image=image))
        done = jobs.wait_until(sagemaker, name)
        assert done["TrainingJobStatus"] == "Completed", done.get("FailureReason")
        assert done["AlgorithmSpecification"]["TrainingImage"] == image
    notices = [line for line in server.log_text().splitlines() if "deprecated image name" in line]
    assert len(notices) == 1 and "use=trainyard/host" in notices[0], notices


def test_an_unknown_image_names_the_known_ones(sagemaker: BaseClient) -> None:
    code, message = refused(
        sagemaker.create_training_job, **jobs.request(fresh("image"), image="nobody/knows")
    )
    assert code == "ValidationException" and "trainyard/host" in message
    assert "trainyard/machine" not in message


@pytest.mark.parametrize(
    "uri, words",
    [("s3://nowhere-at-all/x/", "nowhere-at-all"), ("s3://yard/empty-prefix/", "empty-prefix")],
)
def test_an_unreadable_channel_fails_the_job_with_an_explanation(
    sagemaker: BaseClient, s3: BaseClient, uri: str, words: str
) -> None:
    name = fresh("channel")
    sagemaker.create_training_job(
        **jobs.request(name, channels={"train": (uri, "FullyReplicated")})
    )
    done = jobs.wait_until(sagemaker, name)
    assert done["TrainingJobStatus"] == "Failed"
    assert (
        done["FailureReason"].startswith("ClientError:")
        and words in done["FailureReason"]
        and "train" in done["FailureReason"]
    )
