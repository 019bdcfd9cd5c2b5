"""What a pass decides, as cases and as properties."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trainmaster.core.jobs.instances import Vector, total
from trainmaster.core.jobs.model import JobState
from trainmaster.core.planning.actions import LimitReservation, Preempt, Start
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.snapshot import PreemptionReservation, RunningJob, Snapshot, WaitingJob
from trainmaster.core.policy import Preemption

from tests.builders import NOON, A, B, minutes, of, pool, running, snapshot, waiting
from tests.unit.core.planning.plans import decided, said

S = JobState


def code_of(world: Snapshot, name: str, capacity: int = 2) -> str:
    return plan(world, pool(capacity), now=NOON).reasons[name].code


@pytest.mark.parametrize(
    ("world", "expected"),
    [
        pytest.param(snapshot(), [], id="nothing waits, nothing to do"),
        pytest.param(snapshot(waiting("a")), [("start", "a")], id="fits: started"),
        pytest.param(
            snapshot(waiting("late"), waiting("early", minutes_ago=5)),
            [("start", "early"), ("start", "late")],
            id="equal priority: in the order of entry",
        ),
        pytest.param(
            snapshot(waiting("old", minutes_ago=60), waiting("new", priority=1)),
            [("start", "new"), ("start", "old")],
            id="a step of priority outweighs an hour of waiting",
        ),
        pytest.param(
            snapshot(waiting("old", minutes_ago=25 * 60), waiting("new", priority=1)),
            [("start", "old"), ("start", "new")],
            id="a day and more of waiting outweighs a step of priority",
        ),
        pytest.param(
            snapshot(running("r", priority=9), waiting("wide", n=2), waiting("small", minutes_ago=-1)),
            [],
            id="what does not fit keeps its instances from those behind it",
        ),
        pytest.param(
            snapshot(running("r", priority=9), waiting("impossible", n=3), waiting("small", minutes_ago=-1)),
            [("start", "small")],
            id="what can never fit stands in nobody's way",
        ),
        pytest.param(
            snapshot(running("job1", priority=1), running("job2", priority=2), waiting("job3", priority=1)),
            [],
            id="equal priority does not preempt",
        ),
        pytest.param(
            snapshot(
                running("job1", priority=1),
                running("job2", priority=2),
                waiting("job3", priority=1),
                waiting("job4", priority=3),
            ),
            [("preempt for", "job4", "job1")],
            id="the four jobs: job4 takes the room of the lowest priority",
        ),
        pytest.param(
            snapshot(running("x", priority=5, n=2), waiting("wide", priority=6, n=3)),
            [],
            id="all or nothing: nobody is stopped for a job that still would not fit",
        ),
        pytest.param(
            snapshot(
                running("old", minutes_ago=3000), running("top", priority=9), waiting("new", priority=1)
            ),
            [],
            id="never preempted by what it outranks: two days of age beat one point",
        ),
        pytest.param(
            snapshot(
                running("a", priority=1, state=S.PREEMPTING, stop_sent=True),
                running("b", priority=2),
                waiting("next", priority=3),
            ),
            [],
            id="room is on its way: nobody else is stopped",
        ),
        pytest.param(
            snapshot(running("r", state=S.PREEMPTING), running("s", state=S.STOPPING)),
            [("stop", "r"), ("stop", "s")],
            id="asked to stop but not told: told now",
        ),
        pytest.param(
            snapshot(running("r", state=S.STOPPING, known_to_sagemaker=False)),
            [],
            id="a stop waits for the create it would stop",
        ),
        pytest.param(
            snapshot(running("r", state=S.PREEMPTING, stop_sent=True)),
            [],
            id="told once is enough",
        ),
        pytest.param(
            snapshot(waiting("a"), due=(waiting("b"),), paused=True),
            [("unpark", "b")],
            id="paused: the queue is kept, nothing starts",
        ),
    ],
)
def test_plan(world: Snapshot, expected: list[tuple[str, ...]]) -> None:
    assert decided(world) == expected


@pytest.mark.parametrize(
    ("rules", "victim", "expected"),
    [
        pytest.param({"enabled": False}, {}, [], id="switched off"),
        pytest.param({"min_priority_gap": 4}, {}, [], id="gap not reached"),
        pytest.param({"min_priority_gap": 3}, {}, [("preempt for", "new", "r")], id="gap reached"),
        pytest.param({"min_runtime": minutes(31)}, {}, [], id="too young"),
        pytest.param({"min_runtime": minutes(30)}, {}, [("preempt for", "new", "r")], id="old enough"),
        pytest.param(
            {"min_runtime": minutes(31)},
            {"training_since": None},
            [("preempt for", "new", "r")],
            id="not yet in Training: at once",
        ),
        pytest.param({"max_per_job": 3}, {"preemptions": 3}, [], id="stopped often enough"),
        pytest.param({"needs_checkpoint": True}, {"has_checkpoint": False}, [], id="would lose everything"),
        pytest.param({}, {"preemptible": False}, [], id="asked not to be"),
        pytest.param(
            {"preempt_delay": minutes(5)}, {"ends_by": NOON + minutes(5)}, [], id="ends soon enough"
        ),
        pytest.param(
            {"preempt_delay": minutes(5)},
            {"ends_by": NOON + minutes(6)},
            [("preempt for", "new", "r")],
            id="ends too late",
        ),
    ],
)
def test_knobs_of_preemption(
    rules: dict[str, Any], victim: dict[str, Any], expected: list[tuple[str, ...]]
) -> None:
    world = snapshot(running("r", **victim), waiting("new", priority=3))
    assert decided(world, 1, **rules) == expected


HELD_FOR_SECOND = PreemptionReservation(preemptor="second", vector=of(1), victims=("r",))
HELD_FOR_NEW = PreemptionReservation(preemptor="new", vector=of(1), victims=("old",))


def test_freed_room_is_kept_for_the_preemptor() -> None:
    world = snapshot(waiting("new", priority=3), waiting("thief", priority=900), holds=(HELD_FOR_NEW,))
    assert decided(world, 1) == [("limit hold of", "new"), ("start", "new")]
    assert code_of(world, "thief", 1) == "capacity"


def test_a_start_says_how_much_may_be_in_use_before_it() -> None:
    world = snapshot(running("r"), waiting("a"), waiting("new"), holds=(HELD_FOR_NEW,))
    starts = {a.job.name: a.most_used for a in plan(world, pool(5), now=NOON).actions if isinstance(a, Start)}
    assert starts == {"a": of(3), "new": of(4)}


def test_a_hold_without_stopping_victims_gets_a_deadline() -> None:
    world = snapshot(running("r", n=2), waiting("new"), holds=(HELD_FOR_NEW,))
    (action,) = plan(world, pool(2), now=NOON).actions
    assert action == LimitReservation(hold=HELD_FOR_NEW, until=NOON + minutes(15))


def test_a_hold_lives_until_its_deadline_and_gets_no_second_one() -> None:
    held = replace(HELD_FOR_NEW, until=NOON + minutes(0.1))
    world = snapshot(waiting("other"), waiting("new", n=2), holds=(held,))
    assert decided(world, 1) == []
    assert decided(world, 1, now=NOON + minutes(0.1)) == [("drop hold of", "new"), ("start", "other")]


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"gone_preemptors": frozenset({"new"})}, id="the preemptor is gone"),
        pytest.param(
            {"holds": (PreemptionReservation(preemptor="new", vector=of(1), victims=(), until=NOON),)},
            id="its time is over",
        ),
    ],
)
def test_a_dead_hold_frees_its_room_in_the_same_pass(fields: dict[str, Any]) -> None:
    world = snapshot(waiting("other"), **{"holds": (HELD_FOR_NEW,)} | fields)
    assert decided(world, 1) == [("drop hold of", "new"), ("start", "other")]


def test_another_type_is_not_held_up_by_what_does_not_fit() -> None:
    world = snapshot(
        running("r", priority=9), waiting("wide", n=2), waiting("b", minutes_ago=-1, vector=of(1, B))
    )
    made = plan(world, pool(2, b=1), now=NOON)
    assert [said(action) for action in made.actions] == [("start", "b")]


def test_spot_and_on_demand_are_counted_apart() -> None:
    world = snapshot(waiting("s", vector=of(1, A, spot=True)))
    assert decided(world) == []
    assert code_of(world, "s") == "capacity"


def test_every_waiting_job_has_a_reason_with_a_number_or_a_name() -> None:
    world = snapshot(running("r", n=2), waiting("first", minutes_ago=2), waiting("second"))
    reasons = plan(world, pool(2), now=NOON).reasons
    assert {name: (reason.code, reason.message) for name, reason in reasons.items()} == {
        "first": ("capacity", f"needs {A}=1, free {A}=0"),
        "second": ("ahead", f"first is ahead and waits for {A}=1"),
    }


def test_the_names_of_other_teams_jobs_are_not_told() -> None:
    world = snapshot(
        running("r", n=2, team="vision"),
        waiting("first", priority=3, n=2, team="vision"),
        waiting("second", team="speech"),
    )
    stopping = replace(world.running[0], state=S.PREEMPTING, stop_sent=True)
    holding = replace(world, running=(stopping,), holds=(HELD_FOR_SECOND,))
    told = [plan(one, pool(2), now=NOON).reasons for one in (world, holding)]
    assert [reasons["second"].message for reasons in told] == [
        "a job of team vision is ahead and waits for ml.a.xlarge=2",
        "a job of team vision is stopping to make room for ml.a.xlarge=1",
    ]
    assert told[0]["first"].message == "r is stopping to make room for ml.a.xlarge=2"


priorities, ages, widths = st.integers(0, 5), st.integers(0, 5000), st.integers(1, 4)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Snapshot, int]:
    """Full and nearly full pools: where decisions are hard."""
    lives = draw(
        st.lists(st.tuples(priorities, ages, widths, st.sampled_from([S.RUNNING, S.RUNNING, S.PREEMPTING])))
    )
    heads = draw(st.lists(st.tuples(priorities, ages, widths), min_size=1))
    live = [
        running(f"r{i}", priority=p, minutes_ago=age, n=n, state=state, stop_sent=state is not S.RUNNING)
        for i, (p, age, n, state) in enumerate(lives)
    ]
    queue = [waiting(f"w{i}", priority=p, minutes_ago=age, n=n) for i, (p, age, n) in enumerate(heads)]
    in_use = sum(sum(job.vector.values()) for job in live)
    return snapshot(*live, *queue), in_use + draw(st.integers(-2, 4))


def vectors_of(jobs: list[WaitingJob] | list[RunningJob]) -> Vector:
    return total(job.vector for job in jobs)


@given(worlds())
def test_starts_never_lift_use_above_capacity(world_and_capacity: tuple[Snapshot, int]) -> None:
    world, capacity = world_and_capacity
    starts = [a.job for a in plan(world, pool(max(capacity, 0)), now=NOON).actions if isinstance(a, Start)]
    after = total((world.used, vectors_of(starts)))
    assert not starts or sum(after.values()) <= capacity


@given(worlds())
def test_every_candidate_starts_or_has_a_reason(world_and_capacity: tuple[Snapshot, int]) -> None:
    world, capacity = world_and_capacity
    made = plan(world, pool(max(capacity, 0)), now=NOON)
    started = {action.job.name for action in made.actions if isinstance(action, Start)}
    assert started | set(made.reasons) == {job.name for job in world.waiting}
    assert not started & set(made.reasons)


@given(worlds())
def test_a_preemption_is_enough_minimal_and_only_of_lower_ranks(
    world_and_capacity: tuple[Snapshot, int],
) -> None:
    world, capacity = world_and_capacity
    made = plan(world, pool(max(capacity, 0)), now=NOON)
    stopped: list[RunningJob] = [one for one in world.running if one.state is S.PREEMPTING]
    given_away = dict(world.used)
    for action in made.actions:
        if isinstance(action, Start):
            given_away = total((given_away, action.job.vector))
        if isinstance(action, Preempt):
            for victim in action.victims:
                assert victim.priority < action.job.priority
                assert victim.rank > action.job.rank
                assert victim not in stopped
            stopped += action.victims
    wanted = [action.job for action in made.actions if isinstance(action, Preempt)]
    coming = sum(sum(one.vector.values()) for one in stopped)
    asked = sum(sum(one.vector.values()) for one in wanted)
    assert not wanted or sum(given_away.values()) - coming + asked <= max(capacity, 0)


@given(worlds(), st.randoms(use_true_random=False))
def test_the_order_of_what_was_read_does_not_matter(
    world_and_capacity: tuple[Snapshot, int], random: Any
) -> None:
    world, capacity = world_and_capacity
    shuffled = snapshot(
        *random.sample([*world.running, *world.waiting], len(world.running) + len(world.waiting))
    )
    rules = pool(max(capacity, 0))
    first, second = plan(world, rules, now=NOON), plan(shuffled, rules, now=NOON)
    kinds = (Start, Preempt)
    assert [said(a) for a in first.actions if isinstance(a, kinds)] == [
        said(a) for a in second.actions if isinstance(a, kinds)
    ]


def test_the_hour_of_the_pass_is_the_only_clock() -> None:
    world = snapshot(running("r", minutes_ago=10), waiting("new", priority=3))
    rules = pool(1, preemption=Preemption(min_runtime=minutes(15)))
    assert plan(world, rules, now=NOON).actions == ()
    assert len(plan(world, rules, now=NOON + timedelta(minutes=5)).actions) == 1
