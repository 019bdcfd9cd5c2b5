"""What comes next in a study."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from trainmaster_client.tuning.proposals import proposed
from trainmaster_client.tuning.study import (
    SUBMISSION_SECONDS,
    Seen,
    Study,
    StudyStatus,
    Trial,
    TrialStatus,
    advanced,
    from_document,
    stopped,
    to_document,
)
from trainmaster_client.tuning.tuning_requests import TuningPlan

from tests.builders import NOON
from tests.unit.client.tuning.requests import request

LATER = NOON + timedelta(minutes=5)


def new(**changes: Any) -> Study:
    return Study(request=request(**changes), created_at=NOON, modified_at=NOON)


def after(study: Study, *looks: Seen | None) -> Study:
    """After a look at its live trials, in their order."""
    seen = {one.name: look for one, look in zip(study.live, looks, strict=True)}
    return advanced(study, seen, TuningPlan.parse(study.request), proposed, now=LATER)


def completed(value: float | None = 1.0) -> Seen:
    return Seen(status=TrialStatus.COMPLETED, started_at=NOON, ended_at=LATER, value=value)


FAILED = Seen(status=TrialStatus.FAILED, ended_at=LATER, failure="exit code 1")
RUNS = Seen(started_at=NOON)


def states(study: Study) -> list[str]:
    return [one.seen.status.value for one in study.trials]


def test_as_many_trials_are_written_down_as_may_run_at_once() -> None:
    study = after(new())
    assert [one.number for one in study.live] == [1, 2]
    assert after(study, RUNS, RUNS) == replace(
        study, trials=tuple(replace(one, seen=RUNS) for one in study.trials), modified_at=LATER
    )


def test_an_ended_trial_makes_place_for_the_next_until_the_budget_is_used() -> None:
    study = after(after(new()), completed(), RUNS)
    assert states(study) == ["Completed", "InProgress", "InProgress"]
    study = after(after(study, RUNS, completed()), completed(), FAILED)
    assert states(study) == ["Completed", "Completed", "Completed", "Failed"]
    assert (study.status, study.ended_at) == (StudyStatus.COMPLETED, LATER)
    assert after(study) == study


def test_a_study_all_of_whose_trials_failed_has_failed() -> None:
    study = after(after(after(new()), FAILED, FAILED), FAILED, FAILED)
    assert study.status is StudyStatus.FAILED
    assert study.failure.startswith("All training jobs failed")


def test_five_failures_at_the_beginning_fail_it_before_its_budget_is_used() -> None:
    limits = {"MaxNumberOfTrainingJobs": 50, "MaxParallelTrainingJobs": 5}
    study = after(after(new(ResourceLimits=limits)), *[FAILED] * 5)
    assert (len(study.trials), study.status) == (5, StudyStatus.FAILED)
    assert study.failure.startswith("No training job succeeded after 5 attempts")
    study = after(after(new(ResourceLimits=limits)), *[FAILED] * 4, completed())
    assert (len(study.live), study.status) == (5, StudyStatus.IN_PROGRESS)


def test_a_target_that_is_reached_ends_it_when_its_other_trials_have_ended() -> None:
    study = new(TuningJobCompletionCriteria={"TargetObjectiveMetricValue": 0.5})
    study = after(after(study), completed(0.5), RUNS)
    assert (study.ending, study.ended_at, len(study.trials)) == (StudyStatus.COMPLETED, None, 2)
    study = after(study, Seen(status=TrialStatus.STOPPED, ended_at=LATER))
    assert study.status is StudyStatus.COMPLETED


def test_it_ends_when_nothing_got_better_for_long_enough() -> None:
    criteria = {"BestObjectiveNotImproving": {"MaxNumberOfTrainingJobsNotImproving": 3}}
    limits = {"MaxNumberOfTrainingJobs": 50, "MaxParallelTrainingJobs": 1}
    study = after(new(TuningJobCompletionCriteria=criteria, ResourceLimits=limits))
    for value in (3.0, 2.0, 2.0, 4.0):
        study = after(study, completed(value))
    assert study.status is StudyStatus.IN_PROGRESS
    assert after(study, completed(5.0)).status is StudyStatus.COMPLETED


def test_a_stopped_study_starts_nothing_and_is_stopped_when_its_trials_have_ended() -> None:
    study = stopped(after(new()), now=LATER)
    assert study.status is StudyStatus.STOPPING
    study = after(study, completed(), RUNS)
    assert (states(study), study.status) == (["Completed", "InProgress"], StudyStatus.STOPPING)
    study = after(study, Seen(status=TrialStatus.STOPPED, ended_at=LATER))
    assert study.status is StudyStatus.STOPPED
    assert stopped(study, now=LATER) == study


def test_a_trial_that_was_never_submitted_is_stopped_once_nobody_submits_it_any_more() -> None:
    def one(age: int) -> Study:
        at = LATER - timedelta(seconds=age)
        trial = Trial(number=1, name="one", parameters={}, proposed_at=at)
        return replace(stopped(new(), now=NOON), trials=(trial,))

    assert states(after(one(SUBMISSION_SECONDS - 1), None)) == ["InProgress"]
    assert states(after(one(SUBMISSION_SECONDS), None)) == ["Stopped"]


def test_the_best_trial_is_the_first_with_the_best_value() -> None:
    study = after(after(after(new()), completed(2.0), completed(1.0)), completed(1.0), completed(None))
    objective = TuningPlan.parse(study.request).objective
    best = study.best(objective)
    assert best is not None
    assert best.number == 2
    other = study.best(replace(objective, is_maximized=True))
    assert other is not None
    assert other.number == 1


def test_what_is_stored_is_read_as_it_was() -> None:
    study = stopped(after(after(new()), completed(2.0), FAILED), now=LATER)
    assert from_document(json.loads(json.dumps(to_document(study)))) == study
    with pytest.raises(ValueError, match="version 2"):
        from_document({"version": 2})
