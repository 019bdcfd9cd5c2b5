"""What ends the wait of a job whose preemptions did not help, and what it does meanwhile."""

from typing import Any

import pytest
from trainmaster.core.jobs.futile_preemptions import FutilePreemptions, ServedStart, served_by
from trainmaster.core.jobs.instances import Capacity, Choice, Shape, Vector
from trainmaster.core.jobs.model import JobState
from trainmaster.core.planning.preemption_waits import PreemptionWaits
from trainmaster.core.planning.snapshot import RunningJob, Snapshot, WaitingJob
from trainmaster_client.simulate.engine.idle_plans import may_act

from tests.builders import NOON, A, B, attempt, minutes, of, pool, running, snapshot, waiting
from tests.unit.core.planning.plans import decided, quota, shared, told

BOTH = {Capacity(A): 2, Capacity(B): 2}


def futile(count: int = 1, *, vector: Vector | None = None, **fields: Any) -> FutilePreemptions:
    """The last one ended ten minutes ago; five are left to wait."""
    values: dict[str, Any] = {"since": NOON - minutes(10), "until": NOON + minutes(5)}
    return FutilePreemptions(count=count, vector=vector or of(4), **values | fields)


def urgent(**fields: Any) -> WaitingJob:
    values: dict[str, Any] = {"priority": 500, "n": 4, "futile": futile()}
    return waiting("urgent", **values | fields)


def victims(count: int = 4, **fields: Any) -> list[RunningJob]:
    return [running(f"v{number}", priority=1, **fields) for number in range(count)]


def later(name: str, n: int, *, ago: float = 5, **fields: Any) -> RunningJob:
    """One that reached Training so many minutes ago."""
    return running(name, priority=900, n=n, training_since=NOON - minutes(ago), **fields)


@pytest.mark.parametrize(
    ("waits", "found"),
    [
        pytest.param(futile(), (), id="it waits"),
        pytest.param(futile(until=NOON), ("v0", "v1", "v2", "v3"), id="its time is over"),
        pytest.param(None, ("v0", "v1", "v2", "v3"), id="nothing was futile"),
    ],
)
def test_it_stops_nobody_until_its_time_is_over(
    waits: FutilePreemptions | None, found: tuple[str, ...]
) -> None:
    world = snapshot(*victims(), urgent(futile=waits))
    assert tuple(name for step in decided(world, 4) for name in step[2:]) == found
    assert may_act(world, pool(4), now=NOON) == bool(found)


def test_it_starts_into_what_is_free_at_once() -> None:
    assert decided(snapshot(*victims(2), urgent()), 6) == [("start", "urgent")]


def test_it_starts_in_another_of_its_shapes() -> None:
    shapes = (Shape(vector=of(4)), Shape(vector=of(2, B)))
    world = snapshot(*victims(), urgent(shapes=shapes))
    assert decided(world, pool(4, b=2)) == [("start", "urgent")]


def test_it_says_until_when_it_waits_and_what_would_end_that() -> None:
    code, message = told(snapshot(*victims(), urgent(futile=futile(2))), pool(4), "urgent")
    assert code == "capacity"
    assert message == (
        "needs ml.a.xlarge=4, free ml.a.xlarge=0; the last 2 times that jobs were stopped for it, it did not"
        " get to train: it stops no job until 2026-11-02 12:05 UTC, or until AWS serves ml.a.xlarge=4 to some"
        " job; it starts at once where enough is free"
    )


def test_a_part_of_a_minute_is_waited_out() -> None:
    until = NOON + minutes(4.5)
    _, message = told(snapshot(*victims(), urgent(futile=futile(until=until))), pool(4), "urgent")
    assert "until 2026-11-02 12:05 UTC" in message
    assert "the last time that jobs were stopped for it" in message


def test_a_team_at_its_borrowing_limit_says_both() -> None:
    rules = shared(8, {"default": quota(4, 0)})
    world = snapshot(*victims(), urgent())
    code, message = told(world, rules, "urgent")
    assert code == "quota"
    assert "it stops no job until 2026-11-02 12:05 UTC" in message
    assert decided(world, rules) == []


def test_it_takes_nothing_back_from_borrowers_meanwhile() -> None:
    rules = shared(4, {"default": quota(4), "other": quota(0)})
    borrowers = victims(team="other")
    assert decided(snapshot(*borrowers, urgent()), rules) == []
    assert decided(snapshot(*borrowers, urgent(futile=None)), rules) != []


def test_another_job_of_the_same_shape_and_priority_preempts_beside_it() -> None:
    world = snapshot(*victims(), urgent(), waiting("other", priority=500, n=4))
    assert decided(world, 4) == [("preempt for", "other", "v0", "v1", "v2", "v3")]


def test_what_it_does_not_get_is_not_kept_free_for_it() -> None:
    """A job that runs for longer than those ahead would wait starts all the same."""
    behind = waiting("behind", priority=1, runs_at_most=minutes(6000))
    assert decided(snapshot(*victims(3), urgent(), behind), 4) == [("start", "behind")]
    assert ("start", "behind") not in decided(snapshot(*victims(3), urgent(futile=None), behind), 4)


SERVED = {
    (Capacity(A), 2): ServedStart(instances=4, at=NOON - minutes(9)),
}


@pytest.mark.parametrize(
    ("world", "ends"),
    [
        pytest.param(snapshot(later("x", 3)), False, id="a smaller attempt trains"),
        pytest.param(snapshot(later("x", 4)), True, id="an equal one"),
        pytest.param(snapshot(later("x", 5)), True, id="a larger one"),
        pytest.param(snapshot(later("x", 4, ago=10)), False, id="not since"),
        pytest.param(snapshot(running("x", n=4, training_since=None)), False, id="not in Training yet"),
        pytest.param(snapshot(later("x", 4, vector=of(4, B))), False, id="another type"),
        pytest.param(snapshot(later("x", 4, vector=of(4, spot=True))), False, id="on spot"),
        pytest.param(snapshot(later("x", 2), later("y", 2)), False, id="several small ones"),
        pytest.param(
            snapshot(later("x", 8, ago=20), later("y", 5), later("z", 1)), True, id="the larger one not since"
        ),
        pytest.param(snapshot(later("x", 8, ago=20), later("z", 3)), False, id="nor any other of as many"),
        pytest.param(snapshot(later("x", 4, state=JobState.PREEMPTING)), True, id="one that stops"),
        pytest.param(snapshot(served=SERVED), True, id="one that has ended since"),
        pytest.param(
            snapshot(served={(Capacity(A), 1): ServedStart(instances=3, at=NOON)}), False, id="a smaller"
        ),
    ],
)
def test_what_aws_served_since_ends_the_wait(world: Snapshot, *, ends: bool) -> None:
    assert (PreemptionWaits(snapshot=world, now=NOON).of(urgent()) is None) == ends


@pytest.mark.parametrize(
    ("choice", "trains", "ends"),
    [
        pytest.param(Choice.FIRST_FIT, [of(2)], False, id="of several types one is not enough"),
        pytest.param(Choice.FIRST_FIT, [of(2), of(2, B)], True, id="all of them are"),
        pytest.param(Choice.SAGEMAKER, [of(2, B)], True, id="where SageMaker chooses, one is enough"),
    ],
)
def test_of_several_types(choice: Choice, trains: list[Vector], *, ends: bool) -> None:
    job = urgent(futile=futile(vector=BOTH, choice=choice))
    live = [later(f"x{number}", 2, vector=vector) for number, vector in enumerate(trains)]
    assert (PreemptionWaits(snapshot=snapshot(*live), now=NOON).of(job) is None) == ends


def test_an_attempt_that_ends_leaves_what_it_was_served() -> None:
    shape = Shape(vector={Capacity(A): 5, Capacity(B): 1})
    over = attempt(shape=shape, training_since=NOON)
    assert served_by(over, at=NOON + minutes(60)) == {
        (Capacity(A), 2): ServedStart(instances=5, at=NOON),
        (Capacity(B), 0): ServedStart(instances=1, at=NOON),
    }
    assert served_by(over, at=NOON + minutes(241)) == {}, "no wait is that long"
    assert served_by(attempt(shape=shape), at=NOON) == {}
