"""Looks at one job on a training plan: what AWS says of it, and what becomes of it as a window closes."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from trainmaster_client.account_check.service_calls import RefusedCallError
from trainmaster_client.account_check.trial_jobs import Trials
from trainmaster_client.account_check.trial_requests import (
    MOST_SECONDS,
    ON_PLAN,
    ON_PLAN_TO_THE_END,
    TRAINING,
)

CLOSING = timedelta(minutes=30)
"""Time before the end of a window in which SageMaker ends its instances. Source: training plans guide."""
_NEAR = timedelta(minutes=20)
"""Time before that at which a trial can wait for it."""
_AFTER = timedelta(minutes=10)
"""Time after it at which a trial that still trains is stopped."""
_LOOK_SECONDS = 5.0


@dataclass(slots=True, kw_only=True)
class PlanLook:
    """Runs one trial on a plan; ``begin`` starts it, and ``look`` is called until it has ended."""

    trials: Trials
    arn: str
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    clock: Callable[[], float] = time.monotonic
    _record: dict[str, Any] = field(default_factory=dict)
    _closes: datetime | None = None
    _last: float = float("-inf")
    _is_stopped: bool = False

    def begin(self) -> float:
        """Start the trial, and return the seconds that it adds to the check.

        Raises:
            MissingRightError: IAM does not allow a call.
            RefusedCallError: The plan has no open window, or AWS refuses the job.
        """
        trials = self.trials
        trials.records["plan"] = self._record
        plan = trials.calls.get("sagemaker", "DescribeTrainingPlan", TrainingPlanName=self.arn)
        window = open_window(plan, self.now())
        if window is None:
            raise RefusedCallError(f"the plan is {plan['Status']} and has no open window")
        self._record |= {"arn": self.arn, "ends": window["EndTime"].astimezone(UTC).isoformat()}
        closes = window["EndTime"] - CLOSING
        left = closes - self.now()
        is_near = timedelta() < left <= _NEAR
        trial = ON_PLAN_TO_THE_END if is_near else ON_PLAN
        longest = left + _AFTER if is_near else timedelta(seconds=MOST_SECONDS)
        trials.instance_types[trial.label] = window["InstanceType"]
        trials.more_members[trial.label] = {
            "ResourceConfig.TrainingPlanArn": self.arn,
            "StoppingCondition.MaxRuntimeInSeconds": round(longest.total_seconds()),
        }
        self._closes = closes if is_near else None
        answer = trials.start(trial)
        self._record["answer"] = answer.as_json()
        if answer.code is not None:
            raise RefusedCallError(f"CreateTrainingJob: {answer.code}: {answer.text}")
        return longest.total_seconds() if is_near else 0.0

    def look(self) -> None:
        """Note what AWS says of the trial once it trains, and its status after the window closed."""
        job = self.trials.jobs.get(ON_PLAN.label)
        if job is None or job.get("final") or self.clock() - self._last < _LOOK_SECONDS:
            return
        self._last = self.clock()
        if TRAINING in job["statuses"] and "described" not in self._record:
            self._describe(job["name"])
        if self._closes is not None and self.now() >= self._closes and not self._is_stopped:
            self._look_after_close(job)

    def _describe(self, name: str) -> None:
        calls = self.trials.calls
        job = calls.get("sagemaker", "DescribeTrainingJob", TrainingJobName=name)
        page = calls.get("sagemaker", "ListTrainingJobs", TrainingPlanArnEquals=self.arn, MaxResults=100)
        plan = calls.get("sagemaker", "DescribeTrainingPlan", TrainingPlanName=self.arn)
        listed = {summary["TrainingJobName"] for summary in page["TrainingJobSummaries"]}
        self._record |= {
            "described": job["ResourceConfig"].get("TrainingPlanArn"),
            "listed": name in listed,
            "in_use": plan.get("InUseInstanceCount"),
        }

    def _look_after_close(self, job: Mapping[str, Any]) -> None:
        """Note the status after the close; a trial that is Pending again is stopped, so that it ends."""
        last, late = job["statuses"][-1], self.now() >= (self._closes or self.now()) + _AFTER
        self._record["after_close"] = last
        if last == "Pending" or late:
            self._is_stopped = True
            self.trials.stop(job["name"])


def open_window(plan: Mapping[str, Any], now: datetime) -> Mapping[str, Any] | None:
    """Return the reserved capacity in which instances can be started now; None if there is none."""
    for reserved in plan.get("ReservedCapacitySummaries") or ():
        if reserved["StartTime"] <= now < reserved["EndTime"] - CLOSING:
            return dict(reserved)
    return None
