"""Tests the original form of a campaign: an array file in S3, and a Batch array job whose children
read their lines. Each child starts a SageMaker training job in its line's region and waits for it,
with the plain AWS CLI."""

import os
from collections.abc import Iterator

import pytest

from tests import jobs, trainyard_server
from tests.trainyard_server import Server, wait_for

KEY = ("AKIAREMOTEREGION00002", "remote-secret-of-the-other-server-000002")
REGIONS = ["us-east-1", "us-west-2", "eu-west-1", "eu-central-1"]

# As in the post, with additions: LINE is derived from the index,
# and the CLI creates the job instead of the SDK's script.
WRAPPER = r"""
set -e
aws s3 cp --only-show-errors $S3_ARRAY_FILE sage_array.txt
if [[ -z "${AWS_BATCH_JOB_ARRAY_INDEX}" ]]; then
   exit 1
fi
LINE=$((AWS_BATCH_JOB_ARRAY_INDEX + 1))
SAGE_SYSTEM=$(sed -n ${LINE}p sage_array.txt)
while IFS=, read -r f1 f2 f3; do
   export AWS_DEFAULT_REGION=${f1}
   export S3_LOCATION=${f2}
   export LEARNING_RATE=${f3}
done <<< $SAGE_SYSTEM
unset AWS_REGION
NAME=written-$AWS_BATCH_JOB_ARRAY_INDEX
aws sagemaker create-training-job --training-job-name $NAME --role-arn arn:aws:iam::123456789012:role/sagemaker-sdk \
    --algorithm-specification "TrainingImage=trainyard/host,TrainingInputMode=File,ContainerEntrypoint=/bin/sh,-c,'cat /opt/ml/input/data/train/*; cat /opt/ml/input/config/hyperparameters.json'" \
    --input-data-config "ChannelName=train,DataSource={S3DataSource={S3DataType=S3Prefix,S3Uri=$S3_LOCATION,S3DataDistributionType=FullyReplicated}}" \
    --hyper-parameters lr=$LEARNING_RATE --output-data-config S3OutputPath=${S3_LOCATION}models \
    --resource-config InstanceType=ml.t3.medium,InstanceCount=1,VolumeSizeInGB=1 --stopping-condition MaxRuntimeInSeconds=300
for i in $(seq 120); do
   STATUS=$(aws sagemaker describe-training-job --training-job-name $NAME --query TrainingJobStatus --output text)
   [ $STATUS = InProgress ] || break
   sleep 1
done
echo $NAME in $AWS_DEFAULT_REGION is $STATUS
[ $STATUS = Completed ]
"""


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    place = tmp_path_factory.mktemp("written")
    config = f"""
account_id = "123456789012"
region = "eu-west-1"
roles = "open"
[network]
pool = "10.216.0.0/16"
[[access_key]]
id = "AKIAREMOTEOWNER000002"
secret = "remote-secret-of-the-owner"
[[access_key]]
id = "{KEY[0]}"
secret = "{KEY[1]}"
user = "home"
[[user]]
name = "home"
policies = ["AdministratorAccess"]
[[peer]]  # names the principal of its requests: a child of the array, whose role is not defined
access_key_id = "{KEY[0]}"
"""
    running = trainyard_server.Server(place / "remote", config).start()
    yield running
    running.clean()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, remote: Server) -> Iterator[Server]:
    """Starts a server with three regions of its own and one that is another server. Its jobs can
    use the current AWS CLI."""
    place = tmp_path_factory.mktemp("written")
    config = f"""
account_id = "123456789012"
roles = "open"  # the Batch children start training jobs, in another server's region too
[network]
pool = "10.215.0.0/16"
[[machine]]
name = "yard"
cpus = 32.0  # children wait for the jobs that they start: both must fit
memory_gib = 128.0
[images."batch-orchestration"]
runtime = "machine"
python = "{os.path.join(trainyard_server.ROOT, "build", "venv")}"
[regions.us-west-2]
[regions.eu-central-1]
[regions.eu-west-1]
endpoint = "{remote.env["AWS_ENDPOINT_URL"]}"
access_key_id = "{KEY[0]}"
secret_access_key = "{KEY[1]}"
"""
    running = trainyard_server.Server(place / "home", config).start()
    yield running
    running.clean()


def test_an_array_job_starts_and_watches_a_training_job_per_region(
    home: Server, remote: Server
) -> None:
    lines = []
    for index, region in enumerate(REGIONS):
        s3 = home.boto("s3", region_name=region)
        s3.create_bucket(Bucket=f"imagenet-{region}")
        s3.put_object(
            Bucket=f"imagenet-{region}", Key="tf/records", Body=f"records of {region}\n".encode()
        )
        lines.append(f"{region},s3://imagenet-{region}/tf/,0.{index + 1}")
    home.boto("s3").put_object(
        Bucket="imagenet-us-east-1", Key="sage_array.txt", Body="\n".join(lines).encode() + b"\n"
    )

    batch = home.boto("batch")
    environment = batch.create_compute_environment(
        computeEnvironmentName="defaults",
        type="MANAGED",
        computeResources={
            "type": "EC2",
            "minvCpus": 0,
            "maxvCpus": 4,
            "instanceTypes": ["optimal"],
            "subnets": [],
            "instanceRole": "r",
        },
    )["computeEnvironmentArn"]
    batch.create_job_queue(
        jobQueueName="grid",
        priority=1,
        computeEnvironmentOrder=[{"order": 1, "computeEnvironment": environment}],
    )
    batch.register_job_definition(
        jobDefinitionName="sagemaker-python-sdk-jobdef",
        type="container",
        containerProperties={
            "image": "batch-orchestration",
            "command": ["/bin/bash", "-c", WRAPPER],
            "jobRoleArn": "arn:aws:iam::123456789012:role/ecsTaskExecutionRole",
            "environment": [
                {"name": "S3_ARRAY_FILE", "value": "s3://imagenet-us-east-1/sage_array.txt"}
            ],
            "volumes": [],
            "mountPoints": [],
            "ulimits": [],
            "resourceRequirements": [
                {"type": "VCPU", "value": "0.25"},
                {"type": "MEMORY", "value": "256"},
            ],
        },
    )
    job = batch.submit_job(
        jobName="global-grid",
        jobQueue="grid",
        jobDefinition="sagemaker-python-sdk-jobdef",
        arrayProperties={"size": len(REGIONS)},
    )["jobId"]
    seen = {}

    def over() -> bool:
        seen.update(batch.describe_jobs(jobs=[job])["jobs"][0])
        return seen["status"] in ("SUCCEEDED", "FAILED")

    wait_for(over, "the array to end")
    children = batch.describe_jobs(jobs=[f"{job}:{index}" for index in range(len(REGIONS))])["jobs"]
    logs = home.boto("logs")
    printed = {
        child["arrayProperties"]["index"]: [
            event["message"]
            for event in logs.get_log_events(
                logGroupName="/aws/batch/job",
                logStreamName=child["container"]["logStreamName"],
                startFromHead=True,
            )["events"]
        ]
        for child in children
    }
    assert seen["status"] == "SUCCEEDED", (seen.get("statusReason"), printed)
    for index, region in enumerate(REGIONS):
        assert f"written-{index} in {region} is Completed" in printed[index], printed
        lines = jobs.log_lines(home.boto("logs", region_name=region), f"written-{index}")
        assert f"records of {region}" in lines and f'{{"lr":"0.{index + 1}"}}' in "".join(
            lines
        ).replace(" ", ""), lines
    # Only the other server has the third job.
    assert [
        one["TrainingJobName"]
        for one in remote.boto("sagemaker").list_training_jobs()["TrainingJobSummaries"]
    ] == ["written-2"]
