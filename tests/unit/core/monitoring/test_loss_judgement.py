"""The rule on the loss: what is found, what is announced, and when the job is stopped."""

import math
from datetime import timedelta
from typing import Any

import pytest
from trainmaster.core.jobs.attempts import LossWatch, Reason
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.monitoring.loss_judgement import judged
from trainmaster.core.monitoring.metric_lines import MetricValue
from trainmaster.core.policy.loss_rule import Divergence, LossReaction, LossRule, Plateau

from tests.builders import NOON, attempt, live_job, minutes

STOP = LossReaction.STOP
RULE = LossRule(
    non_finite=STOP, divergence=Divergence(then=STOP), plateau=Plateau(for_=minutes(60), then=STOP)
)
NAN, INF = math.nan, math.inf
HALF_AN_HOUR = minutes(30)
EARLIER = NOON - HALF_AN_HOUR


def trains(loss: LossWatch | None = None, **live: Any) -> Job:
    values: dict[str, Any] = {"training_since": EARLIER, "secondary_status": "Training", "loss": loss}
    return live_job("job1", live=attempt("job1", **values | live))


def values(*losses: float) -> tuple[MetricValue, ...]:
    return tuple(MetricValue(value=loss, step=100 + number) for number, loss in enumerate(losses))


def known(lowest: str = "1.0", at: timedelta = -HALF_AN_HOUR, **found: Any) -> LossWatch:
    return LossWatch(lowest=lowest, lowest_at=NOON + at, **found)


def loss_of(job: Job) -> LossWatch:
    assert job.live is not None
    assert job.live.loss is not None
    return job.live.loss


def found(*losses: float, loss: LossWatch | None = None, rule: LossRule = RULE) -> str | None:
    finding = loss_of(judged(trains(loss), values(*losses), rule, now=NOON)).finding
    return None if finding is None else f"{finding.code}: {finding.message}"


def test_a_loss_that_is_not_finite_is_found_with_its_value_and_step() -> None:
    assert found(2, 1, NAN, NAN, NAN) == "loss-not-finite: train:loss is nan at step 102: it is not finite"
    assert found(INF, -INF, NAN) == "loss-not-finite: train:loss is inf at step 100: it is not finite"


def test_single_bad_values_are_not_a_breach() -> None:
    assert found(NAN, NAN, 1) is None
    assert found(NAN, 1, NAN) is None
    assert found(1, 1, 1, 1, 99) is None


def test_fewer_than_three_values_change_nothing() -> None:
    job = trains(known(finding=Reason(code=ReasonCode.LOSS_DIVERGED, message="x")))
    assert judged(job, values(NAN, NAN), RULE, now=NOON) == job


def test_a_loss_has_diverged_above_the_factor_times_its_lowest_level() -> None:
    assert found(3, 3, 3, loss=known("1.0")) is None
    says = "loss-diverged: train:loss is 3.1 at step 102: above 3 times its lowest level, 1"
    assert found(3.1, 3.1, 3.1, loss=known("1.0")) == says


@pytest.mark.parametrize("lowest", ["0.0", "-1.0"])
def test_a_lowest_level_of_zero_or_less_tells_no_divergence(lowest: str) -> None:
    assert found(9, 9, 9, loss=known(lowest)) is None


def test_a_plateau_is_no_lower_level_for_as_long_as_the_policy_says() -> None:
    assert found(1, 1, 1, loss=known(at=-minutes(59))) is None
    says = "loss-plateau: train:loss is 1 at step 102: not lower than 1 for 1h"
    assert found(1, 1, 1, loss=known(at=-minutes(60))) == says
    assert found(0.99, 0.99, 0.99, loss=known(at=-minutes(60))) is None


def test_a_lower_level_counts_from_min_delta_on() -> None:
    rule = LossRule(plateau=Plateau(for_=minutes(60), min_delta=0.1))
    late = known(at=-minutes(60))
    assert found(0.95, 0.95, 0.95, loss=late, rule=rule) is not None
    assert found(0.85, 0.85, 0.85, loss=late, rule=rule) is None
    after = judged(trains(late), values(0.85, 0.85, 0.85), rule, now=NOON)
    assert (loss_of(after).lowest, loss_of(after).lowest_at) == ("0.85", NOON)


def test_only_what_the_policy_names_is_judged() -> None:
    rule = LossRule()
    assert found(9, 9, 9, loss=known("1.0", at=-minutes(999)), rule=rule) is None
    assert found(NAN, NAN, NAN, rule=rule) is not None


def test_its_owner_is_warned_before_the_stop_and_only_notified_where_the_policy_says_so() -> None:
    bad = values(NAN, NAN, NAN)
    warned = judged(trains(), bad, RULE, now=NOON)
    assert (warned.state, loss_of(warned).stop_due) == (JobState.RUNNING, NOON + minutes(10))
    notified = judged(trains(), bad, LossRule(), now=NOON)
    assert (notified.state, loss_of(notified).stop_due) == (JobState.RUNNING, None)
    assert loss_of(judged(warned, bad, LossRule(), now=NOON + minutes(10))).stop_due is None


def test_a_job_is_stopped_when_it_is_due_with_the_value_and_step_it_was_warned_of() -> None:
    warned = judged(trains(), values(NAN, NAN, NAN), RULE, now=NOON)
    later = (MetricValue(value=INF, step=900),) * 3
    assert judged(warned, later, RULE, now=NOON + minutes(9)) == warned
    stopped = judged(warned, later, RULE, now=NOON + minutes(10))
    assert stopped.reason == Reason(
        code=ReasonCode.LOSS_NOT_FINITE, message="train:loss is nan at step 100: it is not finite"
    )
    assert stopped.state is JobState.STOPPING


def test_a_loss_that_recovers_takes_the_announced_stop_back() -> None:
    warned = judged(trains(), values(NAN, NAN, NAN), RULE, now=NOON)
    well = judged(warned, values(1, 1, 1), RULE, now=NOON + minutes(10))
    assert (well.state, loss_of(well)) == (
        JobState.RUNNING,
        LossWatch(lowest="1", lowest_at=NOON + minutes(10)),
    )


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(trains(secondary_status="Uploading"), id="it uploads"),
        pytest.param(trains(training_since=None), id="it does not train yet"),
        pytest.param(live_job("job1", state=JobState.STOPPING, live=attempt("job1")), id="it stops"),
        pytest.param(live_job("job1", state=JobState.PREEMPTING, live=attempt("job1")), id="it is preempted"),
    ],
)
def test_a_job_that_does_not_train_is_left_alone(job: Job) -> None:
    assert judged(job, values(NAN, NAN, NAN), RULE, now=NOON) == job
