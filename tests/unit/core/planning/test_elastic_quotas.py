"""Plans in which quotas take back what elastic jobs have borrowed."""

import pytest
from trainmaster.core.jobs.widths import Widths
from trainmaster.core.planning.actions import Preempt
from trainmaster.core.planning.shrinks import kept_of
from trainmaster.core.planning.snapshot import RunningJob
from trainmaster.core.policy import Quota

from tests.builders import A, of, running, snapshot, waiting
from tests.unit.core.planning.test_elastic_plans import elastic_running, of_kind, planned, pool

TWO_TO_FOUR = Widths(counts=(2, 3, 4))


def borrower(name: str, team: str) -> RunningJob:
    """An elastic job that has four instances, of which its team's quota covers two."""
    return elastic_running(name, widths=TWO_TO_FOUR, team=team)


def reclaimed(world: tuple[RunningJob, ...], needed: int, *, capacity: int) -> Preempt:
    """The preemption by which a team takes back its quota."""
    quotas = {team: Quota(nominal={A: 2}) for team in ("default", "speech")}
    rules = pool(capacity, quotas=quotas | {"vision": Quota(nominal={A: 4})})
    asks = waiting("own", n=needed, team="vision")
    (preemption,) = of_kind(Preempt, planned(snapshot(*world, asks), rules))
    assert isinstance(preemption, Preempt)
    return preemption


def test_two_borrowers_shrink_to_what_their_quotas_cover_where_one_would_stop_as_a_whole() -> None:
    world = (borrower("one", "default"), borrower("two", "speech"))
    preemption = reclaimed(world, 4, capacity=8)
    assert preemption.kept == {"one": of(2), "two": of(2)}


def test_a_borrower_that_is_covered_for_nothing_stops_beside_a_shrink() -> None:
    rigid = running("rigid", n=2, team="guest", priority=5, minutes_ago=60)
    preemption = reclaimed((borrower("one", "default"), rigid), 4, capacity=6)
    assert {victim.name for victim in preemption.victims} == {"one", "rigid"}
    assert preemption.kept == {"one": of(2)}


def test_no_more_is_stopped_than_what_is_lacking() -> None:
    rigid = running("rigid", n=1, team="guest", minutes_ago=60)
    preemption = reclaimed((borrower("one", "default"), rigid), 2, capacity=5)
    assert [victim.name for victim in preemption.victims] == ["one"]
    assert preemption.kept == {"one": of(2)}


def test_where_what_is_borrowed_is_not_enough_the_rest_goes_too() -> None:
    spared = running("spared", n=2, team="guest", preemptible=False)
    preemption = reclaimed((borrower("one", "default"), spared), 4, capacity=6)
    assert [victim.name for victim in preemption.victims] == ["one"]
    assert preemption.kept == {}


@pytest.mark.parametrize(
    ("short", "kept"),
    [
        (1, {"cheap": of(3), "dear": of(3)}),
        (3, {"cheap": of(2), "dear": of(3)}),
        (4, {"cheap": of(2), "dear": of(2)}),
        (5, {"dear": of(3)}),
        (6, {"dear": of(2)}),
        (7, {}),
    ],
)
def test_each_keeps_its_least_width_before_one_keeps_more(short: int, kept: dict[str, object]) -> None:
    assert kept_of([borrower("cheap", "default"), borrower("dear", "default")], of(short)) == kept
