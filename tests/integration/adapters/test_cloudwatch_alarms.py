"""Alarms as CloudWatch has them: made, read and deleted over moto, refused by a stub."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from trainmaster.adapters.cloudwatch_alarms import CloudWatchAlarms
from trainmaster.core.errors import AlarmQuotaError, AlarmRefusedError, UnavailableError
from trainmaster.core.jobs.instances import Capacity
from trainmaster.core.monitoring.alarms import AlarmReading, AlarmState, alarms_of, wanted_of
from trainmaster.core.policy.governance import Idle, Utilization, Watch

TOPIC = "arn:aws:sns:us-east-1:123456789012:alarms"
IDLE = Watch(idle=Idle())
BOTH = Watch(idle=Idle(), utilization=Utilization())
NAME = "trainmaster-ml-idle-train-1"


@pytest.fixture
def cloudwatch(aws: None) -> Any:
    return boto3.client("cloudwatch")


@pytest.fixture
def keeper(cloudwatch: Any) -> CloudWatchAlarms:
    return CloudWatchAlarms(cloudwatch, topic_arn=TOPIC)


def alarms(hosts: int, watch: Watch = IDLE) -> Any:
    vector = {Capacity("ml.p5.48xlarge"): hosts}
    return alarms_of("train-1", wanted_of(vector, watch), watch, stack="ml")


def described(client: Any, *names: str) -> list[dict[str, Any]]:
    answer = client.describe_alarms(AlarmNames=list(names), AlarmTypes=["MetricAlarm", "CompositeAlarm"])
    return [*answer["MetricAlarms"], *answer["CompositeAlarms"]]


def test_an_alarm_watches_its_hosts_and_tells_the_topic(cloudwatch: Any, keeper: CloudWatchAlarms) -> None:
    keeper.put(alarms(2))
    (made,) = described(cloudwatch, NAME)
    assert made["AlarmActions"] == made["OKActions"] == [TOPIC]
    assert (made["Threshold"], made["ComparisonOperator"]) == (1.0, "LessThanThreshold")
    assert (made["EvaluationPeriods"], made["DatapointsToAlarm"]) == (3, 3)
    assert made["TreatMissingData"] == "notBreaching"
    first, second, watched = made["Metrics"]
    assert (first["Id"], second["Id"], first["ReturnData"], watched["ReturnData"]) == (
        "m0",
        "m1",
        False,
        True,
    )
    assert watched["Expression"] == "MAX([FILL(m0, 800), FILL(m1, 800)]) / 8"
    assert first["MetricStat"] == {
        "Metric": {
            "Namespace": "/aws/sagemaker/TrainingJobs",
            "MetricName": "GPUUtilization",
            "Dimensions": [{"Name": "Host", "Value": "train-1/algo-1"}],
        },
        "Period": 300,
        "Stat": "Average",
    }


def test_only_the_composite_of_many_hosts_tells_the_topic(cloudwatch: Any) -> None:
    """Moto has no composite alarms, so this is what goes over the wire."""
    part = {"AlarmActions": [], "OKActions": [], "ActionsEnabled": True}
    with Stubber(cloudwatch) as stub:
        one, two, composite = alarms(11)
        keeper = CloudWatchAlarms(cloudwatch, topic_arn=TOPIC)
        for alarm in (one, two):
            stub.add_response("put_metric_alarm", {}, keeper._metric_alarm(alarm) | part)
        rule = f'ALARM("{NAME}.1") AND ALARM("{NAME}.2")'
        expected = {
            "AlarmName": NAME,
            "AlarmDescription": composite.description,
            "ActionsEnabled": True,
            "AlarmActions": [TOPIC],
            "OKActions": [TOPIC],
            "AlarmRule": rule,
        }
        stub.add_response("put_composite_alarm", {}, expected)
        keeper.put((one, two, composite))
        stub.assert_no_pending_responses()


def test_an_alarm_put_again_is_replaced(cloudwatch: Any, keeper: CloudWatchAlarms) -> None:
    keeper.put(alarms(1))
    keeper.put(alarms(1, Watch(idle=Idle(gpu_below_percent=7))))
    (made,) = described(cloudwatch, NAME)
    assert made["Threshold"] == 7.0


def test_alarms_are_read_one_by_one_and_all_at_once(cloudwatch: Any, keeper: CloudWatchAlarms) -> None:
    keeper.put(alarms(1, BOTH))
    cloudwatch.set_alarm_state(AlarmName=NAME, StateValue="ALARM", StateReason="GPUs do nothing")
    found = keeper.readings("trainmaster-ml-")
    assert {name: reading.state for name, reading in found.items()} == {
        NAME: AlarmState.ALARM,
        "trainmaster-ml-utilization-train-1": AlarmState.OK,  # moto's alarms are born so
    }
    assert keeper.reading(NAME) == found[NAME]
    assert keeper.readings("trainmaster-other-") == {}
    assert keeper.reading("trainmaster-ml-idle-nobody") is None


def test_since_when_is_the_last_change_of_the_state_to_the_millisecond(cloudwatch: Any) -> None:
    """StateUpdatedTimestamp moves with each new reason, and would put a stop off for ever."""
    changed = datetime(2026, 11, 2, 12, 0, 0, 123_456, tzinfo=UTC)
    alarm = {
        "AlarmName": NAME,
        "StateValue": "ALARM",
        "StateUpdatedTimestamp": datetime(2026, 11, 2, 12, 30, tzinfo=UTC),
        "StateTransitionedTimestamp": changed,
    }
    asked = {"AlarmNames": [NAME], "AlarmTypes": ["MetricAlarm", "CompositeAlarm"]}
    with Stubber(cloudwatch) as stub:
        stub.add_response("describe_alarms", {"CompositeAlarms": [alarm]}, asked)
        reading = CloudWatchAlarms(cloudwatch, topic_arn=TOPIC).reading(NAME)
    assert reading == AlarmReading(state=AlarmState.ALARM, since=changed.replace(microsecond=123_000))


def test_deleting_what_is_gone_is_fine(cloudwatch: Any, keeper: CloudWatchAlarms) -> None:
    keeper.put(alarms(1, BOTH))
    names = [NAME, "trainmaster-ml-utilization-train-1", "trainmaster-ml-idle-nobody"]
    keeper.delete(names)
    keeper.delete(names)
    assert described(cloudwatch, *names) == []


def test_each_alarm_that_may_be_a_composite_goes_by_itself_and_before_its_parts(cloudwatch: Any) -> None:
    parts = [f"{NAME}.{number}" for number in range(1, 41)]
    with Stubber(cloudwatch) as stub:
        for names in ([NAME], ["trainmaster-ml-utilization-train-1"], parts):
            stub.add_response("delete_alarms", {}, {"AlarmNames": names})
        keeper = CloudWatchAlarms(cloudwatch, topic_arn=TOPIC)
        keeper.delete([NAME, "trainmaster-ml-utilization-train-1", *parts])
        stub.assert_no_pending_responses()


def test_a_composite_that_is_gone_does_not_keep_its_parts(cloudwatch: Any) -> None:
    with Stubber(cloudwatch) as stub:
        stub.add_client_error("delete_alarms", service_error_code="ResourceNotFound", http_status_code=404)
        stub.add_response("delete_alarms", {}, {"AlarmNames": [f"{NAME}.1"]})
        CloudWatchAlarms(cloudwatch, topic_arn=TOPIC).delete([NAME, f"{NAME}.1"])
        stub.assert_no_pending_responses()


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        pytest.param("LimitExceeded", 400, AlarmQuotaError, id="D13 as many alarms as the account may have"),
        pytest.param("AccessDenied", 403, AlarmRefusedError, id="no right"),
        pytest.param("ValidationError", 400, AlarmRefusedError, id="not an alarm"),
        pytest.param("Throttling", 400, UnavailableError, id="D1 throttled"),
        pytest.param("InternalServiceFault", 500, UnavailableError, id="broken"),
    ],
)
def test_what_cloudwatch_refuses_is_told_apart_by_its_code(
    code: str, status: int, error: type[Exception], cloudwatch: Any
) -> None:
    with Stubber(cloudwatch) as stub:
        stub.add_client_error("put_metric_alarm", service_error_code=code, http_status_code=status)
        with pytest.raises(UnavailableError) as caught:
            CloudWatchAlarms(cloudwatch, topic_arn=TOPIC).put(alarms(1))
    assert type(caught.value) is error


def test_an_outage_is_no_reading(cloudwatch: Any) -> None:
    with Stubber(cloudwatch) as stub:
        stub.add_client_error("describe_alarms", service_error_code="Throttling", http_status_code=400)
        with pytest.raises(UnavailableError):
            CloudWatchAlarms(cloudwatch, topic_arn=TOPIC).reading(NAME)
    with Stubber(cloudwatch) as stub:
        stub.add_client_error("delete_alarms", service_error_code="Throttling", http_status_code=400)
        with pytest.raises(UnavailableError):
            CloudWatchAlarms(cloudwatch, topic_arn=TOPIC).delete([NAME])


# ---- whether there are data


class Answering:
    """A client that gives one answer to GetMetricData."""

    def __init__(self, *results: dict[str, Any], **more: Any) -> None:
        self.answer = {"MetricDataResults": list(results), **more}
        self.asked: list[dict[str, Any]] = []

    def get_metric_data(self, **parameters: Any) -> dict[str, Any]:
        self.asked.append(parameters)
        return self.answer


def result(number: int, *values: float, status: str = "Complete") -> dict[str, Any]:
    return {"Id": f"m{number}", "Values": list(values), "StatusCode": status}


HOSTS = ["job/algo-1", "job/algo-2"]
UNTIL = datetime(2026, 11, 2, 12, 0, tzinfo=UTC)
SINCE = UNTIL - timedelta(minutes=20)


def have_data(client: Answering) -> Mapping[str, bool]:
    return CloudWatchAlarms(client, topic_arn="topic").have_data(HOSTS, since=SINCE, until=UNTIL)


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        pytest.param([result(0, 5.0), result(1)], {HOSTS[0]: True, HOSTS[1]: False}, id="one is silent"),
        pytest.param(
            [result(0, 5.0, status="PartialData"), result(1, status="PartialData")],
            {HOSTS[0]: True},
            id="a part says that there are some, never that there are none",
        ),
        pytest.param([result(0, status="InternalError"), result(1, 1.0)], {HOSTS[1]: True}, id="one failed"),
        pytest.param([], {}, id="nothing"),
    ],
)
def test_O17_what_cloudwatch_does_not_say_for_certain_is_no_answer(
    results: list[dict[str, Any]], expected: dict[str, bool]
) -> None:
    client = Answering(*results)
    assert have_data(client) == expected
    (asked,) = client.asked
    assert (asked["StartTime"], asked["EndTime"]) == (SINCE, UNTIL)
    stats = [query["MetricStat"] for query in asked["MetricDataQueries"]]
    dimensions = [stat["Metric"]["Dimensions"] for stat in stats]
    assert dimensions == [[{"Name": "Host", "Value": host}] for host in HOSTS]
    assert {stat["Stat"] for stat in stats} == {"SampleCount"}


def test_O17_an_answer_in_pages_is_none_because_one_call_is_all_there_is() -> None:
    assert have_data(Answering(result(0), result(1), NextToken="next")) == {}
