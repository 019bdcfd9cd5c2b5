"""Preemption with a price: never at a loss by the model's own count, and saving is never the worse choice."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from trainmaster.core.jobs.instances import Vector, total
from trainmaster.core.jobs.model import JobState
from trainmaster.core.planning.actions import Preempt, Start
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.snapshot import RunningJob, Snapshot, WaitingJob
from trainmaster.core.policy import PoolPolicy, Preemption, PreemptionCost, Quota

from tests.builders import NOON, A, minutes, pool, running, score_at, snapshot, waiting
from tests.properties.carrying_out import carry_out
from tests.properties.pools import always

HOUR = timedelta(hours=1)
DAYS = timedelta(days=7)


# ---- the model once more, read off its description and not off the code


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """What a preemption spares its preemptor, and what it costs."""

    spared: float
    lost: float


def hours(span: timedelta) -> float:
    return span / HOUR


def weight(priority: int, cost: PreemptionCost) -> float:
    return float(2 ** (priority / cost.double_every))


def unsaved(job: RunningJob, now: datetime) -> timedelta:
    if job.training_since is None:
        return timedelta()
    saved = job.checkpoint.last if job.has_checkpoint and job.checkpoint.last else job.training_since
    return now - max(saved, job.training_since)


def price(job: RunningJob, cost: PreemptionCost, now: datetime, *, taken: int, wait: float) -> float:
    lost = hours(unsaved(job, now))
    held = sum(job.vector.values())
    start = hours(max(cost.restart, (job.training_since or job.claimed_at) - job.claimed_at)) + 2 / 60
    work = cost.lost_work * lost / (1 + lost / hours(cost.unsaved))
    vain = 0.0 if is_settled(job, now) else hours((job.training_since or now) - job.claimed_at) + 2 / 3
    return weight(job.priority, cost) * (held * (work + start + vain) + taken * wait)


def is_settled(job: RunningJob, now: datetime) -> bool:
    """Its start was worth something: it has trained for five minutes."""
    return job.training_since is not None and now - job.training_since >= minutes(5)


def wait_and_price(action: Preempt, live: Sequence[RunningJob], cost: PreemptionCost, *, ahead: int) -> Count:
    """Of its own victims."""
    job, short = action.job, sum(action.short.values())
    wait = expected_wait(live, short + ahead, NOON)
    whole = hours(NOON - job.submitted_at) + wait
    lost = sum(
        price(one, cost, NOON, taken=min(short, sum(one.vector.values())), wait=wait)
        for one in action.victims
    )
    return Count(spared=3 * weight(job.priority, cost) * sum(job.vector.values()) * whole, lost=lost)


def is_free(victims: Sequence[RunningJob], live: Sequence[RunningJob], cost: PreemptionCost) -> bool:
    """Of a pool with one type: each loses little, or nothing is known of how long anybody trains."""
    is_guessed = all(one.expected.predicted is None for one in live)
    small = (is_settled(one, NOON) and unsaved(one, NOON) <= cost.small_loss for one in victims)
    return is_guessed or all(small)


def expected_wait(live: Sequence[RunningJob], needed: int, now: datetime) -> float:
    """Of a pool with one type: until as likely as not so many of those that nobody stops are over."""
    thirds: list[tuple[float, int]] = []
    holding = [one for one in live if one.state not in (JobState.PREEMPTING, JobState.STOPPING)]
    for one in holding:
        trained = 0.0 if one.training_since is None else hours(now - one.training_since)
        predicted = 4.0 if one.expected.predicted is None else hours(one.expected.predicted)
        left = predicted - trained if predicted > trained else trained
        latest = None if one.expected.ends_by is None else max(hours(one.expected.ends_by - now), 0.0)
        for times in (0.2, 1, 5):
            at = left * times
            thirds.append((at if latest is None else min(at, latest), sum(one.vector.values())))
    widths = [sum(one.vector.values()) for one in holding]
    width = sum(n * n for n in widths) / sum(widths) if widths else 1
    came, enough = 0.0, max(needed, width) - width / 2
    for at, count in sorted(thirds):
        came += count / 3
        if came >= enough - 1e-9:
            return at
    return max((at for at, _ in thirds), default=0.0)


# ---- pools of one type, with a price


@st.composite
def costs(draw: st.DrawFn) -> PreemptionCost:
    return PreemptionCost(
        enabled=True,
        double_every=draw(st.sampled_from([10, 50, 100])),
        lost_work=draw(st.sampled_from([1, 5])),
        restart=minutes(draw(st.sampled_from([0, 5]))),
        small_loss=minutes(draw(st.sampled_from([0, 10, 20]))),
        unsaved=minutes(draw(st.sampled_from([30, 24 * 60]))),
        longest_wait=None,
    )


@st.composite
def live_jobs(draw: st.DrawFn, number: int) -> RunningJob:
    age = draw(st.sampled_from([2, 20, 61, 300, 4000]))
    since = draw(st.sampled_from([None, NOON - minutes(age) + minutes(1), NOON - minutes(age / 2)]))
    return running(
        f"r{number}",
        minutes_ago=age,
        priority=draw(st.sampled_from([0, 50, 100])),
        n=draw(st.integers(1, 3)),
        training_since=since,
        last_checkpoint=draw(st.sampled_from([None, NOON - minutes(1), NOON - minutes(15)])),
        has_checkpoint=draw(st.booleans()),
        ends_by=draw(st.sampled_from([None, NOON + minutes(30), NOON + minutes(600)])),
        predicted=draw(st.sampled_from([None, minutes(30), minutes(100), minutes(5000)])),
        state=draw(st.sampled_from([*[JobState.RUNNING] * 5, JobState.STARTING])),
    )


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Snapshot, PoolPolicy]:
    live = [draw(live_jobs(number)) for number in range(draw(st.integers(1, 5)))]
    queue = [
        waiting(
            f"w{number}",
            priority=draw(st.sampled_from([10, 100, 120, 200])),
            minutes_ago=draw(st.sampled_from([0, 5, 45, 400])),
            n=draw(st.integers(1, 4)),
        )
        for number in range(draw(st.integers(1, 3)))
    ]
    used = sum(sum(one.vector.values()) for one in live)
    rules = replace(
        pool(used + draw(st.integers(0, 1))), preemption=Preemption(cost=draw(costs()), max_per_job=9)
    )
    return snapshot(*live, *queue), rules


def ahead_of(job: WaitingJob, queue: Sequence[WaitingJob], served: set[str]) -> int:
    """What those before it in the queue wait for without a preemption."""
    before = (one for one in queue if one.rank < job.rank and one.name not in served)
    return sum(sum(one.vector.values()) for one in before)


@always
@given(worlds())
def test_nobody_is_stopped_at_a_loss_by_the_models_own_count(world: tuple[Snapshot, PoolPolicy]) -> None:
    """But for what it does not count: small losses, and all of them while no length is known."""
    before, rules = world
    cost, queue, live = rules.preemption.cost, before.waiting, before.running
    actions = plan(before, rules, now=NOON).actions
    served = {one.job.name for one in actions if isinstance(one, Preempt | Start)}
    for action in actions:
        if isinstance(action, Preempt) and not is_free(action.victims, live, cost):
            ahead = ahead_of(action.job, queue, served)
            count = wait_and_price(action, before.running, cost, ahead=ahead)
            assert count.spared >= count.lost - 1e-9
        before = carry_out(action, before, now=NOON)


@always
@given(worlds())
def test_a_price_stops_others_only_where_those_of_the_lowest_priority_are_not_worth_it(
    world: tuple[Snapshot, PoolPolicy],
) -> None:
    """For the first that waits: with others before it more may be left. Greedy: up to twice the cheapest."""
    before, rules = world
    cost, live = rules.preemption.cost, before.running
    first = min(before.waiting, key=lambda one: one.rank)
    alone = replace(before, waiting=(first,))
    free = replace(rules, preemption=replace(rules.preemption, cost=PreemptionCost(enabled=False)))
    paid = [one for one in plan(alone, rules, now=NOON).actions if isinstance(one, Preempt)]
    unpaid = [one for one in plan(alone, free, now=NOON).actions if isinstance(one, Preempt)]
    assert len(paid) <= len(unpaid), "a price makes no preemption that there was not"
    for mine, other in zip(paid, unpaid, strict=False):
        count, instead = (wait_and_price(one, live, cost, ahead=0) for one in (mine, other))
        highest, lowest = (max(one.priority for one in each.victims) for each in (mine, other))
        assert highest >= lowest
        if highest > lowest:
            assert any(one.expected.predicted is not None for one in live)
            assert instead.spared < 2 * instead.lost + 1e-9, "the lowest priority is not worth it"
        if not is_free(mine.victims, live, cost):
            assert count.lost <= 2 * instead.lost + 1e-9


@always
@given(worlds())
def test_while_no_length_is_known_a_price_stops_as_many_and_none_of_a_higher_priority(
    world: tuple[Snapshot, PoolPolicy],
) -> None:
    before, rules = world
    unknown = (replace(one, expected=replace(one.expected, predicted=None)) for one in before.running)
    first = min(before.waiting, key=lambda one: one.rank)
    alone = replace(before, waiting=(first,), running=tuple(unknown))
    free = replace(rules, preemption=replace(rules.preemption, cost=PreemptionCost(enabled=False)))
    found = [
        [max(victim.priority for victim in one.victims) for one in actions if isinstance(one, Preempt)]
        for actions in (plan(alone, each, now=NOON).actions for each in (rules, free))
    ]
    assert found[0] == found[1]


@always
@given(worlds(), st.integers(0, 400))
def test_one_of_the_highest_priority_waits_no_longer_for_a_price_than_its_bound(
    world: tuple[Snapshot, PoolPolicy], bound: int
) -> None:
    """Then it stops others where it would without a price; before, and of a lower priority, as ever."""
    before, rules = world
    first = min(before.waiting, key=lambda one: one.rank)
    alone = replace(before, waiting=(first,))
    is_highest = all(one.priority <= first.priority for one in before.running)
    is_late = NOON - first.submitted_at >= minutes(bound)

    def stops(**cost: Any) -> list[tuple[RunningJob, ...]]:
        priced = replace(rules.preemption.cost, **cost)
        bounded = replace(rules, preemption=replace(rules.preemption, cost=priced))
        actions = plan(alone, bounded, now=NOON).actions
        return [one.victims for one in actions if isinstance(one, Preempt)]

    mine, without = stops(longest_wait=minutes(bound)), stops()
    if not (is_highest and is_late) or without:
        assert mine == without, "what is worth it stays as it is"
    else:
        assert len(mine) == len(stops(enabled=False))


# ---- saving is never the worse choice


@st.composite
def twins(draw: st.DrawFn) -> tuple[RunningJob, RunningJob, WaitingJob, PoolPolicy]:
    """Two jobs that differ in one thing: the first saved something; and who wants their instances."""
    age = draw(st.integers(1, 6000))
    fields: dict[str, Any] = {
        "minutes_ago": age,
        "priority": draw(st.sampled_from([0, 50, 100])),
        "n": draw(st.integers(1, 4)),
        "ends_by": draw(st.sampled_from([None, NOON + minutes(30), NOON + minutes(9000)])),
        "predicted": draw(st.sampled_from([None, minutes(30), minutes(7000)])),
    }
    saves = running("r", last_checkpoint=NOON - minutes(draw(st.integers(0, age))), **fields)
    never = running("r", has_checkpoint=False, **fields)
    by = waiting(
        "w",
        priority=draw(st.sampled_from([101, 150, 300])),
        minutes_ago=draw(st.integers(0, 300)),
        n=draw(st.integers(1, sum(saves.vector.values()))),
        score=saves.score - 1,
    )
    rules = replace(pool(sum(saves.vector.values())), preemption=Preemption(cost=draw(costs())))
    return saves, never, by, rules


def stopped_after(job: RunningJob, by: WaitingJob, rules: PoolPolicy) -> timedelta | None:
    """The first whole quarter of an hour in which it is stopped for the other; None: not within a week.

    It saves nothing more, and does not end; nor does anybody else.
    """
    quarter = minutes(15)
    for step in range(DAYS // quarter):
        now = NOON + step * quarter
        if plan(snapshot(job, by), rules, now=now).actions:
            return step * quarter
    return None


@always
@given(twins())
def test_of_two_equal_jobs_the_one_that_saves_loses_less_when_it_is_stopped_and_goes_on_sooner(
    case: tuple[RunningJob, RunningJob, WaitingJob, PoolPolicy],
) -> None:
    """Whoever saves nothing may be stopped later: then what it trained in between is lost with the rest."""
    saves, never, by, rules = case
    first, second = stopped_after(saves, by, rules), stopped_after(never, by, rules)
    if second is None:
        return
    assert first is not None
    assert first <= second
    loses = unsaved(saves, NOON + first)
    loses_all = unsaved(never, NOON + second)
    assert loses_all >= loses + (second - first), "it pays for the time that it held on for"


@always
@given(twins())
def test_no_job_is_out_of_reach(case: tuple[RunningJob, RunningJob, WaitingJob, PoolPolicy]) -> None:
    """What it has not saved counts for so much at most, and the wait counts more with each hour."""
    _, never, by, rules = case
    cost, held = rules.preemption.cost, sum(never.vector.values())
    most = weight(never.priority, cost) * held * (cost.lost_work * hours(cost.unsaved) + 2)
    gained_an_hour = 3 * weight(by.priority, cost) * sum(by.vector.values())
    patient = most / gained_an_hour
    late = replace(by, submitted_at=NOON - timedelta(hours=patient), score=never.score - 1)
    alone = snapshot(replace(never, expected=replace(never.expected, ends_by=NOON)), late)
    assert plan(alone, rules, now=NOON).actions


# ---- no thrash


@st.composite
def crowds(draw: st.DrawFn) -> tuple[list[WaitingJob], PoolPolicy]:
    """Jobs of two teams in the order in which they come."""
    queue = [
        waiting(
            f"w{number}",
            team=draw(st.sampled_from(["red", "blue"])),
            priority=draw(st.sampled_from([0, 1, 100, 200])),
            n=draw(st.integers(1, 2)),
        )
        for number in range(draw(st.integers(2, 6)))
    ]
    preemption = Preemption(
        cost=draw(costs()),
        min_runtime=minutes(draw(st.sampled_from([0, 10, 30]))),
        max_per_job=100,
    )
    quotas = {"red": Quota(nominal={A: 1}), "blue": Quota(nominal={A: 1})} if draw(st.booleans()) else {}
    return queue, replace(pool(draw(st.integers(2, 4))), preemption=preemption, quotas=quotas)


@always
@given(crowds())
def test_two_jobs_never_swap_twice_within_the_least_run_time(
    case: tuple[list[WaitingJob], PoolPolicy],
) -> None:
    """Hours of a pool in which nobody ends: jobs come, train, are stopped and wait again."""
    queue, rules = case
    world, asked = snapshot(), dict[str, WaitingJob]()
    swaps: dict[frozenset[str], list[datetime]] = {}
    for step in range(60):
        now = NOON + minutes(5 * step)
        if queue and step % 4 == 0:
            came = replace(queue[0], submitted_at=now, score=score_at(queue[0].priority, -5 * step))
            queue, asked = queue[1:], asked | {came.name: came}
            world = replace(world, waiting=(*world.waiting, came))
        for action in plan(world, rules, now=now).actions:
            if isinstance(action, Preempt):
                for victim in action.victims:
                    swaps.setdefault(frozenset({action.job.name, victim.name}), []).append(now)
            world = carry_out(action, world, now=now)
        world = moved_on(world, asked, now=now)
    for times in swaps.values():
        assert all(later - earlier >= rules.preemption.min_runtime for earlier, later in pairwise(times))


def moved_on(world: Snapshot, asked: dict[str, WaitingJob], *, now: datetime) -> Snapshot:
    """What started trains, of a known kind, and what was asked to stop waits again."""
    live = [one for one in world.running if one.state is not JobState.PREEMPTING]
    known = (replace(one, expected=replace(one.expected, predicted=minutes(240))) for one in live)
    trains = tuple(
        one if one.training_since is not None else replace(one, training_since=now) for one in known
    )
    back = [asked[one.name] for one in world.running if one not in live]
    used: Vector = total(one.vector for one in trains)
    return replace(world, running=trains, waiting=(*world.waiting, *back), used=used)
