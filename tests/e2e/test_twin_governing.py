"""From a GPU metric of the twin to a stopped job, and who is told: all of it through the deployed stack."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from botocore.exceptions import ClientError

from tests.e2e.plane import LOG_GROUP, Plane, keys_of, python, running_plane

pytestmark = pytest.mark.thorough

GPU_TYPE = "ml.g5.12xlarge"
POLICY = {
    "version": 1,
    "pools": [{"name": "gpu", "capacity": {GPU_TYPE: 14}}],
    "idle": {"gpu_below_percent": 1, "for": "15m", "period": "5m", "then": "stop", "warn_first": "10m"},
}
WAITING = ["sh", "-c", "echo begun; while :; do sleep 0.2; done"]
LONG_ENOUGH_SECONDS = 50 * 60


@pytest.fixture(scope="module")
def plane(tmp_path_factory) -> Iterator[Plane]:
    folder = tmp_path_factory.mktemp("governing")
    with running_plane(folder, "--clock", "manual", policy=POLICY) as running:
        running.client("sqs").create_queue(QueueName="told")
        running.client("events").put_rule(Name="told", EventPattern=json.dumps({"source": ["trainmaster"]}))
        arn = f"arn:aws:sqs:{running.twin.ready['region']}:{running.twin.ready['account_id']}:told"
        running.client("events").put_targets(Rule="told", Targets=[{"Id": "1", "Arn": arn}])
        sns = running.client("sns")
        (topic,) = [one["TopicArn"] for one in sns.list_topics()["Topics"] if "MailTopic" in one["TopicArn"]]
        sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
        yield running


def submit(plane: Plane, name: str, *, hosts: int = 1, command: list[str] | None = None) -> None:
    instances = {"InstanceType": GPU_TYPE, "InstanceCount": hosts, "VolumeSizeInGB": 1}
    day = {"MaxRuntimeInSeconds": 86400}
    plane.add(plane.request(name, command or WAITING, ResourceConfig=instances, StoppingCondition=day))


def bodies(plane: Plane) -> list[dict[str, object]]:
    """Mails and events since the last look."""
    sqs = plane.client("sqs")
    url = sqs.get_queue_url(QueueName="told")["QueueUrl"]
    found = []
    while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
        for message in messages:
            found.append(json.loads(message["Body"]))
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return found


def test_a_stalled_job_is_warned_then_stopped_and_one_with_a_busy_host_is_not(plane):
    submit(plane, "stalled")
    submit(plane, "half", hosts=2)
    plane.clock(30)
    plane.control("/gpu", {"training_job": "stalled", "host": None, "percent": 0, "from_minute": 10})
    plane.control("/gpu", {"training_job": "half", "host": "algo-2", "percent": 0, "from_minute": 0})
    plane.clock(LONG_ENOUGH_SECONDS)
    stalled = plane.job("stalled")
    assert (stalled["state"], stalled["reason"]["code"]) == ("stopped", "idle")
    began, ended = datetime.fromisoformat(stalled["started_at"]), datetime.fromisoformat(stalled["ended_at"])
    soonest = timedelta(minutes=10 + 15 + 10)
    assert soonest <= ended - began <= soonest + timedelta(minutes=3)
    assert plane.job("half")["state"] == "running"
    stops = {
        (one["principal"].rpartition("/")[2], *one["params"].values())
        for one in plane.calls("StopTrainingJob")
    }
    assert stops == {("schedule", "stalled")}
    told = bodies(plane)
    mails = [str(one["Message"]) for one in told if "Message" in one]
    assert any("stalled" in mail for mail in mails)
    assert not any("half" in mail for mail in mails)
    details = [str(one["detail"]) for one in told if one.get("source") == "trainmaster"]
    assert any("'idle'" in detail and "stalled" in detail for detail in details)


def test_alarms_live_as_long_as_their_attempt(plane):
    alarms = plane.client("cloudwatch").describe_alarms(AlarmNamePrefix="trainmaster-")["MetricAlarms"]
    assert [(one["AlarmName"], one["StateValue"]) for one in alarms] == [
        ("trainmaster-trainmaster-idle-half", "OK")
    ]


def test_a_wide_job_is_watched_by_parts_and_one_alarm_over_them(plane):
    submit(plane, "wide", hosts=11)
    plane.clock(2 * 60)
    cloudwatch = plane.client("cloudwatch")
    name = "trainmaster-trainmaster-idle-wide"
    (whole,) = cloudwatch.describe_alarms(AlarmNames=[name], AlarmTypes=["CompositeAlarm"])["CompositeAlarms"]
    assert (whole["AlarmRule"], whole["StateValue"]) == (f'ALARM("{name}.1") AND ALARM("{name}.2")', "OK")
    plane.control("/gpu", {"training_job": "wide", "host": None, "percent": 0, "from_minute": None})
    plane.control("/gpu", {"training_job": "wide", "host": "algo-11", "percent": 50, "from_minute": None})
    plane.clock(20 * 60)
    parts = cloudwatch.describe_alarms(AlarmNamePrefix=name)["MetricAlarms"]
    assert [one["StateValue"] for one in parts] == ["ALARM", "OK"], "the eleventh host is busy"
    plane.control("/gpu", {"training_job": "wide", "host": None, "percent": 0, "from_minute": None})
    plane.clock(30 * 60)
    assert (plane.job("wide")["state"], plane.job("wide")["reason"]["code"]) == ("stopped", "idle")
    assert cloudwatch.describe_alarms(AlarmNamePrefix=name)["MetricAlarms"] == []


def test_the_function_of_events_may_read_what_a_training_job_printed(plane):
    submit(plane, "says", command=python("print('a last word')"))
    plane.clock(30)
    plane.await_log("says", "a last word")
    logs = plane.client("logs", keys_of(plane, "on-training-job-event"))
    (stream,) = logs.describe_log_streams(logGroupName=LOG_GROUP, logStreamNamePrefix="says/")["logStreams"]
    read = {"logStreamName": stream["logStreamName"], "startFromHead": True}
    events = logs.get_log_events(logGroupName=LOG_GROUP, **read)["events"]
    assert [one["message"] for one in events] == ["a last word"]
    with pytest.raises(ClientError, match="AccessDenied"):
        logs.get_log_events(logGroupName="/aws/lambda/trainmaster-api", **read)


def test_the_function_of_alarms_may_read_alarms_and_change_none(plane):
    cloudwatch = plane.client("cloudwatch", keys_of(plane, "on-idle-alarm"))
    assert cloudwatch.describe_alarms(AlarmNamePrefix="trainmaster-")["MetricAlarms"]
    with pytest.raises(ClientError, match="AccessDenied"):
        cloudwatch.delete_alarms(AlarmNames=["trainmaster-trainmaster-idle-half"])
    with pytest.raises(ClientError, match="AccessDenied"):
        cloudwatch.put_composite_alarm(AlarmName="x", AlarmRule="TRUE")


def test_schedule_makes_alarms_under_its_own_prefix_alone(plane):
    cloudwatch = plane.client("cloudwatch", keys_of(plane, "schedule"))
    alarm = {
        "Namespace": "n",
        "MetricName": "m",
        "Statistic": "Sum",
        "Period": 60,
        "EvaluationPeriods": 1,
        "Threshold": 1,
        "ComparisonOperator": "LessThanThreshold",
    }
    cloudwatch.put_metric_alarm(AlarmName="trainmaster-trainmaster-idle-x", **alarm)
    cloudwatch.delete_alarms(AlarmNames=["trainmaster-trainmaster-idle-x"])
    for name in ("operator-trainmaster-api-errors", "trainmaster-another-idle-x"):
        with pytest.raises(ClientError, match="AccessDenied"):
            cloudwatch.put_metric_alarm(AlarmName=name, **alarm)
        with pytest.raises(ClientError, match="AccessDenied"):
            cloudwatch.delete_alarms(AlarmNames=[name])


def test_an_alarm_of_the_operator_goes_off_over_what_the_functions_write_into_their_logs(plane):
    """CloudWatch takes no more alarms, so a job runs unwatched; after an hour of it somebody is told."""
    bodies(plane)
    plane.control("/errors", {"operation": "PutMetricAlarm", "error_code": "LimitExceeded", "times": 99})
    submit(plane, "unwatched")
    plane.clock(60)
    assert plane.job("unwatched")["attempts"][0]["unguarded"]["code"] == "alarm-quota"
    plane.clock(70 * 60)
    name = "operator-trainmaster-unguarded-jobs"
    (alarm,) = plane.client("cloudwatch").describe_alarms(AlarmNames=[name])["MetricAlarms"]
    assert alarm["StateValue"] == "ALARM"
    subjects = [one["Subject"] for one in bodies(plane) if "Subject" in one]
    assert f'ALARM: "{name}" in US East (N. Virginia)' in subjects
