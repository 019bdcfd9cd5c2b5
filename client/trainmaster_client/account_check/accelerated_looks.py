"""Looks that need an accelerated type: GPU metrics, an alarm on them, and a pending time that runs out."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from trainmaster_client.account_check.service_calls import MissingRightError, RefusedCallError
from trainmaster_client.account_check.trial_jobs import Trials
from trainmaster_client.account_check.trial_requests import ON_GPU, PENDING_SECONDS, PREFIX, STARVED, TRAINING

_NAMESPACE, _METRIC = "/aws/sagemaker/TrainingJobs", "GPUUtilization"
_PERIOD_SECONDS = 60
_LOOK_SECONDS = 10.0


@dataclass(slots=True, kw_only=True)
class GpuLook:
    """Reads the GPU trial's metrics whenever it is called, until both the metric and the alarm were seen."""

    trials: Trials
    longest: float
    """Seconds in Training after which the trial is stopped, whatever was seen."""
    clock: Callable[[], float] = time.monotonic
    ended_by: str | None = None
    _training: float | None = None
    _last: float = 0.0
    _record: dict[str, Any] = field(default_factory=dict)

    def look(self) -> None:
        job = self.trials.jobs.get(ON_GPU.label)
        if job is None or job.get("final") or self.ended_by or self.clock() - self._last < _LOOK_SECONDS:
            return
        self._last = self.clock()
        try:
            self._look_at(job)
        except MissingRightError as error:
            self._give_up(job, error.action)
            raise
        except RefusedCallError as error:
            self._give_up(job, str(error))
            raise

    def _look_at(self, job: Mapping[str, Any]) -> None:
        host = f"{job['name']}/algo-1"
        if self._training is None:
            if TRAINING not in job["statuses"]:
                return
            self._training = self.clock()
            self._record |= {"training_at": datetime.now(UTC).isoformat(), "waited": 0.0}
            self.trials.records["gpu"] = self._record
            self._put_alarm(host)
        self._record["waited"] = round(self.clock() - self._training, 1)
        if "metric_seconds" not in self._record and self._has_metric(host):
            self._record["metric_seconds"] = self._record["waited"]
        if "alarm_seconds" not in self._record and self._is_in_alarm():
            self._record["alarm_seconds"] = self._record["waited"]
        both = {"metric_seconds", "alarm_seconds"} <= self._record.keys()
        if both or self._record["waited"] > self.longest:
            self._give_up(job, "seen")

    def _give_up(self, job: Mapping[str, Any], why: str) -> None:
        self.ended_by = why
        self.trials.stop(job["name"])

    def _put_alarm(self, host: str) -> None:
        """Create an alarm that any value sets off: what is measured is how soon it fires."""
        self.trials.calls.get(
            "cloudwatch",
            "PutMetricAlarm",
            AlarmName=self._alarm,
            Namespace=_NAMESPACE,
            MetricName=_METRIC,
            Dimensions=[{"Name": "Host", "Value": host}],
            Statistic="Average",
            Period=_PERIOD_SECONDS,
            EvaluationPeriods=1,
            Threshold=0.0,
            ComparisonOperator="GreaterThanOrEqualToThreshold",
            TreatMissingData="notBreaching",
        )

    def _has_metric(self, host: str) -> bool:
        now = datetime.now(UTC)
        statistics = self.trials.calls.get(
            "cloudwatch",
            "GetMetricStatistics",
            Namespace=_NAMESPACE,
            MetricName=_METRIC,
            Dimensions=[{"Name": "Host", "Value": host}],
            StartTime=now - timedelta(minutes=20),
            EndTime=now + timedelta(minutes=1),
            Period=_PERIOD_SECONDS,
            Statistics=["Average"],
        )
        return bool(statistics["Datapoints"])

    def _is_in_alarm(self) -> bool:
        described = self.trials.calls.get("cloudwatch", "DescribeAlarms", AlarmNames=[self._alarm])
        return any(alarm["StateValue"] == "ALARM" for alarm in described["MetricAlarms"])

    @property
    def _alarm(self) -> str:
        return f"{PREFIX}{self.trials.means.run}"


def wait_for_gpu(trials: Trials, instance_type: str) -> None:
    """Queue the GPU trial to start with the others."""
    trials.instance_types[ON_GPU.label] = instance_type
    trials.waiting.append(ON_GPU)


def starve(trials: Trials, instance_type: str) -> None:
    """Queue a job with the shortest pending time; if it trains anyway, it is stopped."""
    trials.instance_types[STARVED.label] = instance_type
    trials.more_members[STARVED.label] = {"StoppingCondition.MaxPendingTimeInSeconds": PENDING_SECONDS}
    trials.waiting.append(STARVED)
