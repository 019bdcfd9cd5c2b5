"""The trials: started as the quota allows, looked at until they end, stopped where they are to be stopped."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from trainmaster_client.account_check.course_verdicts import FINAL
from trainmaster_client.account_check.product_reading import LIMIT, product_reading
from trainmaster_client.account_check.service_calls import RefusedCallError, Said, ServiceCalls
from trainmaster_client.account_check.trial_requests import (
    INSTANCE_TYPE,
    STARTING,
    TRAINING,
    Means,
    Request,
    Trial,
    changed,
)

_KEPT = (
    *("TrainingJobStatus", "SecondaryStatus", "FailureReason", "CreationTime", "TrainingStartTime"),
    *("TrainingEndTime", "LastModifiedTime", "TrainingTimeInSeconds", "BillableTimeInSeconds"),
    *("WarmPoolStatus", "SecondaryStatusTransitions"),
)
"""Members of Describe's last answer that are kept."""
_USED = re.compile(r"current utilization of (\d+)")
"""In the text of ResourceLimitExceeded: shown, and measured here alone."""
_STOPPING = "Stopping"
_RETRY_SECONDS = 15.0
"""Between tries of what the quota refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Seconds; the twin runs faster than AWS."""

    look: float = 3.0
    settle: float = 10.0
    """In Training before a trial is stopped: its program has to have begun."""
    jobs: float = 720.0
    """For all trials together."""
    events: float = 60.0
    """For events that are still on their way when the last trial has ended, after the first of an end."""
    burst: float = 5.0


@dataclass(slots=True)
class _Live:
    trial: Trial
    job: dict[str, Any]
    training_since: float | None = None
    stopped: float | None = None


@dataclass(slots=True, kw_only=True)
class Trials:
    calls: ServiceCalls
    means: Means
    records: dict[str, Any]
    pace: Pace
    say: Callable[[str], None]
    quota: int | None
    """Instances of the trials' type that the account may have; None: not known."""
    clock: Callable[[], float] = time.monotonic
    waiting: list[Trial] = field(default_factory=list)
    instance_types: dict[str, str] = field(default_factory=dict)
    """Of trials that run on another one."""
    more_members: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """Of the requests of trials that have some besides."""
    _live: list[_Live] = field(default_factory=list)
    _next_try: float = 0.0

    @property
    def jobs(self) -> dict[str, Any]:
        jobs: dict[str, Any] = self.records.setdefault("jobs", {})
        return jobs

    @property
    def are_over(self) -> bool:
        return not self._live and not self.waiting

    @property
    def last_label(self) -> str | None:
        """Of the only one on the usual type that lives, when none waits."""
        usual = self._usual()
        return usual[0] if len(usual) == 1 and not self.waiting else None

    def _usual(self) -> list[str]:
        return [one.trial.label for one in self._live if one.trial.label not in self.instance_types]

    def run(self, *, until: float) -> None:
        """Until all have ended, or until then, by the clock."""
        while not self.are_over and self.clock() < until:
            self.look()
            self.calls.pause(self.pace.look)

    def look(self) -> None:
        """Start what waits, describe what lives."""
        if self.waiting and (not self._live or self.clock() >= self._next_try):
            self._start_waiting()
        for live in list(self._live):
            self._look_at(live)

    def request(self, trial: Trial) -> Request:
        chosen = self.instance_types.get(trial.label, INSTANCE_TYPE)
        request = self.means.request(trial, instance_type=chosen)
        return changed(request, self.more_members.get(trial.label, {}))

    def start(self, trial: Trial) -> Said:
        """Raises MissingRightError."""
        said = self.calls.patient("sagemaker", "CreateTrainingJob", **self.request(trial))
        if said.code is None:
            job = {
                "name": self.means.name(trial.label),
                "created_at": said.at.isoformat(),
                "statuses": [],
            }
            self.jobs[trial.label] = job
            self._live.append(_Live(trial, job))
            self.say(f"{trial.label}: started")
        return said

    def stop(self, name: str) -> Said:
        return self.calls.patient("sagemaker", "StopTrainingJob", TrainingJobName=name)

    def _start_waiting(self) -> None:
        """Raises RefusedCallError when a start is refused for another reason than a limit."""
        self._next_try = self.clock() + _RETRY_SECONDS
        for trial in list(self.waiting):
            said = self.start(trial)
            if said.code is None:
                self.waiting.remove(trial)
                if trial.stop_in == STARTING:
                    self._stop(self._live[-1], STARTING)
            elif product_reading("CreateTrainingJob", said.as_json()) != LIMIT and not trial.keeps_warm:
                self.waiting.clear()
                raise RefusedCallError(f"CreateTrainingJob: {said.code}: {said.text}")
            elif not self._usual():  # nothing of ours holds the quota
                self.waiting.remove(trial)
                self.records.setdefault("not_started", {})[trial.label] = said.as_json()
                self.say(f"{trial.label}: refused: {said.code}")

    def _look_at(self, live: _Live) -> None:
        said = self.calls.ask("sagemaker", "DescribeTrainingJob", TrainingJobName=live.job["name"])
        if said.code is not None:  # throttled, or not known yet: the next look asks again
            return
        secondary = said.result["SecondaryStatus"]
        if live.job["statuses"][-1:] != [secondary]:
            live.job["statuses"].append(secondary)
            self.say(f"{live.trial.label}: {secondary}")
        if said.result["TrainingJobStatus"] in FINAL:
            self._end(live, said.result)
        elif live.trial.stop_in is not None and live.stopped is None:
            self._stop_when_due(live, secondary)

    def _stop_when_due(self, live: _Live, secondary: str) -> None:
        """One that was not caught where it should be is stopped as soon as it trains."""
        if secondary == TRAINING:
            live.training_since = live.training_since or self.clock()
            if self.clock() - live.training_since < self.pace.settle:
                return
        elif secondary != live.trial.stop_in:
            return
        self._stop(live, secondary)

    def _stop(self, live: _Live, secondary: str) -> None:
        said = self.stop(live.job["name"])
        if said.code is None:
            live.stopped = self.clock()
            live.job["stop"] = {"in": secondary, "at": said.at.isoformat()}

    def _end(self, live: _Live, described: Mapping[str, Any]) -> None:
        now = datetime.now(UTC)
        live.job["ended_at"] = now.isoformat()
        live.job["final"] = {name: plain(described[name]) for name in _KEPT if name in described}
        walked = [one["Status"] for one in described.get("SecondaryStatusTransitions", ())]
        live.job["statuses"] = walked or live.job["statuses"]
        if live.stopped is not None:
            live.job["stop"]["seconds"] = round(self.clock() - live.stopped, 1)
            live.job["stop"]["in"] = stopped_in(walked) or live.job["stop"]["in"]
        self._live.remove(live)
        self._next_try = 0.0


def stopped_in(walked: Sequence[str]) -> str | None:
    """The status that the stop met; None where the job's history does not say."""
    at = walked.index(_STOPPING) if _STOPPING in walked else 0
    return walked[at - 1] if at else None


def used_in(text: str) -> int | None:
    """Instances in use, as a refusal tells."""
    found = _USED.search(text)
    return int(found[1]) if found else None


def plain(value: Any) -> Any:  # noqa: ANN401  boto3's answers
    """As JSON has it."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds")
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list) else value
