"""A job's own keys, used from inside the job: they reach what the job contract needs and nothing else."""

import json

import pytest

import jobs
from trainyard_server import wait_for

MACHINE = "[[machine]]\nname = 'box'\ncpus = 8.0\nmemory_gib = 32.0\n"  # both jobs fit
# Signs requests by itself (Signature Version 4), since the machine's Python need not have boto3. Each line it prints is
# "NAME STATUS CODE".
SCRIPT = r"""
import datetime, hashlib, hmac, json, os, re, sys, urllib.error, urllib.parse, urllib.request
endpoint = os.environ["AWS_ENDPOINT_URL"]
with urllib.request.urlopen("http://169.254.170.2" + os.environ["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"]) as answer:
    keys = json.load(answer)

def call(service, method="POST", path="/", query="", headers={}, body=b""):
    now = datetime.datetime.utcnow().strftime("%Y%m%dT%H%M%SZ")
    host = urllib.parse.urlsplit(endpoint).netloc
    scope = f"{now[:8]}/us-east-1/{service}/aws4_request"
    hashed = hashlib.sha256(body).hexdigest()
    sent = {"host": host, "x-amz-date": now, "x-amz-security-token": keys["Token"], "x-amz-content-sha256": hashed} | {name.lower(): value for name, value in headers.items()}
    names = ";".join(sorted(sent))
    canonical = "\n".join([method, path, query, *(f"{name}:{sent[name]}" for name in sorted(sent)), "", names, hashed])
    text = "\n".join(["AWS4-HMAC-SHA256", now, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + keys["SecretAccessKey"]).encode()
    for part in (now[:8], "us-east-1", service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    sent["authorization"] = f"AWS4-HMAC-SHA256 Credential={keys['AccessKeyId']}/{scope}, SignedHeaders={names}, Signature={signature}"
    request = urllib.request.Request(endpoint + path + ("?" + query if query else ""), data=body if method in ("POST", "PUT") else None, method=method, headers=sent)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()

def say(name, reply):
    status, text = reply
    code = re.search(r"<Code>(\w+)</Code>", text) or re.search(r'"__type": ?"(\w+)"', text)
    print("TRIED", name, status, code.group(1) if code else "-", flush=True)

def target(service, operation, **members):
    prefix = {"sagemaker": "SageMaker", "logs": "Logs_20140328", "trainyard": "Trainyard"}[service]
    return call(service, headers={"X-Amz-Target": f"{prefix}.{operation}", "Content-Type": "application/x-amz-json-1.1"}, body=json.dumps(members).encode())

def form(service, version, **members):
    body = urllib.parse.urlencode({"Version": version, **members}).encode()
    return call(service, headers={"Content-Type": "application/x-www-form-urlencoded"}, body=body)

name = os.environ["TRAINING_JOB_NAME"]
account = os.environ["ACCOUNT"]
group = "/aws/sagemaker/TrainingJobs"
say("own-channel", call("s3", "GET", "/yard/data/part-0"))
say("own-list", call("s3", "GET", "/yard", "list-type=2&prefix=data%2F"))
say("own-output", call("s3", "PUT", f"/yard/models/{name}/output/extra", body=b"extra"))
say("own-describe", target("sagemaker", "DescribeTrainingJob", TrainingJobName=name))
say("own-stream", target("logs", "CreateLogStream", logGroupName=group, logStreamName=f"{name}/mine"))
say("own-identity", form("sts", "2011-06-15", Action="GetCallerIdentity"))

say("foreign-get", call("s3", "GET", "/yard/secret/object"))
say("foreign-head", call("s3", "HEAD", "/yard/secret/object"))
say("foreign-put", call("s3", "PUT", "/yard/data/part-0", body=b"changed"))
say("foreign-delete", call("s3", "DELETE", "/yard/secret/object"))
say("foreign-deletes", call("s3", "POST", "/yard", "delete=", body=b"<Delete><Object><Key>secret/object</Key></Object></Delete>"))
say("foreign-copy", call("s3", "PUT", f"/yard/models/{name}/output/copy", headers={"x-amz-copy-source": "/yard/secret/object"}))
say("foreign-list", call("s3", "GET", "/yard", "list-type=2"))
say("foreign-output", call("s3", "GET", "/yard/models/victim/output/model.tar.gz"))
say("buckets", call("s3", "GET", "/"))
say("bucket-delete", call("s3", "DELETE", "/yard"))
job = {"TrainingJobName": "spawned", "RoleArn": f"arn:aws:iam::{account}:role/admin", "AlgorithmSpecification": {"TrainingImage": "trainyard/machine", "TrainingInputMode": "File", "ContainerEntrypoint": ["true"]},
       "OutputDataConfig": {"S3OutputPath": "s3://yard/x"}, "ResourceConfig": {"InstanceType": "ml.t3.medium", "InstanceCount": 1, "VolumeSizeInGB": 1}, "StoppingCondition": {"MaxRuntimeInSeconds": 60}}
say("create-job", target("sagemaker", "CreateTrainingJob", **job))
say("describe-victim", target("sagemaker", "DescribeTrainingJob", TrainingJobName="victim"))
say("describe-nobody", target("sagemaker", "DescribeTrainingJob", TrainingJobName="nobody"))
say("list-jobs", target("sagemaker", "ListTrainingJobs"))
say("stop-victim", target("sagemaker", "StopTrainingJob", TrainingJobName="victim"))
say("interrupt-victim", target("trainyard", "InterruptTrainingJob", TrainingJobName="victim"))
say("campaign", target("trainyard", "CreateCampaign", Definition="{}"))
say("catalogue", target("trainyard", "QueryCatalogue", Statement="SELECT 1"))
say("write-log", target("logs", "PutLogEvents", logGroupName=group, logStreamName="victim/algo-1-1", logEvents=[{"timestamp": 1, "message": "forged"}]))
say("read-logs", target("logs", "FilterLogEvents", logGroupName=group))
for role in ("admin", "trainer", "TrainyardOwner"):
    say("assume-" + role, form("sts", "2011-06-15", Action="AssumeRole", RoleSessionName="attack", RoleArn=f"arn:aws:iam::{account}:role/{role}"))
say("shell", call("trainyard", "GET", "/trainyard/shell", "host=0&job=victim"))
say("batch", call("batch", path="/v1/describejobs", body=b'{"jobs":["x"]}', headers={"Content-Type": "application/json"}))
print("KEYS", json.dumps(keys), flush=True)
"""


def tried(server, name, **more):
    """What each request of SCRIPT was answered, and the keys that it had."""
    s3 = server.boto("s3")
    s3.put_object(Bucket="yard", Key="code/attack.py", Body=SCRIPT.encode())
    account = server.boto("sts").get_caller_identity()["Account"]
    server.boto("sagemaker").create_training_job(**jobs.request(
        name, "exec python3 /opt/ml/input/data/code/attack.py", Environment={"ACCOUNT": account},
        channels={"code": ("s3://yard/code/", "FullyReplicated"), "train": ("s3://yard/data/", "FullyReplicated")}, **more))
    done = jobs.wait_until(server.boto("sagemaker"), name)
    lines = jobs.log_lines(server.boto("logs"), name)
    assert done["TrainingJobStatus"] == "Completed", (done.get("FailureReason"), lines[-20:])
    replies = {line.split()[1]: (int(line.split()[2]), line.split()[3]) for line in lines if line.startswith("TRIED ")}
    return replies, json.loads(next(line for line in lines if line.startswith("KEYS ")).removeprefix("KEYS "))


def prepare(server):
    s3 = server.boto("s3")
    s3.create_bucket(Bucket="yard")
    s3.put_object(Bucket="yard", Key="data/part-0", Body=b"data")
    s3.put_object(Bucket="yard", Key="secret/object", Body=b"secret")
    server.boto("sagemaker").create_training_job(**jobs.request("victim", "sleep 1000"))
    jobs.wait_until(server.boto("sagemaker"), "victim", ("Training",))
    return s3


def test_a_jobs_keys_reach_its_own_things_and_nothing_else(start):
    server = start(MACHINE + "[jobs]\nstop_grace_seconds = 1\n")
    s3 = prepare(server)
    replies, keys = tried(server, "attacker")
    own = {name: reply for name, reply in replies.items() if name.startswith("own-")}
    assert len(own) == 6 and all(status == 200 for status, _ in own.values()), own
    refused = {name: reply for name, reply in replies.items() if not name.startswith("own-")}
    assert len(refused) == 25, sorted(refused)
    for name, (status, code) in refused.items():
        assert status in (400, 403) and (code.startswith("AccessDenied") or name == "foreign-head"), (name, status, code)
    assert s3.get_object(Bucket="yard", Key="secret/object")["Body"].read() == b"secret"
    assert s3.get_object(Bucket="yard", Key="data/part-0")["Body"].read() == b"data"
    assert server.boto("sagemaker").describe_training_job(TrainingJobName="victim")["TrainingJobStatus"] == "InProgress"
    assert not any("forged" in line for line in jobs.log_lines(server.boto("logs"), "victim"))

    # The attempt is over, and its keys with it.
    import boto3
    over = boto3.client("sts", endpoint_url=server.env["AWS_ENDPOINT_URL"], region_name="us-east-1", aws_access_key_id=keys["AccessKeyId"],
                        aws_secret_access_key=keys["SecretAccessKey"], aws_session_token=keys["Token"])
    with pytest.raises(over.exceptions.ClientError, match="ExpiredToken"):
        over.get_caller_identity()


def test_open_roles_do_as_before(start):
    server = start('roles = "open"\n' + MACHINE + '[jobs]\nstop_grace_seconds = 1\n')
    prepare(server)
    replies, _ = tried(server, "attacker")
    assert replies["foreign-get"][0] == replies["create-job"][0] == replies["list-jobs"][0] == replies["assume-admin"][0] == 200, replies
    assert replies["assume-TrainyardOwner"][0] == 403
    assert wait_for(lambda: server.boto("sagemaker").list_training_jobs(NameContains="spawned")["TrainingJobSummaries"], "the job of the job")
