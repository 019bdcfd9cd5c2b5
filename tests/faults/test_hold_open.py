"""Jobs whose container waits for a visitor: what is refused, what is sent, and what an alarm may not end."""

from typing import Any

import pytest
from trainmaster.core.jobs.hold_open import HoldOpen, read_hold_open
from trainmaster.core.monitoring import alarm_reactions
from trainmaster.core.monitoring.alarms import AlarmKind, AlarmReading, AlarmState
from trainmaster.core.policy.governance import Idle, Reaction, Watch
from trainmaster.core.request.request import attempt_request
from trainmaster.core.request.validation import check_request

from tests.bodies import body, tag_list
from tests.builders import NOON, attempt, live_job, minutes
from tests.faults.submitting import refusal, refused_fields

TAG = "trainmaster:hold-open"
VARIABLE = "TRAINMASTER_HOLD_OPEN"
HALF_AN_HOUR = HoldOpen(longest=minutes(30), is_after_failure=False)
OPEN = {"RemoteDebugConfig": {"EnableRemoteDebug": True}}


def held(value: str = "30m", **changes: Any) -> dict[str, Any]:
    """A request with the tag, and with remote debugging."""
    return body(**OPEN | {"Tags": tag_list({TAG: value})} | changes)


@pytest.mark.parametrize(
    ("value", "sent"),
    [("30m", "1800"), ("90s", "90"), ("failure:2h", "failure:7200"), ("24h", "86400")],
)
def test_a_duration_is_read_with_its_moment(value: str, sent: str) -> None:
    assert read_hold_open(value).variable == sent


@pytest.mark.parametrize(
    "value", ["", "30", "59s", "25h", "-5m", "0m", "1.5h", "30 m", "30M", "start:5m", "failure", "999999h"]
)
def test_what_is_no_duration_from_a_minute_to_a_day_is_a_400_with_a_right_example(value: str) -> None:
    error = refusal(held(value)).errors[0]
    assert error.field == "Tags[0].Value"
    assert "failure:30m" in error.hint


def test_a_valid_request_is_accepted() -> None:
    assert check_request(held()) == []


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        pytest.param({"RemoteDebugConfig": {}}, "Tags[0]", "EnableRemoteDebug", id="not on"),
        pytest.param(
            {"RemoteDebugConfig": {"EnableRemoteDebug": False}}, "Tags[0]", "EnableRemoteDebug", id="off"
        ),
        pytest.param({"EnableNetworkIsolation": True}, "Tags[0]", "EnableNetworkIsolation", id="isolated"),
        pytest.param(
            {"StoppingCondition": {"MaxRuntimeInSeconds": 1800}},
            "Tags[0].Value",
            "MaxRuntimeInSeconds",
            id="no time left to train",
        ),
    ],
)
def test_a_container_that_nobody_can_visit_is_a_400(changes: dict[str, Any], field: str, says: str) -> None:
    assert refused_fields(held(**changes)) == [field]
    assert says in refusal(held(**changes)).errors[0].hint


@pytest.mark.parametrize(
    ("hold", "number", "sent"),
    [
        pytest.param(HALF_AN_HOUR, 0, "1800", id="the first attempt"),
        pytest.param(HALF_AN_HOUR, 1, None, id="not the second"),
        pytest.param(HoldOpen(longest=minutes(5), is_after_failure=True), 1, "failure:300", id="a failure"),
        pytest.param(None, 0, None, id="no tag"),
    ],
)
def test_the_launcher_learns_of_it(hold: HoldOpen | None, number: int, sent: str | None) -> None:
    job = live_job(hold_open=hold, attempt=number)
    request = attempt_request(
        body(Environment={"OWN": "1"}), attempt=job.live_attempt, job=job, stack="s", capacity_wait=None
    )
    assert request["Environment"] == {"OWN": "1"} | ({VARIABLE: sent} if sent else {})


def test_an_alarm_of_idle_gpus_gives_the_visitor_the_time_that_was_asked_for() -> None:
    live = attempt(training_since=NOON - minutes(60), secondary_status="Training")
    job = live_job(live=live, hold_open=HALF_AN_HOUR)
    reading = AlarmReading(state=AlarmState.ALARM, since=NOON - minutes(1))
    watch = Watch(idle=Idle(then=Reaction.STOP, warn_first=minutes(10)))
    warned = alarm_reactions.heard(job, AlarmKind.IDLE, reading, watch, now=NOON)
    assert warned.live_attempt.watch.stop_due == NOON + minutes(40)
