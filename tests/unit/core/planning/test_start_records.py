"""How likely AWS is to have no instances, as the starts of a type have ended."""

from datetime import UTC, datetime, timedelta

import pytest
from trainmaster.core.jobs.instances import Capacity, CapacityType
from trainmaster.core.planning.start_records import StartLesson, StartRecords

from tests.builders import A, B, minutes, of

ON_DEMAND, SPOT = Capacity(A), Capacity(A, CapacityType.SPOT)
NIGHT = datetime(2026, 3, 2, tzinfo=UTC)
WEEK = timedelta(days=7)


def recorded(*lessons: StartLesson) -> StartRecords:
    records = StartRecords()
    for lesson in lessons:
        records = records.after(lesson)
    return records


def lesson(*, trained: bool, at: datetime = NIGHT, instance_type: str = A) -> StartLesson:
    return StartLesson(vector=of(2, instance_type=instance_type), trained=trained, at=at)


BAD, GOOD = lesson(trained=False), lesson(trained=True)


@pytest.mark.parametrize(
    ("lessons", "chance"),
    [
        pytest.param((), 0.0, id="no start: none"),
        pytest.param((GOOD, GOOD), 0.0, id="all trained: none"),
        pytest.param((BAD,), 1 / 3, id="one bad end beside the two that are granted"),
        pytest.param((BAD, BAD, GOOD), 2 / 5, id="two of three"),
        pytest.param((*[BAD] * 98,), 0.98, id="never certain"),
        pytest.param((lesson(trained=False, instance_type=B),), 0.0, id="another type"),
    ],
)
def test_the_chance_is_the_share_of_bad_ends(lessons: tuple[StartLesson, ...], chance: float) -> None:
    assert recorded(*lessons).no_capacity_chance(ON_DEMAND, now=NIGHT) == pytest.approx(chance, abs=1e-3)


def test_a_start_that_ended_a_week_ago_counts_half() -> None:
    records = recorded(BAD, lesson(trained=True, at=NIGHT + WEEK))
    chance = records.no_capacity_chance(ON_DEMAND, now=NIGHT + WEEK)
    assert chance == pytest.approx(0.5 / (0.5 + 1 + 2), abs=1e-3)


def test_the_chance_fades_over_the_new_year_and_is_forgotten() -> None:
    december = datetime(2026, 12, 28, tzinfo=UTC)
    records = recorded(lesson(trained=False, at=december))
    assert records.no_capacity_chance(ON_DEMAND, now=december + WEEK) == pytest.approx(0.5 / 2.5, abs=1e-3)
    assert records.no_capacity_chance(ON_DEMAND, now=december + timedelta(days=400)) == 0


def test_it_stays_the_same_from_midnight_to_midnight() -> None:
    records = recorded(BAD, GOOD)
    at_night, at_noon = (
        records.no_capacity_chance(ON_DEMAND, now=NIGHT + WEEK + add)
        for add in (
            minutes(0),
            minutes(720),
        )
    )
    assert at_night == at_noon


def test_spot_and_on_demand_instances_are_told_apart() -> None:
    assert recorded(BAD).no_capacity_chance(SPOT, now=NIGHT) == 0


def test_several_types_are_as_scarce_as_the_scarcest() -> None:
    records, vector = recorded(BAD), {**of(1), **of(1, instance_type=B)}
    assert records.chance_of(vector, now=NIGHT) == records.no_capacity_chance(ON_DEMAND, now=NIGHT) > 0


@pytest.mark.parametrize(
    ("later", "is_told"),
    [(timedelta(hours=23), True), (timedelta(days=1), False)],
)
def test_the_last_bad_end_is_told_for_a_day(later: timedelta, *, is_told: bool) -> None:
    at = recorded(BAD, lesson(trained=True, at=NIGHT + minutes(5))).last_no_capacity_end(
        ON_DEMAND, now=NIGHT + later
    )
    assert at == (NIGHT if is_told else None)
