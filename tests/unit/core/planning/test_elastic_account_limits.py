"""Plans with elastic jobs whose widths the account does not all allow."""

from typing import Any

import pytest
from trainmaster.core.jobs.instances import Capacity
from trainmaster.core.jobs.start_troubles import AccountRefusals
from trainmaster.core.planning.actions import Grow, Start
from trainmaster.core.planning.refusal_records import AccountLimit
from trainmaster.core.planning.snapshot import PreemptionReservation, WaitingJob

from tests.builders import NOON, A, minutes, of, snapshot
from tests.unit.core.planning.test_elastic_plans import (
    TWO_TO_EIGHT,
    elastic_running,
    elastic_waiting,
    of_kind,
    planned,
    pool,
)


def learned(limit: int, *, until: float) -> dict[str, Any]:
    """What the account is known to allow of the type."""
    return {
        "account_limits": {Capacity(A): AccountLimit(limit=limit, until=NOON + minutes(until), refusals=1)}
    }


@pytest.mark.parametrize(
    ("job", "until", "width"),
    [
        pytest.param(elastic_waiting(), 5, 2, id="within the limit while nobody may try more"),
        pytest.param(elastic_waiting(), 0, 4, id="once one may try, it finds out whether the limit stands"),
        pytest.param(
            elastic_waiting(refused=AccountRefusals(count=1, again_at=NOON)),
            0,
            2,
            id="once it was refused itself, within the limit",
        ),
    ],
)
def test_a_start_under_an_account_limit(job: WaitingJob, until: float, width: int) -> None:
    (start,) = of_kind(Start, planned(snapshot(job, **learned(2, until=until))))
    assert start.shape.vector == of(width)


@pytest.mark.parametrize(("again", "starts"), [(0, 1), (5, 0)], ids=["in its time", "not before"])
def test_only_its_least_width_waits_for_an_account_limit(again: float, starts: int) -> None:
    refused = AccountRefusals(count=1, again_at=NOON + minutes(again))
    job = elastic_waiting(widths=TWO_TO_EIGHT, refused=refused)
    decided = planned(snapshot(job, **learned(1, until=5)), pool(8))
    assert [start.shape.vector for start in of_kind(Start, decided)] == [of(2)] * starts
    if not starts:
        reason = decided.reasons["elastic"]
        assert reason.code == "account-limit"
        assert f"needs {A}=2; AWS refused more than 1 {A} recently" in reason.message


def test_with_room_kept_for_it_no_start_tries_more_than_the_account_limit() -> None:
    hold = PreemptionReservation(preemptor="elastic", vector=of(2))
    world = snapshot(elastic_waiting(), holds=(hold,), **learned(2, until=0))
    (start,) = of_kind(Start, planned(world))
    assert start.shape.vector == of(2), "a refused probe would cost the room that is kept"


def test_a_growth_stays_within_the_account_limit() -> None:
    (growth,) = of_kind(Grow, planned(snapshot(elastic_running(n=1), **learned(3, until=0))))
    assert growth.width == 3
    decided = planned(snapshot(elastic_running(n=2, account_width=2)))
    assert "a limit of the account allows 2 instances" in decided.widths["elastic"]
