"""A study: the trials of a tuning job, what is known of them, and what comes next. Pure.

A trial is recorded before it is submitted, and submitted under a name that follows from its number. So a
process that dies between any two calls leaves nothing that the next one does not find.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from trainmaster_client.tuning.search_space import Parameters
from trainmaster_client.tuning.tuning_requests import Document, Objective, TuningPlan, trial_name

HOPELESS_TRIALS = 5
"""The study fails when this many trials have failed and none has completed. Source: SageMaker's own message,
"No training job succeeded after 5 attempts"."""
SUBMISSION_SECONDS = 60
"""The process that recorded a trial submits it within this time, or another one does."""


class TrialStatus(StrEnum):
    """Values of TrainingJobStatus. A trial that waits in the queue is in progress."""

    IN_PROGRESS = "InProgress"
    COMPLETED = "Completed"
    FAILED = "Failed"
    STOPPED = "Stopped"


class StudyStatus(StrEnum):
    IN_PROGRESS = "InProgress"
    STOPPING = "Stopping"
    COMPLETED = "Completed"
    FAILED = "Failed"
    STOPPED = "Stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A trial's job, over all its attempts, as it is now."""

    status: TrialStatus = TrialStatus.IN_PROGRESS
    started_at: datetime | None = None
    ended_at: datetime | None = None
    value: float | None = None
    """Value of the objective; None if the job has not ended or did not report the metric."""
    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    number: int
    name: str
    parameters: Parameters
    proposed_at: datetime
    seen: Seen = field(default_factory=Seen)

    @property
    def is_live(self) -> bool:
        return self.seen.status is TrialStatus.IN_PROGRESS


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A trial of another study, which this study learns from."""

    parameters: Parameters
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    request: Document
    """The CreateHyperParameterTuningJob request as the caller sent it."""
    created_at: datetime
    modified_at: datetime
    trials: tuple[Trial, ...] = ()
    inherited: tuple[Outcome, ...] = ()
    ending: StudyStatus | None = None
    """Status that the study gets when its last trial has ended, and no trial is added once it is set; None
    while trials may be added."""
    failure: str = ""
    ended_at: datetime | None = None

    @property
    def live(self) -> tuple[Trial, ...]:
        return tuple(trial for trial in self.trials if trial.is_live)

    @property
    def status(self) -> StudyStatus:
        if self.ended_at is not None and self.ending is not None:
            return self.ending
        return StudyStatus.STOPPING if self.ending is StudyStatus.STOPPED else StudyStatus.IN_PROGRESS

    def best(self, objective: Objective) -> Trial | None:
        """Return the best trial so far, the first of equals; None while no trial has a value."""
        best: Trial | None = None
        for trial in self.trials:
            value = trial.seen.value
            if value is None:
                continue
            if best is None or best.seen.value is None or objective.is_better(value, best.seen.value):
                best = trial
        return best


Propose = Callable[[TuningPlan, Study, int], Parameters]
"""Chooses the parameters of the trial with this number."""


def advanced(
    study: Study, seen: Mapping[str, Seen | None], plan: TuningPlan, propose: Propose, *, now: datetime
) -> Study:
    """Return the study after a look at its live trials: ended, or with the trials that are to be submitted.

    Args:
        study: The study as it is stored.
        seen: Each live trial that was looked at, by name; None if the queue has no such job.
        plan: The plan parsed from the study's request.
        propose: Must be repeatable: the same arguments give the same parameters.
        now: When the trials were looked at.
    """
    after = _observed(study, seen, now=now)
    if after.ending is None:
        after = _judged(after, plan)
    if after.ending is None:
        after = _extended(after, plan, propose, now=now)
    elif not after.live and after.ended_at is None:
        after = replace(after, ended_at=now)
    return after if after == study else replace(after, modified_at=now)


def stopped(study: Study, *, now: datetime) -> Study:
    """Return the study as StopHyperParameterTuningJob leaves it; one that is ending already is unchanged."""
    if study.ending is not None:
        return study
    return replace(study, ending=StudyStatus.STOPPED, modified_at=now)


def _observed(study: Study, seen: Mapping[str, Seen | None], *, now: datetime) -> Study:
    return replace(study, trials=tuple(_updated(trial, seen, study, now=now) for trial in study.trials))


def _updated(trial: Trial, seen: Mapping[str, Seen | None], study: Study, *, now: datetime) -> Trial:
    if not trial.is_live or trial.name not in seen:
        return trial
    look = seen[trial.name]
    if look is not None:
        return replace(trial, seen=look)
    is_late = now - trial.proposed_at >= timedelta(seconds=SUBMISSION_SECONDS)
    if study.ending is not None and is_late:  # nobody submits it any more
        return replace(trial, seen=Seen(status=TrialStatus.STOPPED, ended_at=now))
    return trial


def _judged(study: Study, plan: TuningPlan) -> Study:
    """Set how the study ends, by the first rule that fits; return it unchanged while none does."""
    statuses = [trial.seen.status for trial in study.trials if not trial.is_live]
    has_failed, has_completed = (kind in statuses for kind in (TrialStatus.FAILED, TrialStatus.COMPLETED))
    best = study.best(plan.objective)
    value = best.seen.value if best else None
    if statuses.count(TrialStatus.FAILED) >= HOPELESS_TRIALS and not has_completed:
        why = (
            f"No training job succeeded after {HOPELESS_TRIALS} attempts. Look at the failures of its trials."
        )
        return replace(study, ending=StudyStatus.FAILED, failure=why)
    if value is not None and plan.target is not None and plan.objective.is_reached(value, plan.target):
        return replace(study, ending=StudyStatus.COMPLETED)
    if plan.most_without_progress and without_progress(study, plan.objective) >= plan.most_without_progress:
        return replace(study, ending=StudyStatus.COMPLETED)
    if study.live or len(study.trials) < plan.most_trials:
        return study
    if has_failed and not has_completed:
        why = "All training jobs failed. Look at the failures of its trials."
        return replace(study, ending=StudyStatus.FAILED, failure=why)
    return replace(study, ending=StudyStatus.COMPLETED)


def without_progress(study: Study, objective: Objective) -> int:
    """Count the ended trials since the best one, in the order in which they ended."""
    count, best = 0, None
    for value in _values_by_end(study.trials):
        if best is None or objective.is_better(value, best):
            count, best = 0, value
        else:
            count += 1
    return count


def _values_by_end(trials: Sequence[Trial]) -> Iterator[float]:
    ended = [trial for trial in trials if trial.seen.ended_at is not None and trial.seen.value is not None]
    for trial in sorted(ended, key=lambda trial: (trial.seen.ended_at, trial.number)):
        assert trial.seen.value is not None
        yield trial.seen.value


def _extended(study: Study, plan: TuningPlan, propose: Propose, *, now: datetime) -> Study:
    free = min(plan.most_at_once - len(study.live), plan.most_trials - len(study.trials))
    for _ in range(free):
        number = len(study.trials) + 1
        trial = Trial(
            number=number,
            name=trial_name(plan.name, number),
            parameters=propose(plan, study, number),
            proposed_at=now,
        )
        study = replace(study, trials=(*study.trials, trial))
    return study


def to_document(study: Study) -> dict[str, Any]:
    """Return the JSON document that is stored in S3."""
    return {
        "version": 1,
        "request": study.request,
        "created_at": study.created_at.isoformat(),
        "modified_at": study.modified_at.isoformat(),
        "trials": [_trial_document(trial) for trial in study.trials],
        "inherited": [
            {"parameters": outcome.parameters, "value": outcome.value} for outcome in study.inherited
        ],
        "ending": study.ending,
        "failure": study.failure,
        "ended_at": _text(study.ended_at),
    }


def from_document(document: Mapping[str, Any]) -> Study:
    """Raises KeyError, TypeError or ValueError for a document that is not a study of this release."""
    if document["version"] != 1:
        raise ValueError(f"version {document['version']}")
    return Study(
        request=document["request"],
        created_at=datetime.fromisoformat(document["created_at"]),
        modified_at=datetime.fromisoformat(document["modified_at"]),
        trials=tuple(_trial(entry) for entry in document["trials"]),
        inherited=tuple(
            Outcome(parameters=entry["parameters"], value=entry["value"]) for entry in document["inherited"]
        ),
        ending=None if document["ending"] is None else StudyStatus(document["ending"]),
        failure=document["failure"],
        ended_at=_instant(document["ended_at"]),
    )


def _trial_document(trial: Trial) -> dict[str, Any]:
    return {
        "number": trial.number,
        "name": trial.name,
        "parameters": trial.parameters,
        "proposed_at": trial.proposed_at.isoformat(),
        "status": trial.seen.status,
        "started_at": _text(trial.seen.started_at),
        "ended_at": _text(trial.seen.ended_at),
        "value": trial.seen.value,
        "failure": trial.seen.failure,
    }


def _trial(document: Mapping[str, Any]) -> Trial:
    return Trial(
        number=document["number"],
        name=document["name"],
        parameters=document["parameters"],
        proposed_at=datetime.fromisoformat(document["proposed_at"]),
        seen=Seen(
            status=TrialStatus(document["status"]),
            started_at=_instant(document["started_at"]),
            ended_at=_instant(document["ended_at"]),
            value=document["value"],
            failure=document["failure"],
        ),
    )


def _text(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
