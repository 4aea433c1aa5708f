"""Tests notifications between a real server and real receivers: confirmation, signatures, retries,
mails, commands, events of jobs; receivers that hang; and servers that are killed."""

import json
import os
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from tests import jobs
from tests.calls import fresh, refusal, refused
from tests.notifications import (
    LOOPBACK_CONFIG,
    HttpReceiver,
    MailReceiver,
    fetch,
    is_genuine,
    subscribe,
)
from tests.trainyard_server import Server, wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="containers need root")


@pytest.fixture
def receiver() -> Iterator[HttpReceiver]:
    with HttpReceiver() as made:
        yield made


@pytest.fixture
def machine(tmp_path: pathlib.Path) -> Iterator[Server]:
    server = Server(tmp_path / "data", LOOPBACK_CONFIG).start()
    yield server
    server.clean()


def topic_of(server: Server) -> str:
    arn: str = server.boto("sns").create_topic(Name=fresh("alerts"))["TopicArn"]
    return arn


def test_a_subscription_from_its_confirmation_to_its_end(
    machine: Server, receiver: HttpReceiver
) -> None:
    sns, topic = machine.boto("sns"), topic_of(machine)
    arn = subscribe(machine, topic, receiver, "/a")
    first = receiver.at("/a")[0]
    assert first.headers["x-amz-sns-message-type"] == "SubscriptionConfirmation"
    assert first.headers["x-amz-sns-topic-arn"] == topic
    confirmation = first.json()
    assert is_genuine(machine, confirmation)
    sent = sns.publish(
        TopicArn=topic,
        Subject="Hello",
        Message='körper\n"x"',
        MessageAttributes={"size": {"DataType": "Number", "StringValue": "5"}},
    )
    message = receiver.wait_messages("/a")[0]
    assert message["MessageId"] == sent["MessageId"]
    assert (message["Subject"], message["Message"]) == ("Hello", 'körper\n"x"')
    assert message["MessageAttributes"] == {"size": {"Type": "Number", "Value": "5"}}
    assert is_genuine(machine, message)
    assert not is_genuine(machine, message | {"Message": "forged"})
    assert receiver.at("/a")[-1].headers["x-amz-sns-subscription-arn"] == arn
    # The link in the message ends the subscription; a changed link has no effect.
    link = message["UnsubscribeURL"]
    assert fetch(machine, link[:-1] + ("0" if link[-1] != "0" else "1"))[0] == 404
    assert sns.list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"]
    assert fetch(machine, link)[0] == 200
    assert sns.list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"] == []
    for path in ("", "?Action=Other", "other.pem", "?Action=ConfirmSubscription"):
        assert (
            fetch(machine, confirmation["SigningCertURL"].rsplit("/", 1)[0] + "/" + path)[0] == 404
        )


def test_an_alarm_publishes_to_its_topic(machine: Server, receiver: HttpReceiver) -> None:
    topic = topic_of(machine)
    subscribe(machine, topic, receiver, "/alarm")
    cloudwatch = machine.boto("cloudwatch")
    cloudwatch.put_metric_alarm(**alarm("loss", topic))
    cloudwatch.set_alarm_state(AlarmName="loss", StateValue="ALARM", StateReason="by hand")
    message = receiver.wait_messages("/alarm")[0]
    assert message["Subject"] == 'ALARM: "loss" in us-east-1'
    sent = json.loads(message["Message"])
    assert (sent["AlarmName"], sent["NewStateValue"]) == ("loss", "ALARM")
    assert sent["NewStateReason"] == "by hand"
    assert is_genuine(machine, message)


def test_a_change_of_an_alarm_is_an_event(machine: Server, receiver: HttpReceiver) -> None:
    topic, events, cloudwatch = (
        topic_of(machine),
        machine.boto("events"),
        machine.boto("cloudwatch"),
    )
    subscribe(machine, topic, receiver, "/events")
    pattern = {"source": ["aws.cloudwatch"], "detail": {"state": {"value": ["ALARM"]}}}
    events.put_rule(Name="alarms", EventPattern=json.dumps(pattern))
    events.put_targets(Rule="alarms", Targets=[{"Id": "1", "Arn": topic}])
    cloudwatch.put_metric_alarm(**alarm("loss", topic) | {"ActionsEnabled": False})
    for state in ("OK", "ALARM"):
        cloudwatch.set_alarm_state(AlarmName="loss", StateValue=state, StateReason="by hand")
    event = json.loads(receiver.wait_messages("/events")[0]["Message"])
    assert event["detail-type"] == "CloudWatch Alarm State Change"
    arn = cloudwatch.describe_alarms()["MetricAlarms"][0]["AlarmArn"]
    assert (event["resources"], event["region"]) == ([arn], "us-east-1")
    detail = event["detail"]
    assert (detail["alarmName"], detail["state"]["reason"]) == ("loss", "by hand")
    assert (detail["previousState"]["value"], detail["state"]["value"]) == ("OK", "ALARM")
    metric = detail["configuration"]["metrics"][0]["metricStat"]["metric"]
    assert metric == {"namespace": "jobs", "name": "loss", "dimensions": {}}
    assert len(receiver.wait_messages("/events")) == 1, "OK is not what the rule wants"


def alarm(name: str, action: str) -> dict[str, Any]:
    return {
        "AlarmName": name,
        "Namespace": "jobs",
        "MetricName": "loss",
        "Statistic": "Average",
        "Period": 60,
        "EvaluationPeriods": 1,
        "Threshold": 5.0,
        "ComparisonOperator": "GreaterThanThreshold",
        "AlarmActions": [action],
    }


def test_an_alarm_stops_a_training_job(machine: Server) -> None:
    machine.boto("s3").create_bucket(Bucket="yard")
    sagemaker, cloudwatch = machine.boto("sagemaker"), machine.boto("cloudwatch")
    made = sagemaker.create_training_job(**jobs.request("diverges", "sleep 3600"))
    jobs.wait_until(sagemaker, "diverges", ["Training"])
    cloudwatch.put_metric_alarm(**alarm("loss", made["TrainingJobArn"]))
    cloudwatch.set_alarm_state(AlarmName="loss", StateValue="ALARM", StateReason="by hand")
    assert jobs.wait_until(sagemaker, "diverges")["TrainingJobStatus"] == "Stopped"


def test_an_alarm_does_only_what_its_creator_may_do(tmp_path: pathlib.Path) -> None:
    key = ("AKIAANN0000000000001", "ann-secret-00000000000000000000000000001")
    server = Server(
        tmp_path / "data",
        f"""
[[access_key]]
id = "AKIAOWNER00000000001"
secret = "owner-secret-0000000000000000000000000001"
user = "owner"
[[access_key]]
id = "{key[0]}"
secret = "{key[1]}"
user = "ann"
[[user]]
name = "ann"
policy = '''{{"Version": "2012-10-17", "Statement":
  {{"Effect": "Allow", "Action": "cloudwatch:*", "Resource": "*"}}}}'''
""",
    ).start()
    try:
        topic = topic_of(server)
        job = f"arn:aws:sagemaker:us-east-1:{topic.split(':')[4]}:training-job/others"
        anns = server.boto("cloudwatch", aws_access_key_id=key[0], aws_secret_access_key=key[1])
        for action, needed in ((topic, "sns:Publish"), (job, "sagemaker:StopTrainingJob")):
            code, message = refused(anns.put_metric_alarm, **alarm("mine", action))
            assert code == "AccessDenied" and needed in message, (code, message)
        assert server.boto("cloudwatch").describe_alarms()["MetricAlarms"] == []
    finally:
        server.clean()


def test_private_addresses_need_the_configuration(
    tmp_path: pathlib.Path, receiver: HttpReceiver
) -> None:
    """By default nothing is sent to this machine, or to the target of a redirect."""
    server = Server(tmp_path / "data").start()
    try:
        topic = topic_of(server)
        server.boto("sns").subscribe(
            TopicArn=topic, Protocol="http", Endpoint=receiver.url + "/closed"
        )
        wait_for(lambda: "allow_networks" in server.log_text(), "the refusal in the log")
        assert receiver.received == []
    finally:
        server.clean()


def test_a_redirect_is_not_followed(machine: Server, receiver: HttpReceiver) -> None:
    topic = topic_of(machine)
    subscribe(machine, topic, receiver, "/from")
    receiver.redirects["/from"] = receiver.url + "/to"
    machine.boto("sns").publish(TopicArn=topic, Message="x")
    wait_for(lambda: "HTTP status 302" in machine.log_text(), "the answer in the log")
    assert receiver.at("/to") == []


def test_endpoints_that_hang_or_fail_delay_no_other(
    machine: Server, receiver: HttpReceiver
) -> None:
    sns, topic = machine.boto("sns"), topic_of(machine)
    for number in range(20):
        subscribe(machine, topic, receiver, f"/bad{number}", host=f"127.0.1.{number % 6}")
    receiver.hanging |= {f"/bad{number}" for number in range(15)}
    for number in range(15, 20):
        receiver.answers[f"/bad{number}"] = [503] * 1000
    other = topic_of(machine)
    subscribe(machine, other, receiver, "/good")
    for number in range(10):
        sns.publish(TopicArn=topic, Message=f"bad {number}")
    wait_for(lambda: receiver.held > 0, "an endpoint to hang")
    for number in range(50):
        sns.publish(TopicArn=other, Message=f"good {number}")
    messages = receiver.wait_messages("/good", 50)
    assert {each["Message"] for each in messages} == {f"good {n}" for n in range(50)}


def test_a_failed_delivery_is_repeated(machine: Server, receiver: HttpReceiver) -> None:
    sns, topic = machine.boto("sns"), topic_of(machine)
    subscribe(machine, topic, receiver, "/fails")
    receiver.answers["/fails"] = [503, 500]
    sns.publish(TopicArn=topic, Message="again")
    messages = receiver.wait_messages("/fails", 3)
    assert [each["Message"] for each in messages] == ["again"] * 3
    assert len({each["MessageId"] for each in messages}) == 1
    # A permanent error ends the attempts.
    receiver.answers["/fails"] = [404]
    sns.publish(TopicArn=topic, Message="refused")
    receiver.wait_messages("/fails", 4)
    sns.publish(TopicArn=topic, Message="next")
    messages = receiver.wait_messages("/fails", 5)
    assert [each["Message"] for each in messages[3:]] == ["refused", "next"]


def test_no_message_is_lost_when_the_server_is_killed(
    machine: Server, receiver: HttpReceiver
) -> None:
    topic = topic_of(machine)
    subscribe(machine, topic, receiver, "/kept")
    published = []
    for kill in range(4):
        sns = machine.boto("sns")
        # The endpoint fails, so that messages are pending when the server dies.
        receiver.answers["/kept"] = [503] * 2
        for number in range(5):
            text = f"{kill}-{number}"
            sns.publish(TopicArn=topic, Message=text)
            published.append(text)
        machine.kill()
        receiver.answers["/kept"] = []
        machine.start()
    wait_for(
        lambda: {each["Message"] for each in receiver.wait_messages("/kept")} >= set(published),
        "all messages",
    )


def test_mails(tmp_path: pathlib.Path) -> None:
    with MailReceiver() as mails:
        config = f"""
[notifications.mail]
url = "smtp://127.0.0.1:{mails.port}"
from = "yard@trainyard.example"
require_tls = false
"""
        server = Server(tmp_path / "data", config).start()
        try:
            sns, topic = server.boto("sns"), topic_of(server)
            sns.subscribe(TopicArn=topic, Protocol="email", Endpoint="ann@trainyard.example")
            link = mails.wait("ann@trainyard.example")[0].get_content().split()
            (url,) = [word for word in link if "ConfirmSubscription" in word]
            assert fetch(server, url)[0] == 200
            sns.publish(TopicArn=topic, Subject="Job ended", Message="größer\n.\nend")
            mail = mails.wait("ann@trainyard.example", 2)[1]
            assert mail["Subject"] == "Job ended"
            assert mail["From"] == "yard@trainyard.example"
            assert mail.get_content().replace("\r\n", "\n").startswith("größer\n.\nend\n\n--\n")
            mails.rejected.add("ann@trainyard.example")
            sns.publish(TopicArn=topic, Message="x")
            wait_for(lambda: "550" in server.log_text(), "the refusal in the log")
        finally:
            server.clean()


def test_a_command_of_the_configuration_gets_notifications(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "keep"
    script.write_text(f"#!/bin/sh\ncat >> {tmp_path}/kept\n")
    script.chmod(0o755)
    config = f"""
[notifications.commands.keep]
command = ["{script}"]
topics = ["alerts"]
"""
    server = Server(tmp_path / "data", config).start()
    try:
        sns = server.boto("sns")
        alerts = sns.create_topic(Name="alerts")["TopicArn"]
        other = sns.create_topic(Name="other")["TopicArn"]
        sns.subscribe(
            TopicArn=alerts,
            Protocol="command",
            Endpoint="keep",
            Attributes={"RawMessageDelivery": "true"},
        )
        for topic, name in ((other, "keep"), (alerts, "unknown"), (alerts, "/bin/sh")):
            refusal(
                sns.subscribe,
                "AuthorizationError",
                TopicArn=topic,
                Protocol="command",
                Endpoint=name,
            )
        sns.publish(TopicArn=alerts, Message="$(touch owned)")
        kept = tmp_path / "kept"
        wait_for(lambda: kept.exists() and kept.read_text() == "$(touch owned)", "the message")
    finally:
        server.clean()


PATTERN = json.dumps({"source": ["aws.sagemaker"], "detail": {"TrainingJobStatus": ["Completed"]}})


def test_events_of_jobs(machine: Server, receiver: HttpReceiver) -> None:
    events, topic = machine.boto("events"), topic_of(machine)
    subscribe(machine, topic, receiver, "/events", RawMessageDelivery="true")
    events.put_rule(Name="ended", EventPattern=PATTERN)
    group = "arn:aws:logs:us-east-1:" + topic.split(":")[4] + ":log-group:/aws/events/jobs"
    events.put_targets(Rule="ended", Targets=[{"Id": "topic", "Arn": topic}])
    events.put_rule(Name="all", EventPattern='{"source": ["aws.sagemaker"]}')
    events.put_targets(Rule="all", Targets=[{"Id": "log", "Arn": group}])
    machine.boto("s3").create_bucket(Bucket="yard")
    sagemaker = machine.boto("sagemaker")
    sagemaker.create_training_job(**jobs.request("train"))
    event = receiver.wait("/events", 2)[1].json()
    assert event["detail-type"] == "SageMaker Training Job State Change"
    assert event["detail"]["TrainingJobName"] == "train"
    assert event["detail"]["TrainingJobStatus"] == "Completed"
    assert event["resources"] == [event["detail"]["TrainingJobArn"]]
    assert "Environment" not in event["detail"]
    logs = machine.boto("logs")

    def phases() -> list[str]:
        found = logs.filter_log_events(logGroupName="/aws/events/jobs")["events"]
        return [json.loads(each["message"])["detail"]["SecondaryStatus"] for each in found]

    wait_for(
        lambda: any(g for g in logs.describe_log_groups()["logGroups"] if "events" in g["arn"]),
        "the log group",
    )
    wait_for(lambda: "Completed" in phases(), "the events in the log")
    described = sagemaker.describe_training_job(TrainingJobName="train")
    passed = [each["Status"] for each in described["SecondaryStatusTransitions"]]
    assert sorted(set(phases())) == sorted(set(passed))


def test_no_change_of_a_job_is_lost_when_the_server_is_killed(
    machine: Server, receiver: HttpReceiver
) -> None:
    events, topic = machine.boto("events"), topic_of(machine)
    subscribe(machine, topic, receiver, "/events", RawMessageDelivery="true")
    events.put_rule(Name="ended", EventPattern=PATTERN)
    events.put_targets(Rule="ended", Targets=[{"Id": "topic", "Arn": topic}])
    machine.boto("s3").create_bucket(Bucket="yard")
    names = [f"job-{number}" for number in range(4)]
    for name in names:
        machine.boto("sagemaker").create_training_job(**jobs.request(name))
        machine.kill()
        machine.start()
    for name in names:
        done = jobs.wait_until(machine.boto("sagemaker"), name)
        assert done["TrainingJobStatus"] == "Completed"

    def announced() -> set[str]:
        return {each.json()["detail"]["TrainingJobName"] for each in receiver.at("/events")[1:]}

    wait_for(lambda: announced() >= set(names), "an event of each job")
