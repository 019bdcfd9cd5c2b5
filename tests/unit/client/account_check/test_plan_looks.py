"""The trial on a training plan: when it starts, what is noted of it, and when it is stopped."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from trainmaster_client.account_check.plan_looks import PlanLook, open_window
from trainmaster_client.account_check.service_calls import RefusedCallError, Said
from trainmaster_client.account_check.trial_requests import Trial

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
ARN = "arn:aws:sagemaker:eu-west-1:111122223333:training-plan/spring"
P5 = "ml.p5.48xlarge"


def described(*minutes: tuple[float, float]) -> dict[str, Any]:
    """A plan whose windows begin and end so many minutes from now."""
    reserved = [
        {"StartTime": NOW + begin * MINUTE, "EndTime": NOW + end * MINUTE, "InstanceType": P5}
        for begin, end in minutes
    ]
    return {"Status": "Active", "ReservedCapacitySummaries": reserved, "InUseInstanceCount": 1}


class Stage:
    """Trials that start and stop nothing, and the look at them, at an instant that a test moves."""

    def __init__(self, plan: dict[str, Any], *, refusal: str | None = None) -> None:
        self.plan, self.refusal = plan, refusal
        self.now = NOW
        self.records: dict[str, Any] = {}
        self.jobs: dict[str, Any] = {}
        self.instance_types: dict[str, str] = {}
        self.more_members: dict[str, dict[str, Any]] = {}
        self.stopped: list[str] = []
        self.calls = self
        trials: Any = self
        self.watcher = PlanLook(trials=trials, arn=ARN, now=lambda: self.now, clock=self._seconds)

    def _seconds(self) -> float:
        return (self.now - NOW).total_seconds()

    def start(self, trial: Trial) -> Said:
        self.script = trial.script
        self.jobs[trial.label] = {"name": "check-plan", "statuses": ["Starting"]}
        return Said(operation="CreateTrainingJob", at=NOW, seconds=0.1, result={}, code=self.refusal)

    def stop(self, name: str) -> None:
        self.stopped.append(name)

    def get(self, _service: str, operation: str, **_: Any) -> dict[str, Any]:
        return {
            "DescribeTrainingPlan": self.plan,
            "DescribeTrainingJob": {"ResourceConfig": {"TrainingPlanArn": ARN}},
            "ListTrainingJobs": {"TrainingJobSummaries": [{"TrainingJobName": "check-plan"}]},
        }[operation]

    def sees(self, status: str, *, after: timedelta) -> dict[str, Any]:
        self.jobs["plan"]["statuses"].append(status)
        self.now = NOW + after
        self.watcher.look()
        record: dict[str, Any] = self.records["plan"]
        return record


def test_a_window_is_open_until_30_minutes_before_its_end() -> None:
    plan = described((-60, 31), (40, 100))
    assert open_window(plan, NOW) == plan["ReservedCapacitySummaries"][0]
    assert open_window(plan, NOW + MINUTE) is None
    assert open_window(plan, NOW + 40 * MINUTE) == plan["ReservedCapacitySummaries"][1]
    assert open_window({"Status": "Failed"}, NOW) is None


def test_far_from_the_end_of_the_window_the_trial_ends_by_itself_and_tells_what_it_heard() -> None:
    stage = Stage(described((-60, 600)))

    assert stage.watcher.begin() == 0
    assert (stage.instance_types["plan"], "exit 3" in stage.script) == (P5, True)
    assert stage.more_members["plan"]["ResourceConfig.TrainingPlanArn"] == ARN
    record = stage.sees("Training", after=MINUTE)
    assert (record["described"], record["listed"], record["in_use"]) == (ARN, True, 1)
    stage.sees("Pending", after=600 * MINUTE)
    assert "after_close" not in record
    assert stage.stopped == []


def test_close_to_the_end_it_stays_and_is_stopped_once_it_is_pending_again() -> None:
    stage = Stage(described((-60, 45)))

    assert stage.watcher.begin() == 25 * 60
    assert "exit 3" not in stage.script
    record = stage.sees("Training", after=14 * MINUTE)
    assert "after_close" not in record
    assert stage.sees("Training", after=16 * MINUTE)["after_close"] == "Training"
    assert stage.stopped == []
    assert stage.sees("Pending", after=17 * MINUTE)["after_close"] == "Pending"
    stage.sees("Pending", after=18 * MINUTE)
    assert stage.stopped == ["check-plan"]


def test_what_trains_on_for_ten_minutes_is_stopped_too() -> None:
    stage = Stage(described((-60, 45)))
    stage.watcher.begin()

    assert stage.sees("Training", after=25 * MINUTE)["after_close"] == "Training"
    assert stage.stopped == ["check-plan"]


def test_a_plan_without_an_open_window_and_a_refusal_start_nothing() -> None:
    with pytest.raises(RefusedCallError, match="Active and has no open window"):
        Stage(described((10, 600))).watcher.begin()
    with pytest.raises(RefusedCallError, match="CreateTrainingJob: ValidationException"):
        Stage(described((-60, 600)), refusal="ValidationException").watcher.begin()
