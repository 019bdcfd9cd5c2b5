"""When a waiting job is certain to fit, and who may go before it."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from trainmaster.core.jobs.instances import Shape, Vector
from trainmaster.core.jobs.model import JobState
from trainmaster.core.planning.backfill import BackfillReservation, End, certain_ends, frees_by, reserve
from trainmaster.core.planning.snapshot import RunningJob, WaitingJob

from tests.builders import NOON, B, minutes, of, pool, running, snapshot, waiting

S = JobState


def at(minute: float) -> datetime:
    return NOON + minutes(minute)


@pytest.mark.parametrize(
    ("free", "ends", "when", "extra"),
    [
        pytest.param(of(0), [], None, {}, id="nothing is certain to end: no time, nothing extra"),
        pytest.param(of(1), [(at(5), of(1))], at(5), of(0), id="as soon as enough has ended"),
        pytest.param(
            of(0), [(at(5), of(1)), (at(7), of(2))], at(7), of(1), id="what is left beside it is extra"
        ),
        pytest.param(
            of(0), [(at(5), of(2)), (at(7), of(9))], at(5), of(0), id="what ends later is not extra"
        ),
        pytest.param(
            of(0),
            [(at(5), of(2)), (at(5), of(1))],
            at(5),
            of(1),
            id="of several that end at one instant all count",
        ),
        pytest.param(of(2), [(at(5), of(1))], NOON, of(0), id="just enough is enough"),
        pytest.param(of(3), [(at(5), of(1))], NOON, of(1), id="what warm pools give up is there at once"),
        pytest.param(of(0), [(at(-5), of(2))], NOON, of(0), id="an end that is overdue is not before now"),
        pytest.param(
            of(-1), [(at(5), of(2)), (at(9), of(1))], at(9), of(0), id="a lowered capacity is made up first"
        ),
        pytest.param(of(0), [(at(5), of(2, B))], None, {}, id="another type that ends helps nobody"),
    ],
)
def test_a_reservation(free: Vector, ends: list[End], when: datetime | None, extra: Vector) -> None:
    found = reserve(wide := waiting("wide", n=2), wide.shapes, free=free, ends=ends, now=NOON)
    assert (found.at, dict(found.extra)) == (when, extra)
    assert found.vector == of(2)


def test_of_several_shapes_the_one_that_fits_first_is_reserved() -> None:
    job = waiting("picky", shapes=(Shape(vector=of(2)), Shape(vector=of(1, B))))
    ends = [(at(3), of(1)), (at(5), of(1, B)), (at(9), of(1))]
    found = reserve(job, job.shapes, free={}, ends=ends, now=NOON)
    assert (found.at, found.vector) == (at(5), of(1, B))


def test_of_several_shapes_without_any_time_the_best_is_named() -> None:
    job = waiting("picky", shapes=(Shape(vector=of(2)), Shape(vector=of(1, B))))
    assert reserve(job, job.shapes, free={}, ends=[], now=NOON).vector == of(2)


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        pytest.param(running("r", ends_by=at(90)), at(90), id="training: run time and slack are over"),
        pytest.param(running("r"), None, id="not yet training: nothing is certain"),
        pytest.param(running("r", state=S.PREEMPTING), at(10), id="asked to stop: ten minutes"),
        pytest.param(
            running("r", state=S.STOPPING, ends_by=at(4)), at(4), id="asked to stop, and over sooner"
        ),
        pytest.param(
            running("r", state=S.PREEMPTING, ends_by=at(90)), at(10), id="asked to stop, not to run on"
        ),
    ],
)
def test_when_an_end_is_certain(job: RunningJob, expected: datetime | None) -> None:
    assert certain_ends([job], now=NOON) == ([] if expected is None else [(expected, of(1))])


def test_certain_ends_come_in_their_order() -> None:
    jobs = [running("late", ends_by=at(9), n=2), running("never"), running("soon", ends_by=at(3), n=3)]
    assert certain_ends(jobs, now=NOON) == [(at(3), of(3)), (at(9), of(2))]


AN_HOUR_ON = at(60)


def reserved(when: datetime | None = AN_HOUR_ON, extra: Vector | None = None) -> BackfillReservation:
    return BackfillReservation(job=waiting("first", n=2), vector=of(2), at=when, extra=dict(extra or {}))


@pytest.mark.parametrize(
    ("reservation", "vector", "ends_by", "admitted"),
    [
        pytest.param(reserved(), of(1), at(60), True, id="gone by then: may pass"),
        pytest.param(reserved(), of(1), at(61), False, id="not gone by then, and nothing is extra"),
        pytest.param(reserved(extra=of(1)), of(1), at(999), True, id="it takes what is extra"),
        pytest.param(reserved(extra=of(1)), of(2), at(999), False, id="it takes more than what is extra"),
        pytest.param(
            reserved(), of(7, B), at(999), True, id="types that the first does not want are anybody's"
        ),
        pytest.param(reserved(None, of(9)), of(1), at(1), False, id="no time is certain: nobody passes"),
    ],
)
def test_who_may_pass(
    reservation: BackfillReservation, vector: Vector, ends_by: datetime, *, admitted: bool
) -> None:
    assert reservation.admits(vector, ends_by=ends_by) is admitted


def test_what_passed_for_long_has_used_the_extra_up() -> None:
    reservation = reserved(extra=of(2))
    reservation.passed_by(of(1), ends_by=at(61))
    assert reservation.extra == of(1)
    reservation.passed_by(of(1), ends_by=at(60))
    assert reservation.extra == of(1), "what is gone by then uses nothing up"


@pytest.mark.parametrize(
    ("victim", "admitted"),
    [
        pytest.param(running("v", ends_by=at(61)), True, id="it would have held on to its instances"),
        pytest.param(running("v"), True, id="nobody knows when it would have ended"),
        pytest.param(running("v", ends_by=at(60)), False, id="the first counts on its end"),
    ],
)
def test_room_taken_from_a_running_job_is_extra_if_the_first_could_not_have_it(
    victim: RunningJob, *, admitted: bool
) -> None:
    reservation = reserved(extra=of(0))
    assert reservation.admits(of(1), ends_by=at(999), instead_of=[victim]) is admitted
    assert reservation.extra == of(0)
    reservation.passed_by(of(1), ends_by=at(999), instead_of=[victim])
    assert reservation.extra == of(0 if admitted else -1)


SPOT = (Shape(vector=of(1, spot=True)),)


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        pytest.param(
            waiting("j", runs_at_most=timedelta(hours=1)),
            at(30 + 60 + 10),
            id="on-demand: the wait for instances, its run time, and slack",
        ),
        pytest.param(
            waiting("j", shapes=SPOT, max_wait=timedelta(hours=3)),
            at(180 + 10),
            id="spot: MaxWait counts from creation, whatever the run time",
        ),
        pytest.param(
            waiting("j", shapes=SPOT, runs_at_most=timedelta(hours=2)),
            at(120 + 240 + 10),
            id="spot by choice of the planner: the policy's wait on top of the run time",
        ),
    ],
)
def test_when_a_job_that_starts_now_is_certain_to_be_gone(job: WaitingJob, expected: datetime) -> None:
    rules = replace(pool(), capacity_wait=minutes(30))
    world = snapshot(job, spot_max_wait=timedelta(hours=4))
    assert frees_by(job, job.shapes[0], rules, world, now=NOON) == expected
