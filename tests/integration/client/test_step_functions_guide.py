"""The state machine of the guide and its function, played against the API as the States Language says."""

import json
import runpy
from collections.abc import Callable
from typing import Any

import boto3
import pytest
from trainmaster_client import errors

from tests.integration.client.fake_api import FakeApi, Scripted, problem, view
from tests.markdown import ROOT

FOLDER = ROOT / "docs/examples/step_functions"
MACHINE: dict[str, Any] = json.loads((FOLDER / "training.asl.json").read_text("utf-8"))
STATES: dict[str, dict[str, Any]] = MACHINE["States"]
REQUEST = {"TrainingJobName": "job1"}
EXECUTION = "arn:aws:states:eu-west-1:123456789012:execution:train:\N{LATIN SMALL LETTER E WITH ACUTE}"
FIELDS = {
    "Task": {"Type", "Resource", "Parameters", "ResultSelector", "Retry", "Next"},
    "Choice": {"Type", "Choices", "Default"},
    "Wait": {"Type", "Seconds", "Next"},
    "Succeed": {"Type"},
    "Fail": {"Type", "ErrorPath", "CausePath"},
}
"""Of each type of state, as this machine uses it. Source: Amazon States Language, state types."""
MOST_EVENTS = 25_000
EVENTS_OF_A_LOOK = 9
"""Of an execution, and of one turn of the loop. Source: Step Functions, quotas and execution history."""

Handler = Callable[[dict[str, Any], object], dict[str, Any]]


@pytest.fixture
def function(api: FakeApi, boto_session: boto3.Session, monkeypatch: pytest.MonkeyPatch) -> Handler:
    monkeypatch.setenv("TRAINMASTER_API_URL", api.url)
    monkeypatch.setattr("trainmaster_client.http.transport.FIRST_PAUSE_SECONDS", 0)
    handler: Handler = runpy.run_path(str(FOLDER / "queue_task.py"))["handler"]
    return handler


def played(function: Handler) -> tuple[list[str], dict[str, Any]]:
    """The states that an execution goes through, and what it has then."""
    path, data, name = [], {"request": REQUEST}, MACHINE["StartAt"]
    while True:
        path.append(name)
        state = STATES[name]
        if state["Type"] in {"Succeed", "Fail"}:
            return path, data
        if state["Type"] == "Choice":
            name = next((one["Next"] for one in state["Choices"] if holds(one, data)), state["Default"])
            continue
        if state["Type"] == "Task":
            payload = filled(state["Parameters"]["Payload"], data)
            data = filled(state["ResultSelector"], {"Payload": function(payload, None)})
        name = state["Next"]


def holds(choice: dict[str, Any], data: dict[str, Any]) -> bool:
    return bool(at(choice["Variable"], data) == choice["StringEquals"])


def filled(template: dict[str, str], data: dict[str, Any]) -> dict[str, Any]:
    assert all(key.endswith(".$") for key in template)
    return {key.removesuffix(".$"): at(path, data) for key, path in template.items()}


def at(path: str, data: Any) -> Any:
    """``$$`` is the context object. Source: Amazon States Language, the context object."""
    if path.startswith("$$."):
        path, data = path.removeprefix("$"), {"Execution": {"Id": EXECUTION}}
    for part in path.removeprefix("$.").split("."):
        data = data[part]
    return data


def test_the_state_machine_is_whole() -> None:
    for state in STATES.values():
        assert set(state) == FIELDS[state["Type"]]
    nexts = {one[key] for one in STATES.values() for key in ("Next", "Default") if key in one}
    nexts |= {choice["Next"] for choice in STATES["HasItEnded"]["Choices"]}
    assert nexts | {MACHINE["StartAt"]} == set(STATES)


def test_an_execution_can_wait_for_nine_days() -> None:
    looks = MOST_EVENTS // EVENTS_OF_A_LOOK
    assert looks * STATES["Wait"]["Seconds"] >= 9 * 24 * 3600


def test_an_execution_waits_with_the_job_and_completes_with_it(api: FakeApi, function: Handler) -> None:
    api.script("POST", "/add-job", Scripted(status=201, document={"job": view(), "warnings": []}))
    course = ("pending", "running", "preempted", "running", "completed")
    api.script("GET", "/jobs/job1", *(Scripted(document=view(state=one)) for one in course))
    path, data = played(function)
    assert path == ["Submit", "HasItEnded", *["Wait", "Look", "HasItEnded"] * len(course), "Completed"]
    assert data["job"] == {"name": "job1", "state": "completed", "why": "completed"}
    assert json.loads(api.received[0].body) == REQUEST


@pytest.mark.parametrize("end", ["failed", "stopped"])
def test_an_execution_fails_with_the_job_and_says_why(api: FakeApi, function: Handler, end: str) -> None:
    reason = {"code": end, "message": "exit code 1"}
    document = {"job": view(state=end, reason=reason), "warnings": []}
    api.script("POST", "/add-job", Scripted(status=201, document=document))
    path, data = played(function)
    assert path[-1] == "NotCompleted"
    failure = STATES["NotCompleted"]
    assert (at(failure["ErrorPath"], data), at(failure["CausePath"], data)) == (end, "exit code 1")


@pytest.mark.parametrize(("status", "kind"), [(422, "PolicyViolationError"), (409, "ConflictError")])
def test_what_no_retry_helps_is_not_retried(api: FakeApi, function: Handler, status: int, kind: str) -> None:
    """Lambda gives an error the name of its class."""
    api.script("POST", "/add-job", problem(status, "No", "not so"))
    with pytest.raises(getattr(errors, kind)) as caught:
        function({"submit": REQUEST, "execution": EXECUTION}, None)
    final, _ = STATES["Submit"]["Retry"]
    assert final["MaxAttempts"] == 0
    assert type(caught.value).__name__ in final["ErrorEquals"]
    assert [one for one in final["ErrorEquals"] if not hasattr(errors, one)] == []


def test_O7_a_retry_of_an_execution_has_its_key_and_another_execution_another_one(
    api: FakeApi, function: Handler
) -> None:
    api.script("POST", "/add-job", Scripted(status=201, document={"job": view(), "warnings": []}))
    for execution in (EXECUTION, EXECUTION, "another"):
        function({"submit": REQUEST, "execution": execution}, None)
    first, retry, other = (one.headers["idempotency-key"] for one in api.received)
    assert first == retry != other
    assert len(first) <= 128
