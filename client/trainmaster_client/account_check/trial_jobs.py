"""Trials: started as the quota allows, described until they end, and stopped in the status each names."""

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
"""Pattern of the count in ResourceLimitExceeded's text, which the product shows and never reads."""
_STOPPING = "Stopping"
_RETRY_SECONDS = 15.0
"""Seconds between tries of a start that the quota refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Durations of the check in seconds; the twin runs faster than AWS."""

    look: float = 3.0
    settle: float = 10.0
    """Time in Training before a trial is stopped: its program has to have begun."""
    jobs: float = 720.0
    """Time limit of all trials together."""
    events: float = 60.0
    """Time to wait for the remaining events once all trials have ended and one end was reported."""
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
    """Instances of the trials' type that the account may have; None if unknown."""
    clock: Callable[[], float] = time.monotonic
    waiting: list[Trial] = field(default_factory=list)
    instance_types: dict[str, str] = field(default_factory=dict)
    """Instance type by label of each trial that does not run on the usual one."""
    more_members: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """Additional request members by label of the trial."""
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
        """Label of the only trial left on the usual type; None while others live or wait."""
        usual = self._usual()
        return usual[0] if len(usual) == 1 and not self.waiting else None

    def _usual(self) -> list[str]:
        return [live.trial.label for live in self._live if live.trial.label not in self.instance_types]

    def run(self, *, until: float) -> None:
        """Look at the trials until all have ended or the clock reaches ``until``."""
        while not self.are_over and self.clock() < until:
            self.look()
            self.calls.pause(self.pace.look)

    def look(self) -> None:
        """Start waiting trials if it is time for another try, and describe the live ones."""
        if self.waiting and (not self._live or self.clock() >= self._next_try):
            self._start_waiting()
        for live in list(self._live):
            self._look_at(live)

    def request(self, trial: Trial) -> Request:
        chosen = self.instance_types.get(trial.label, INSTANCE_TYPE)
        request = self.means.request(trial, instance_type=chosen)
        return changed(request, self.more_members.get(trial.label, {}))

    def start(self, trial: Trial) -> Said:
        """Send the trial's CreateTrainingJob and follow the job. Raises MissingRightError."""
        call = self.calls.patient("sagemaker", "CreateTrainingJob", **self.request(trial))
        if call.code is None:
            job = {
                "name": self.means.name(trial.label),
                "created_at": call.at.isoformat(),
                "statuses": [],
            }
            self.jobs[trial.label] = job
            self._live.append(_Live(trial, job))
            self.say(f"{trial.label}: started")
        return call

    def stop(self, name: str) -> Said:
        return self.calls.patient("sagemaker", "StopTrainingJob", TrainingJobName=name)

    def _start_waiting(self) -> None:
        """Start each waiting trial.

        Raises:
            RefusedCallError: AWS refuses one for another reason than a limit.
        """
        self._next_try = self.clock() + _RETRY_SECONDS
        for trial in list(self.waiting):
            call = self.start(trial)
            if call.code is None:
                self.waiting.remove(trial)
                if trial.stop_in == STARTING:
                    self._stop(self._live[-1], STARTING)
            elif product_reading("CreateTrainingJob", call.as_json()) != LIMIT and not trial.keeps_warm:
                self.waiting.clear()
                raise RefusedCallError(f"CreateTrainingJob: {call.code}: {call.text}")
            elif not self._usual():  # nothing of ours holds the quota
                self.waiting.remove(trial)
                self.records.setdefault("not_started", {})[trial.label] = call.as_json()
                self.say(f"{trial.label}: refused: {call.code}")

    def _look_at(self, live: _Live) -> None:
        call = self.calls.ask("sagemaker", "DescribeTrainingJob", TrainingJobName=live.job["name"])
        if call.code is not None:  # throttled, or not known yet: the next look asks again
            return
        secondary = call.result["SecondaryStatus"]
        if live.job["statuses"][-1:] != [secondary]:
            live.job["statuses"].append(secondary)
            self.say(f"{live.trial.label}: {secondary}")
        if call.result["TrainingJobStatus"] in FINAL:
            self._end(live, call.result)
        elif live.trial.stop_in is not None and live.stopped is None:
            self._stop_when_due(live, secondary)

    def _stop_when_due(self, live: _Live, secondary: str) -> None:
        """Stop a trial in its status; one that was not caught there is stopped in Training."""
        if secondary == TRAINING:
            live.training_since = live.training_since or self.clock()
            if self.clock() - live.training_since < self.pace.settle:
                return
        elif secondary != live.trial.stop_in:
            return
        self._stop(live, secondary)

    def _stop(self, live: _Live, secondary: str) -> None:
        call = self.stop(live.job["name"])
        if call.code is None:
            live.stopped = self.clock()
            live.job["stop"] = {"in": secondary, "at": call.at.isoformat()}

    def _end(self, live: _Live, described: Mapping[str, Any]) -> None:
        now = datetime.now(UTC)
        live.job["ended_at"] = now.isoformat()
        live.job["final"] = {name: plain(described[name]) for name in _KEPT if name in described}
        walked = [transition["Status"] for transition in described.get("SecondaryStatusTransitions", ())]
        live.job["statuses"] = walked or live.job["statuses"]
        if live.stopped is not None:
            live.job["stop"]["seconds"] = round(self.clock() - live.stopped, 1)
            live.job["stop"]["in"] = stopped_in(walked) or live.job["stop"]["in"]
        self._live.remove(live)
        self._next_try = 0.0


def stopped_in(walked: Sequence[str]) -> str | None:
    """Return the status that the stop met; None if the job's history does not say."""
    at = walked.index(_STOPPING) if _STOPPING in walked else 0
    return walked[at - 1] if at else None


def used_in(text: str) -> int | None:
    """Return the number of instances in use that a refusal names; None if it names none."""
    match = _USED.search(text)
    return int(match[1]) if match else None


def plain(value: Any) -> Any:  # noqa: ANN401  boto3's answers
    """Return the value as JSON has it: times as ISO 8601 text in UTC."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds")
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items()}
    return [plain(element) for element in value] if isinstance(value, list) else value
