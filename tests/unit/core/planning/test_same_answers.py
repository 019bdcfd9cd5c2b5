"""Jobs that are answered alike without a look of their own: the plan is the one with a look at each."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from trainmaster.core.jobs.instances import Shape, Vector, total
from trainmaster.core.jobs.model import JobState
from trainmaster.core.planning.actions import Preempt
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.queue_walk import QueueWalk
from trainmaster.core.planning.same_answers import SameAnswers
from trainmaster.core.planning.snapshot import Snapshot, WaitingJob
from trainmaster.core.policy import PoolPolicy, Preemption, PreemptionCost, WarmPool

from tests.builders import NOON, A, B, minutes, of, pool, running, snapshot, waiting
from tests.unit.core.planning.plans import quota, warm

PRICES = Preemption(cost=PreemptionCost(enabled=True))
RULES = replace(
    pool(0, preemption=PRICES),
    quotas={"vision": quota(2, 1), "speech": quota(1)},
    warm_pool=WarmPool(keep_alive=minutes(10), retain=minutes(10), max_idle=minutes(30)),
)
teams = st.sampled_from(["vision", "speech", "audio", "text"])
priorities, ages = st.sampled_from([0, 0, 100]), st.integers(1, 500)
vectors = st.sampled_from([of(1), of(1), of(2), of(1, B), of(1, spot=True)])
keys = st.sampled_from([None, "k"])
states = st.sampled_from([JobState.RUNNING, JobState.RUNNING, JobState.RUNNING, JobState.PREEMPTING])
ends = st.sampled_from([None, 5, 50, 500])


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Snapshot, PoolPolicy]:
    """Pools that are nearly full, of several teams, with idle instances and jobs of which much is alike."""
    lives = draw(
        st.lists(st.tuples(teams, priorities, ages, vectors, ends, ends, states), min_size=3, max_size=12)
    )
    asking = draw(st.lists(st.tuples(teams, priorities, ages, vectors, keys, ends), min_size=4, max_size=20))
    kept = tuple(warm(f"w{number}") for number in range(draw(st.integers(0, 2))))
    live = [
        running(
            f"r{number}",
            team=team,
            priority=priority,
            minutes_ago=age,
            vector=vector,
            ends_by=_after(ends_by),
            predicted=minutes(likely) if likely else None,
            state=state,
            stop_sent=state is JobState.PREEMPTING,
        )
        for number, (team, priority, age, vector, ends_by, likely, state) in enumerate(lives)
    ]
    queue = [_waiting(number, *one) for number, one in enumerate(asking)]
    warm_now = total(one.vector for one in kept)
    world = snapshot(*live, *queue, warm=warm_now, warm_pools=kept)
    room = total((world.used, warm_now, {next(iter(of())): draw(st.integers(0, 1))}))
    return world, _with_room(room)


def _after(minute: int | None) -> Any:
    return None if minute is None else NOON + minutes(minute)


def _waiting(
    number: int, team: str, priority: int, age: int, vector: Vector, key: str | None, ends_by: int | None
) -> Any:
    return waiting(
        f"w{number}",
        team=team,
        priority=priority,
        minutes_ago=age,
        shapes=(Shape(vector=vector, warm_key=key),),
        runs_at_most=minutes(ends_by or 60),
    )


def _with_room(room: Vector) -> PoolPolicy:
    counts = {str(one).removesuffix(":spot"): n for one, n in room.items() if not one.is_spot}
    spot = sum(n for one, n in room.items() if one.is_spot)
    return replace(RULES, capacity={A: 0, B: 0} | counts, spot_capacity={A: spot})


@given(worlds())
def test_the_plan_is_that_with_a_look_at_each(found: tuple[Snapshot, PoolPolicy]) -> None:
    world, rules = found
    quick = plan(world, rules, now=NOON)
    looked_at = SameAnswers.of
    try:
        SameAnswers.of = lambda *_, **__: None  # type: ignore[method-assign]
        assert plan(world, rules, now=NOON) == quick
    finally:
        SameAnswers.of = looked_at  # type: ignore[method-assign]


def test_a_borrower_is_looked_at_once_whatever_its_team_and_names_stay_within_teams() -> None:
    full = running("r", priority=9, n=2, team="audio")
    queue = [
        waiting(f"w{n}", team=team, minutes_ago=9 - n) for n, team in enumerate(("text", "audio", "sound"))
    ]
    rules = replace(pool(2, preemption=PRICES), quotas={"vision": quota(2)})
    world = snapshot(full, waiting("wide", n=2, team="text", minutes_ago=20), *queue)
    looks = []
    real = QueueWalk._waits

    def counted(self: QueueWalk, job: WaitingJob) -> bool:
        looks.append(job.name)
        return real(self, job)

    QueueWalk._waits = counted  # type: ignore[method-assign]
    try:
        reasons = plan(world, rules, now=NOON).reasons
    finally:
        QueueWalk._waits = real  # type: ignore[method-assign]
    assert looks == ["wide", "w0"]
    told = [reasons[name].message for name in ("w0", "w1", "w2")]
    assert [text.split(" is ahead")[0] for text in told] == ["wide", *["a job of team text"] * 2]


def test_one_that_asks_no_price_is_not_answered_by_one_that_does() -> None:
    """The first in turn came last, and its stop is not worth it yet; the last of them waited too long."""
    rules = pool(1, preemption=Preemption(cost=PreemptionCost(lost_work=100, longest_wait=minutes(10))))
    asking = [
        waiting(name, priority=1, minutes_ago=age, score=number, runs_at_most=minutes(30))
        for number, (name, age) in enumerate([("first", 1), ("second", 2), ("third", 3), ("late", 10)])
    ]
    holds = running("r", minutes_ago=600, predicted=minutes(600), ends_by=NOON + minutes(900))
    stops = [
        one for one in plan(snapshot(holds, *asking), rules, now=NOON).actions if isinstance(one, Preempt)
    ]
    assert [one.job.name for one in stops] == ["late"]


def test_one_that_ends_sooner_than_the_one_that_was_answered_is_looked_at() -> None:
    """It may take what is being freed before the first in line can start; the longer one may not."""
    world = snapshot(
        running("long", priority=9, ends_by=NOON + minutes(300)),
        running("leaving", state=JobState.PREEMPTING, stop_sent=True),
        waiting("wide", n=2, minutes_ago=9),
        waiting("slow", minutes_ago=8, runs_at_most=minutes(600)),
        waiting("slower", minutes_ago=7, runs_at_most=minutes(700)),
        waiting("quick", minutes_ago=6, runs_at_most=minutes(60)),
    )
    reasons = plan(world, pool(2), now=NOON).reasons
    assert [reasons[name].code for name in ("slow", "slower", "quick")] == ["ahead", "ahead", "capacity"]
    assert "are stopping" in reasons["quick"].message
