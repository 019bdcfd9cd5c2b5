"""Alarms through boto3 on a manual clock: put, evaluated each minute, told on transitions alone."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.integration.local.running_twin import FIXTURE, RunningTwin, eventually, running_twin

MINUTE = timedelta(minutes=1)
BOTH = ["MetricAlarm", "CompositeAlarm"]


class Plane:
    """A twin, its CloudWatch, and a queue that hears what a topic is told."""

    def __init__(self, twin: RunningTwin, name: str) -> None:
        self.twin, self.name = twin, name
        self.cloudwatch = twin.client("cloudwatch")
        self._sqs = twin.client("sqs")
        sns = twin.client("sns")
        self.topic = sns.create_topic(Name=name)["TopicArn"]
        self._queue = self._sqs.create_queue(QueueName=name)["QueueUrl"]
        arn = f"arn:aws:sqs:{twin.ready.region}:{twin.ready.account_id}:{name}"
        sns.subscribe(TopicArn=self.topic, Protocol="sqs", Endpoint=arn)

    def put(self, alarm: str = "", **changes: Any) -> None:
        """One point of one minute at least 10; all its transitions go to the topic."""
        actions = {name: [self.topic] for name in ("AlarmActions", "OKActions", "InsufficientDataActions")}
        settings: dict[str, Any] = {
            "Namespace": "tests",
            "MetricName": self.name,
            "Statistic": "Maximum",
            "Period": 60,
            "EvaluationPeriods": 1,
            "Threshold": 10.0,
            "ComparisonOperator": "GreaterThanOrEqualToThreshold",
        }
        whole = settings | actions | {"AlarmName": alarm or self.name} | changes
        self.cloudwatch.put_metric_alarm(**{key: value for key, value in whole.items() if value is not None})

    def measure(self, *values: float) -> None:
        """One value in each of the next minutes."""
        for value in values:
            self.cloudwatch.put_metric_data(
                Namespace="tests", MetricData=[{"MetricName": self.name, "Value": value}]
            )
            self.twin.advance(60)

    def state(self, alarm: str = "") -> str:
        return str(self.described(alarm)["StateValue"])

    def described(self, alarm: str = "") -> dict[str, Any]:
        answer = self.cloudwatch.describe_alarms(AlarmNames=[alarm or self.name], AlarmTypes=BOTH)
        (found,) = [one for kind in ("MetricAlarms", "CompositeAlarms") for one in answer[kind]]
        return dict(found)

    def told(self) -> list[tuple[str, str, str]]:
        """(alarm, old state, new state) of the messages since the last look."""
        messages = []
        while found := self._sqs.receive_message(QueueUrl=self._queue, MaxNumberOfMessages=10).get(
            "Messages"
        ):
            for one in found:
                self._sqs.delete_message(QueueUrl=self._queue, ReceiptHandle=one["ReceiptHandle"])
                content = json.loads(json.loads(one["Body"])["Message"])
                messages.append((content["AlarmName"], content["OldStateValue"], content["NewStateValue"]))
        return messages


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningTwin]:
    with running_twin(tmp_path_factory.mktemp("twin"), template=FIXTURE, manual=True) as twin:
        yield twin


@pytest.fixture
def plane(twin: RunningTwin, request: pytest.FixtureRequest) -> Plane:
    """Names of its own for each test, on a clock at the beginning of a minute."""
    seconds = datetime.fromisoformat(twin.advance(0))
    twin.advance((60 - seconds.timestamp() % 60) % 60)
    return Plane(twin, request.node.originalname.removeprefix("test_")[:60])


def test_an_alarm_begins_without_data_and_acts_on_transitions_alone(plane: Plane) -> None:
    plane.put()
    assert (plane.state(), plane.told()) == ("INSUFFICIENT_DATA", [])
    plane.measure(3)
    assert (plane.state(), plane.told()) == ("OK", [(plane.name, "INSUFFICIENT_DATA", "OK")])
    plane.measure(4, 5)
    assert plane.told() == []
    plane.measure(10)
    assert plane.told() == [(plane.name, "OK", "ALARM")]
    plane.measure(11)
    assert plane.told() == []
    plane.measure(2)
    assert plane.told() == [(plane.name, "ALARM", "OK")]


def test_its_state_is_as_old_as_the_transition(plane: Plane) -> None:
    plane.put()
    plane.measure(10)
    now = datetime.fromisoformat(plane.twin.advance(0))
    plane.measure(10, 10)
    assert plane.described()["StateUpdatedTimestamp"] == now


def test_an_alarm_that_is_put_again_keeps_its_state(plane: Plane) -> None:
    plane.put()
    plane.measure(10)
    plane.put(Threshold=9.0)
    found = plane.described()
    assert (found["StateValue"], found["Threshold"]) == ("ALARM", 9.0)


def test_actions_that_are_disabled_do_nothing(plane: Plane) -> None:
    plane.put(ActionsEnabled=False)
    plane.measure(10)
    assert (plane.state(), plane.told()) == ("ALARM", [])
    plane.cloudwatch.enable_alarm_actions(AlarmNames=[plane.name])
    plane.measure(3)
    assert plane.told() == [(plane.name, "ALARM", "OK")]
    plane.cloudwatch.disable_alarm_actions(AlarmNames=[plane.name])
    plane.measure(10)
    assert (plane.state(), plane.told()) == ("ALARM", [])


def test_a_state_that_was_set_lasts_until_the_next_evaluation(plane: Plane) -> None:
    plane.put(TreatMissingData="notBreaching")
    plane.twin.advance(60)
    plane.told()
    plane.cloudwatch.set_alarm_state(AlarmName=plane.name, StateValue="ALARM", StateReason="a test")
    assert plane.described()["StateReason"] == "a test"
    plane.twin.advance(0)
    assert plane.told() == [(plane.name, "OK", "ALARM")]
    plane.twin.advance(60)
    assert plane.told() == [(plane.name, "ALARM", "OK")]


def test_periods_slide_with_each_minute(plane: Plane) -> None:
    plane.put(Period=300, EvaluationPeriods=2, Statistic="Minimum")
    plane.measure(*[10] * 5)
    assert plane.state() == "INSUFFICIENT_DATA", "one period is not yet two"
    plane.measure(10)
    assert plane.state() == "ALARM", "the second period has begun five minutes after it"
    plane.measure(0)
    assert plane.state() == "OK"


def test_metric_math_over_silent_hosts(plane: Plane) -> None:
    queries: list[dict[str, Any]] = [
        {
            "Id": f"m{place}",
            "MetricStat": {
                "Metric": {"Namespace": "tests", "MetricName": name},
                "Period": 60,
                "Stat": "Maximum",
            },
            "ReturnData": False,
        }
        for place, name in enumerate((plane.name, "silent"))
    ]
    queries.append({"Id": "all", "Expression": "MIN([FILL(m0, 50), FILL(m1, 50)]) / 4"})
    single: dict[str, Any] = dict.fromkeys(("Namespace", "MetricName", "Statistic", "Period"))
    plane.put(Metrics=queries, Threshold=12.0, **single)
    plane.twin.advance(60)
    assert plane.state() == "ALARM", "50 / 4 is more than 12"
    plane.measure(40)
    assert plane.state() == "OK"
    assert plane.described()["Metrics"] == queries


def test_a_composite_alarm_follows_its_children_and_is_told_once(plane: Plane) -> None:
    name = plane.name
    silent: dict[str, Any] = {"AlarmActions": [], "OKActions": [], "InsufficientDataActions": []}
    plane.put(f"{name}.0", **silent)
    plane.put(f"{name}.1", **silent, Threshold=20.0)
    plane.cloudwatch.put_composite_alarm(
        AlarmName=name,
        AlarmRule=f'ALARM("{name}.0") AND ALARM("{name}.1")',
        AlarmActions=[plane.topic],
        OKActions=[plane.topic],
    )
    assert plane.state() == "INSUFFICIENT_DATA"
    plane.measure(15)
    assert (plane.state(), plane.told()) == ("OK", [(name, "INSUFFICIENT_DATA", "OK")])
    plane.measure(25, 26)
    assert (plane.state(), plane.told()) == ("ALARM", [(name, "OK", "ALARM")])


def test_a_child_of_a_composite_alarm_cannot_be_deleted_before_it(plane: Plane) -> None:
    name = plane.name
    plane.put(f"{name}.0")
    plane.cloudwatch.put_composite_alarm(AlarmName=name, AlarmRule=f"ALARM({name}.0)")
    with pytest.raises(ClientError, match="depend on it"):
        plane.cloudwatch.delete_alarms(AlarmNames=[f"{name}.0"])
    plane.cloudwatch.delete_alarms(AlarmNames=[name, "never-was"])
    plane.cloudwatch.delete_alarms(AlarmNames=[f"{name}.0"])
    assert plane.cloudwatch.describe_alarms(AlarmNamePrefix=name, AlarmTypes=BOTH)["MetricAlarms"] == []


def test_alarms_are_found_by_prefix_type_state_and_page(plane: Plane) -> None:
    name = plane.name
    for place in range(3):
        plane.put(f"{name}.{place}", TreatMissingData="breaching" if place else "notBreaching")
    plane.cloudwatch.put_composite_alarm(AlarmName=f"{name}.c", AlarmRule=f"ALARM({name}.0)")
    plane.twin.advance(60)

    def names(**wanted: Any) -> list[str]:
        pages = plane.cloudwatch.get_paginator("describe_alarms").paginate(AlarmNamePrefix=name, **wanted)
        kinds = ("MetricAlarms", "CompositeAlarms")
        return [one["AlarmName"].rpartition(".")[2] for page in pages for kind in kinds for one in page[kind]]

    assert names() == ["0", "1", "2"], "metric alarms alone, unless asked"
    assert names(AlarmTypes=BOTH, PaginationConfig={"PageSize": 1}) == ["0", "1", "2", "c"]
    assert names(AlarmTypes=["CompositeAlarm"]) == ["c"]
    assert names(StateValue="ALARM") == ["1", "2"]
    assert names(ActionPrefix="arn:aws:sns:us-east-1:999999999999") == []


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        pytest.param({"Statistic": None}, "statistics", id="no statistic"),
        pytest.param({"ExtendedStatistic": "p99", "Statistic": None}, "ExtendedStatistic", id="percentile"),
        pytest.param({"Period": 90}, "whole minutes", id="no whole minutes"),
        pytest.param({"EvaluationPeriods": 1441}, "1 day", id="more than a day"),
        pytest.param({"DatapointsToAlarm": 2}, "EvaluationPeriods", id="more points than are evaluated"),
        pytest.param({"TreatMissingData": "maybe"}, "TreatMissingData", id="treatment"),
        pytest.param({"ComparisonOperator": "LessThanLowerThreshold"}, "ComparisonOperator", id="anomalies"),
        pytest.param({"MetricName": None}, "MetricName", id="no metric"),
        pytest.param({"Metrics": [{"Id": "e", "Expression": "1"}]}, "has no", id="both forms"),
        pytest.param({"AlarmActions": ["arn:aws:automate:us-east-1:ec2:stop"]}, "SNS", id="another action"),
    ],
)
def test_an_alarm_that_the_twin_cannot_evaluate_is_refused(
    plane: Plane, changes: dict[str, Any], says: str
) -> None:
    with pytest.raises(ClientError, match=says) as caught:
        plane.put("refused", **changes)
    assert caught.value.response["Error"]["Code"] == "ValidationError"
    assert plane.cloudwatch.describe_alarms(AlarmNames=["refused"])["MetricAlarms"] == []


def test_composite_alarms_of_unknown_alarms_and_cycles_are_refused(plane: Plane) -> None:
    put = plane.cloudwatch.put_composite_alarm
    with pytest.raises(ClientError, match="do not exist"):
        put(AlarmName="c1", AlarmRule="ALARM(nobody)")
    put(AlarmName="c1", AlarmRule="TRUE")
    put(AlarmName="c2", AlarmRule="ALARM(c1)")
    with pytest.raises(ClientError, match="depend on themselves"):
        put(AlarmName="c1", AlarmRule="OK(c2)")


def test_a_transition_reaches_a_function_that_listens_to_the_topic(plane: Plane) -> None:
    ready = plane.twin.ready
    topic = f"arn:aws:sns:{ready.region}:{ready.account_id}:trainmaster-Topic"
    plane.put(AlarmActions=[topic])
    plane.measure(10)
    assert eventually(lambda: plane.name in plane.twin.log_of("recorder"))
    line = next(one for one in plane.twin.log_of("recorder").splitlines() if plane.name in one)
    record = json.loads(line.removeprefix("EVENT "))["Records"][0]
    assert record["Sns"]["Subject"] == f'ALARM: "{plane.name}" in US East (N. Virginia)'
    assert json.loads(record["Sns"]["Message"])["NewStateValue"] == "ALARM"


def test_an_alarm_with_a_topic_that_is_gone_changes_its_state_all_the_same(plane: Plane) -> None:
    plane.put(AlarmActions=[f"{plane.topic}-gone", plane.topic])
    plane.measure(10)
    assert (plane.state(), plane.told()) == ("ALARM", [(plane.name, "INSUFFICIENT_DATA", "ALARM")])


def test_a_topic_whose_policy_shuts_cloudwatch_out_hears_nothing(plane: Plane) -> None:
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "cloudwatch.amazonaws.com"},
        "Action": "sns:Publish",
        "Resource": plane.topic,
        "Condition": {"ArnLike": {"aws:SourceArn": "arn:aws:cloudwatch:*:*:alarm:operator-*"}},
    }
    plane.twin.client("sns").set_topic_attributes(
        TopicArn=plane.topic,
        AttributeName="Policy",
        AttributeValue=json.dumps({"Version": "2012-10-17", "Statement": [statement]}),
    )
    plane.put()
    plane.put("operator-of-it")
    plane.measure(10)
    assert plane.told() == [("operator-of-it", "INSUFFICIENT_DATA", "ALARM")]


def sums(plane: Plane, metric: str, **dimensions: str) -> float | None:
    """Of a metric in the present minute; None: nothing was measured."""
    now = datetime.fromisoformat(plane.twin.advance(0))
    answer = plane.cloudwatch.get_metric_statistics(
        Namespace=dimensions.pop("namespace"),
        MetricName=metric,
        Dimensions=[{"Name": name, "Value": value} for name, value in dimensions.items()],
        StartTime=now,
        EndTime=now + MINUTE,
        Period=60,
        Statistics=["Sum"],
    )
    return sum(one["Sum"] for one in answer["Datapoints"]) if answer["Datapoints"] else None


def test_invocations_of_functions_and_their_errors_are_counted(plane: Plane) -> None:
    probe = {"namespace": "AWS/Lambda", "FunctionName": "trainmaster-ProbeFunction"}
    assert plane.twin.api("POST", "/do", {"do": "clocks"}).status == 200
    assert plane.twin.api("POST", "/do", {"do": "fail"}).status == 502
    assert [sums(plane, name, **probe) for name in ("Invocations", "Errors", "Throttles")] == [2.0, 1.0, 0.0]


def test_metrics_in_the_log_of_a_function_are_read(plane: Plane) -> None:
    now = datetime.fromisoformat(plane.twin.advance(0))
    directive = {"Namespace": "own", "Dimensions": [["service"]], "Metrics": [{"Name": "Waits"}]}
    about = {"Timestamp": int(now.timestamp() * 1000), "CloudWatchMetrics": [directive]}
    line = json.dumps({"_aws": about, "service": plane.name, "Waits": 7})
    assert plane.twin.api("POST", "/do", {"do": "say", "with": line}).status == 200
    assert eventually(lambda: sums(plane, "Waits", namespace="own", service=plane.name) == 7.0)


def test_tags_of_an_alarm_can_be_read(plane: Plane) -> None:
    plane.put(Tags=[{"Key": "trainmaster:stack", "Value": "s"}])
    arn = plane.described()["AlarmArn"]
    assert plane.cloudwatch.list_tags_for_resource(ResourceARN=arn)["Tags"] == [
        {"Key": "trainmaster:stack", "Value": "s"}
    ]


def test_dashboards_are_kept(plane: Plane) -> None:
    plane.cloudwatch.put_dashboard(DashboardName="board", DashboardBody='{"widgets": []}')
    assert plane.cloudwatch.get_dashboard(DashboardName="board")["DashboardBody"] == '{"widgets": []}'


def test_what_is_not_emulated_says_so(plane: Plane) -> None:
    with pytest.raises(ClientError, match="the twin has no cloudwatch:DescribeAlarmHistory"):
        plane.cloudwatch.describe_alarm_history()
