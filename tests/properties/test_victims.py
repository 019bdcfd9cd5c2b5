"""Whom a preemption stops, beside every set of jobs that it might have stopped."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st
from trainmaster.core.jobs.instances import Vector, fits, total
from trainmaster.core.jobs.model import JobState
from trainmaster.core.planning.preemption import Preemptor
from trainmaster.core.planning.quotas import Quotas
from trainmaster.core.planning.snapshot import RunningJob
from trainmaster.core.planning.victims import Victims
from trainmaster.core.policy import Preemption, Quota

from tests.builders import NOON, B, minutes, of, running, waiting
from tests.properties.pools import TEAMS, always, shape

MOST = 3
RULES = Preemption(max_per_job=MOST)
VECTORS = st.sampled_from([of(1), of(1), of(2), of(3), of(5), of(1, B), {**of(1), **of(1, B)}])


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A job that does not fit, and whom it finds."""

    preemptor: Preemptor
    running: tuple[RunningJob, ...]
    tiers: dict[str, int]
    free: Vector

    @property
    def victims(self) -> tuple[RunningJob, ...]:
        quotas = Quotas(quotas={"vision": Quota()} if self.tiers else {}, tiers=self.tiers)
        index = Victims.of(self.running, quotas, rules=RULES, now=NOON)
        return index.chosen_for(self.preemptor, free=self.free).victims

    def is_enough(self, victims: tuple[RunningJob, ...]) -> bool:
        return fits(self.preemptor.shape.vector, total((self.free, *(one.vector for one in victims))))


@st.composite
def needs(draw: st.DrawFn) -> Need:
    live = tuple(
        running(
            f"r{number}",
            vector=draw(VECTORS),
            priority=draw(st.integers(0, 3)),
            team=draw(st.sampled_from(TEAMS)),
            minutes_ago=draw(st.integers(0, 60)),
            training_since=draw(st.sampled_from([None, NOON - minutes(30), NOON - minutes(90)])),
            last_checkpoint=draw(st.sampled_from([None, NOON - minutes(5), NOON - minutes(20)])),
            preemptible=draw(st.integers(0, 6)) > 0,
            state=draw(st.sampled_from([*[JobState.RUNNING] * 6, JobState.STARTING])),
            preemptions=draw(st.sampled_from([0, 0, 0, MOST])),
            cents_per_hour=draw(st.sampled_from([None, 100, 900])),
            warm_key=draw(st.sampled_from([None, "k"])),
        )
        for number in range(draw(st.integers(1, 6)))
    )
    job = waiting("w", priority=draw(st.integers(0, 4)), minutes_ago=draw(st.integers(0, 90)), team="vision")
    asked = shape(draw(VECTORS))
    names = [job.name, *(one.name for one in live)]
    tiers = {name: draw(st.integers(0, 1)) for name in names} if draw(st.booleans()) else {}
    free = {**of(draw(st.integers(0, 1))), **of(draw(st.integers(0, 1)), B)}
    preemptor = Preemptor(job=job, shape=asked, tier=tiers.get("w", 0))
    return Need(preemptor=preemptor, running=live, tiers=tiers, free=free)


@always
@given(needs())
def test_somebody_is_stopped_exactly_when_some_set_of_jobs_would_be_enough(need: Need) -> None:
    if need.is_enough(()):
        return
    found = need.victims
    assert bool(found) is any(True for _ in sufficient(need))
    assert all(may_stop(one, need) for one in found)


@always
@given(needs())
def test_whoever_is_stopped_is_enough_and_nobody_of_them_is_needed_less(need: Need) -> None:
    found = need.victims
    if not found:
        return
    assert need.is_enough(found)
    for spared in found:
        assert not need.is_enough(tuple(one for one in found if one is not spared))


@always
@given(needs())
def test_no_other_set_spares_those_within_their_quota_or_of_higher_priority(need: Need) -> None:
    found = need.victims
    if found:
        assert _rank(found, need) == min(_rank(one, need) for one in sufficient(need))


@always
@given(needs())
def test_no_single_job_of_the_same_rank_would_have_lost_less(need: Need) -> None:
    found = need.victims
    for one in sufficient(need) if found else ():
        if len(one) == 1 and _rank(one, need) == _rank(found, need):
            assert _lost(found) <= _lost(one)


def sufficient(need: Need) -> Iterator[tuple[RunningJob, ...]]:
    """Every set of jobs it may stop that makes enough room."""
    whom = [one for one in need.running if may_stop(one, need)]
    for size in range(1, len(whom) + 1):
        yield from (one for one in combinations(whom, size) if need.is_enough(one))


def may_stop(one: RunningJob, need: Need) -> bool:
    """The rules, stated apart from the planner; all other knobs are at their defaults."""
    job, mine, theirs = need.preemptor.job, need.preemptor.tier, need.tiers.get(one.name, 0)
    by_priority = job.priority > one.priority and (mine == theirs or one.team == job.team)
    by_quota = mine == 0 and theirs == 1 and one.team != job.team
    behind = (theirs, one.score, one.name) > (mine, job.score, job.name)
    allowed = one.state is JobState.RUNNING and one.preemptible
    return allowed and behind and ((by_priority and one.preemptions < MOST) or by_quota)


def _rank(victims: tuple[RunningJob, ...], need: Need) -> tuple[int, int]:
    """Lower is better: borrowers only, then the highest priority that is hit."""
    covered = any(need.tiers.get(one.name, 0) == 0 for one in victims)
    return (1 if covered else 0, max(one.priority for one in victims))


def _lost(victims: tuple[RunningJob, ...]) -> float:
    return sum(_lost_by(one) for one in victims)


def _lost_by(one: RunningJob) -> float:
    """Cents of training since its last checkpoint; without a price an instance-hour is a dollar."""
    if one.training_since is None:
        return 0
    saved = max(one.checkpoint.last or one.training_since, one.training_since)
    rate = one.cents_per_hour if one.cents_per_hour is not None else 100 * sum(one.vector.values())
    return rate * (NOON - saved).total_seconds() / 3600
