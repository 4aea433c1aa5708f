"""Lists attacks of a job with its own temporary keys, and the permitted uses of these keys.

`attempt` is a Python expression over signer.py's caller `my`, which returns (status, text); `more`:
operation and resource of the record in the audit log."""

from tests.hostile.table import AUDIT, Attack

SCRIPT = r"""
import json, os
import signer
my = signer.caller_of_this_job()
name, account, group = os.environ["TRAINING_JOB_NAME"], os.environ["ACCOUNT"], "/aws/sagemaker/TrainingJobs"
JOB = {"TrainingJobName": "spawned", "RoleArn": f"arn:aws:iam::{account}:role/admin",
       "AlgorithmSpecification": {"TrainingImage": "trainyard/host", "TrainingInputMode": "File", "ContainerEntrypoint": ["true"]},
       "OutputDataConfig": {"S3OutputPath": "s3://yard/x"}, "ResourceConfig": {"InstanceType": "ml.t3.medium", "InstanceCount": 1, "VolumeSizeInGB": 1},
       "StoppingCondition": {"MaxRuntimeInSeconds": 60}}
for attempt, expression in json.load(open("/opt/ml/input/data/code/calls.json")):
    status, text = eval(expression)
    print("TRIED", attempt, signer.Caller.last_request_id, status, signer.code_of(text), flush=True)
print("KEYS", json.dumps(my.keys), flush=True)
"""

OWN = (
    ("own-channel", "my.call('s3', 'GET', '/yard/data/part-0')"),
    ("own-list", "my.call('s3', 'GET', '/yard', 'list-type=2&prefix=data%2F')"),
    ("own-output", "my.call('s3', 'PUT', f'/yard/models/{name}/output/extra', body=b'extra')"),
    ("own-describe", "my.target('sagemaker', 'DescribeTrainingJob', TrainingJobName=name)"),
    (
        "own-stream",
        "my.target('logs', 'CreateLogStream', logGroupName=group, logStreamName=f'{name}/mine')",
    ),
    ("own-identity", "my.form('sts', '2011-06-15', Action='GetCallerIdentity')"),
)


def row(
    name: str,
    tried: str,
    call: str,
    event: str,
    resource: str = "",
    refused: str = r"^40[03] AccessDenied",
) -> Attack:
    return Attack(name, tried, refused, AUDIT, call, (event, resource))


ATTACKS = (
    row(
        "foreign-get",
        "read an object outside its channels",
        "my.call('s3', 'GET', '/yard/secret/object')",
        "GetObject",
        "yard/secret/object",
    ),
    row(
        "foreign-head",
        "request an object outside its channels",
        "my.call('s3', 'HEAD', '/yard/secret/object')",
        "HeadObject",
        "yard/secret/object",
        refused="^403 ",
    ),
    row(
        "foreign-put",
        "write into its channel",
        "my.call('s3', 'PUT', '/yard/data/part-0', body=b'changed')",
        "PutObject",
        "yard/data/part-0",
    ),
    row(
        "foreign-delete",
        "delete an object",
        "my.call('s3', 'DELETE', '/yard/secret/object')",
        "DeleteObject",
        "yard/secret/object",
    ),
    row(
        "foreign-deletes",
        "delete objects in one request",
        "my.call('s3', 'POST', '/yard', 'delete=',"
        " body=b'<Delete><Object><Key>secret/object</Key></Object></Delete>')",
        "DeleteObjects",
        "yard/secret/object",
    ),
    row(
        "foreign-copy",
        "copy an object to its output",
        "my.call('s3', 'PUT', f'/yard/models/{name}/output/copy', headers={'x-amz-copy-source':"
        " '/yard/secret/object'})",
        "CopyObject",
        "yard/secret/object",
    ),
    row(
        "foreign-upload",
        "begin an upload outside its output",
        "my.call('s3', 'POST', '/yard/secret/new', 'uploads=')",
        "CreateMultipartUpload",
        "yard/secret/new",
    ),
    row(
        "foreign-list",
        "list the bucket",
        "my.call('s3', 'GET', '/yard', 'list-type=2')",
        "ListObjectsV2",
        "yard",
    ),
    row(
        "foreign-output",
        "read another job's model",
        "my.call('s3', 'GET', '/yard/models/victim/output/model.tar.gz')",
        "GetObject",
        "models/victim",
    ),
    row(
        "output-of-a-longer-name",
        "write to the output of a job whose name begins as its own",
        "my.call('s3', 'PUT', f'/yard/models/{name}2/output/x', body=b'x')",
        "PutObject",
        "2/output/x",
    ),
    row("buckets", "list the buckets", "my.call('s3', 'GET', '/')", "ListBuckets"),
    row(
        "bucket-create",
        "make a bucket",
        "my.call('s3', 'PUT', '/mine-now')",
        "CreateBucket",
        "mine-now",
    ),
    row(
        "bucket-delete",
        "delete the bucket",
        "my.call('s3', 'DELETE', '/yard')",
        "DeleteBucket",
        "yard",
    ),
    row(
        "create-job",
        "create a job under another role",
        "my.target('sagemaker', 'CreateTrainingJob', **JOB)",
        "CreateTrainingJob",
        "spawned",
    ),
    row(
        "describe-victim",
        "read another job's hyperparameters",
        "my.target('sagemaker', 'DescribeTrainingJob', TrainingJobName='victim')",
        "DescribeTrainingJob",
        "victim",
    ),
    row(
        "describe-nobody",
        "learn whether a job exists",
        "my.target('sagemaker', 'DescribeTrainingJob', TrainingJobName='nobody')",
        "DescribeTrainingJob",
        "nobody",
    ),
    row(
        "list-jobs",
        "list the jobs",
        "my.target('sagemaker', 'ListTrainingJobs')",
        "ListTrainingJobs",
    ),
    row(
        "stop-victim",
        "stop another job",
        "my.target('sagemaker', 'StopTrainingJob', TrainingJobName='victim')",
        "StopTrainingJob",
        "victim",
    ),
    row(
        "stop-itself",
        "stop itself, as a user could",
        "my.target('sagemaker', 'StopTrainingJob', TrainingJobName=name)",
        "StopTrainingJob",
    ),
    row(
        "tag-itself",
        "give itself the tags that policies look at",
        "my.target('sagemaker', 'AddTags',"
        " ResourceArn=f'arn:aws:sagemaker:us-east-1:{account}:training-job/{name}', Tags=[{'Key':"
        " 'team', 'Value': 'other'}])",
        "AddTags",
    ),
    row(
        "interrupt-victim",
        "interrupt another job",
        "my.target('trainyard', 'InterruptTrainingJob', TrainingJobName='victim')",
        "InterruptTrainingJob",
        "victim",
    ),
    row(
        "kill-victim",
        "end another job at once",
        "my.target('trainyard', 'KillJob', JobName='victim')",
        "KillJob",
        "victim",
    ),
    row(
        "explain-victim",
        "learn why another job waits, and behind which jobs",
        "my.target('trainyard', 'ExplainJob', JobName='victim')",
        "ExplainJob",
        "victim",
    ),
    row(
        "time-of-victim",
        "learn when another job ran",
        "my.target('trainyard', 'DescribeJobTime', JobName='victim')",
        "DescribeJobTime",
        "victim",
    ),
    row(
        "timeline-of-victim",
        "read when another job ran, and what its ranks traced",
        "my.target('trainyard', 'GetJobTimeline', JobName='victim')",
        "GetJobTimeline",
        "victim",
    ),
    row(
        "times",
        "read how everybody uses time",
        "my.target('trainyard', 'GetTimeReport', GroupBy='user')",
        "GetTimeReport",
    ),
    row(
        "replay",
        "learn what others submitted and how long it ran, by a replay",
        "my.target('trainyard', 'ReplayJobs', Variants=[])",
        "ReplayJobs",
    ),
    row(
        "campaign",
        "start a campaign",
        "my.target('trainyard', 'CreateCampaign', Definition='{}')",
        "CreateCampaign",
    ),
    row(
        "catalogue",
        "query the catalogue",
        "my.target('trainyard', 'QueryCatalogue', Statement='SELECT 1')",
        "QueryCatalogue",
    ),
    row(
        "catalogue-change",
        "change the catalogue",
        "my.target('trainyard', 'ChangeCatalogue', Statement='DROP TABLE x')",
        "ChangeCatalogue",
    ),
    row(
        "server",
        "read the server's state and errors",
        "my.target('trainyard', 'DescribeServer')",
        "DescribeServer",
    ),
    row(
        "machines",
        "see which jobs are on which machines",
        "my.target('trainyard', 'ListMachines')",
        "ListMachines",
    ),
    row(
        "preview",
        "learn what holds the machines, by the preview of a job",
        "my.target('trainyard', 'PreviewJob', TrainingJobRequest='{}')",
        "PreviewJob",
    ),
    row(
        "templates",
        "read the templates of the team",
        "my.target('trainyard', 'ListJobTemplates')",
        "ListJobTemplates",
    ),
    row(
        "template-forged",
        "replace a template, so that others start the command in it",
        "my.target('trainyard', 'PutJobTemplate', TemplateName='team', TrainingJobRequest='{}')",
        "PutJobTemplate",
        "job-template/team",
    ),
    row(
        "template-deleted",
        "delete a template of the team",
        "my.target('trainyard', 'DeleteJobTemplate', TemplateName='team')",
        "DeleteJobTemplate",
        "job-template/team",
    ),
    row(
        "console",
        "open a session of the console",
        "my.target('trainyard', 'CreateConsoleSession')",
        "CreateConsoleSession",
    ),
    row(
        "costs",
        "read everybody's costs",
        "my.target('trainyard', 'GetCostReport', GroupBy='user')",
        "GetCostReport",
    ),
    row(
        "write-log",
        "write into another job's log",
        "my.target('logs', 'PutLogEvents', logGroupName=group, logStreamName='victim/algo-1-1',"
        " logEvents=[{'timestamp': 1, 'message': 'forged'}])",
        "PutLogEvents",
        "victim/algo-1-1",
    ),
    row(
        "read-log",
        "read another job's log",
        "my.target('logs', 'GetLogEvents', logGroupName=group, logStreamName='victim/algo-1-1')",
        "GetLogEvents",
        "victim/algo-1-1",
    ),
    row(
        "read-logs",
        "read all jobs' logs",
        "my.target('logs', 'FilterLogEvents', logGroupName=group)",
        "FilterLogEvents",
    ),
    *(
        row(
            f"assume-{role}",
            f"become the role {role}",
            "my.form('sts', '2011-06-15', Action='AssumeRole', RoleSessionName='attack',"
            f" RoleArn=f'arn:aws:iam::{{account}}:role/{role}')",
            "AssumeRole",
            f"role/{role}",
        )
        for role in ("admin", "trainer", "TrainyardOwner")
    ),
    row(
        "create-user",
        "make a user",
        "my.form('iam', '2010-05-08', Action='CreateUser', UserName='mallory')",
        "CreateUser",
        "user/mallory",
    ),
    row(
        "create-key",
        "make a lasting key",
        "my.form('iam', '2010-05-08', Action='CreateAccessKey')",
        "CreateAccessKey",
    ),
    row(
        "own-policy",
        "give its role a policy",
        "my.form('iam', '2010-05-08', Action='PutRolePolicy', RoleName='trainer', PolicyName='all',"
        " PolicyDocument='{}')",
        "PutRolePolicy",
        "role/trainer",
    ),
    row(
        "events",
        "read the audit log",
        "my.call('cloudtrail', headers={'X-Amz-Target':"
        " 'com.amazonaws.cloudtrail.v20131101.CloudTrail_20131101.LookupEvents', 'Content-Type':"
        " 'application/x-amz-json-1.1'}, body=b'{}')",
        "LookupEvents",
    ),
    row(
        "delete-file-system",
        "delete a file system",
        "my.call('fsx', headers={'X-Amz-Target':"
        " 'AWSSimbaAPIService_v20180301.DeleteFileSystem', 'Content-Type':"
        " 'application/x-amz-json-1.1'}, body=b'{\"FileSystemId\": \"fs-0123456789abcdef0\"}')",
        "DeleteFileSystem",
    ),
    row(
        "publish",
        "publish to a topic",
        "my.form('sns', '2010-03-31', Action='Publish', Message='attack',"
        " TopicArn=f'arn:aws:sns:us-east-1:{account}:alerts')",
        "Publish",
        refused=r"^403 AuthorizationError",
    ),
    row(
        "put-rule",
        "see the events of all jobs",
        "my.call('events', headers={'X-Amz-Target': 'AWSEvents.PutRule', 'Content-Type':"
        " 'application/x-amz-json-1.1'},"
        " body=json.dumps({'Name': 'r', 'EventPattern': '{\"source\": [\"x\"]}'}).encode())",
        "PutRule",
    ),
    row(
        "list-events",
        "follow the events of all jobs",
        "my.target('trainyard', 'ListEvents')",
        "ListEvents",
    ),
    row(
        "raise-quota",
        "raise a quota",
        "my.call('servicequotas', headers={'X-Amz-Target':"
        " 'ServiceQuotasV20190624.RequestServiceQuotaIncrease', 'Content-Type':"
        ' \'application/x-amz-json-1.1\'}, body=b\'{"ServiceCode": "sagemaker", "QuotaCode":'
        ' "L-1", "DesiredValue": 1}\')',
        "RequestServiceQuotaIncrease",
    ),
    row(
        "shell",
        "open a shell in another job",
        "my.call('trainyard', 'GET', '/trainyard/shell', 'host=0&job=victim')",
        "Shell",
        "training-job/victim",
    ),
    row(
        "batch",
        "describe Batch jobs",
        "my.call('batch', path='/v1/describejobs', body=b'{\"jobs\":[\"x\"]}',"
        " headers={'Content-Type': 'application/json'})",
        "DescribeJobs",
    ),
    row(
        "batch-definition",
        "register a job definition",
        "my.call('batch', path='/v1/registerjobdefinition',"
        ' body=b\'{"jobDefinitionName":"x","type":"container"}\', headers={\'Content-Type\':'
        " 'application/json'})",
        "RegisterJobDefinition",
        "job-definition/x",
    ),
)
