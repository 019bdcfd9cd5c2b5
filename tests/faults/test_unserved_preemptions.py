"""Preemptions that AWS does not serve: the next one waits, and whoever has to know is told."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from trainmaster.core.errors import (
    InstanceLimitError,
    ServerFaultError,
    TrainmasterError,
    UnavailableError,
    UnclassifiedTrainingError,
)

from tests.builders import A, B, minutes
from tests.faults.planes import plane, run
from tests.faults.thrashing import CAPACITY_ERROR, URGENT, Market, Outcome, fails, tagged, width
from tests.histories.world import USER

LONG: dict[str, Any] = {"StoppingCondition": {"MaxRuntimeInSeconds": 86_400}}
PENDING = {"StoppingCondition": {"MaxRuntimeInSeconds": 86_400, "MaxPendingTimeInSeconds": 1800}}
SPOT: dict[str, Any] = {
    "EnableManagedSpotTraining": True,
    "StoppingCondition": {"MaxRuntimeInSeconds": 86_400, "MaxWaitTimeInSeconds": 172_800},
}
VICTIMS = tuple(f"victim-{number}" for number in range(4))


def pool(capacity: dict[str, int], **rules: Any) -> dict[str, Any]:
    """It preempts whatever that costs, and keeps nothing warm."""
    costs = {"preemption": {"cost": {"enabled": False}}, "warm_pool": {"keep_alive": "0s", "retain": "0s"}}
    return {"pools": [{"name": "main", "capacity": capacity, **costs, **rules}]}


def teams(*names: str) -> dict[str, Any]:
    return {"teams": [{"name": name, "principals": [USER], "roles": "any"} for name in names]}


def jobs(
    count: int, instance_type: str = A, *, team: str | None = None, priority: int = 1
) -> tuple[Any, ...]:
    return ({**width(1, instance_type), **LONG, **tagged(priority, team)},) * count


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A pool, the jobs that hold it, and the urgent one that nobody has room for."""

    policy: Mapping[str, Any] = field(default_factory=lambda: pool({A: 4}))
    victims: tuple[dict[str, Any], ...] = field(default_factory=lambda: jobs(4))
    urgent: Mapping[str, Any] = field(default_factory=lambda: {**width(4), **LONG, **tagged(500)})

    def comes(self, outcome: Outcome) -> Market:
        """The victims train, and AWS did not serve the urgent job once."""
        market = Market(world=plane(dict(self.policy)), outcome=outcome)
        for number, victim in enumerate(self.victims):
            market.submit(f"victim-{number}", **victim)
        market.let_pass(minutes(1))
        market.submit(URGENT, **self.urgent)
        market.settle()
        return market


GROUPS = {
    "InstanceGroups": [
        {"InstanceGroupName": "a", "InstanceType": A, "InstanceCount": 2},
        {"InstanceGroupName": "b", "InstanceType": B, "InstanceCount": 2},
    ],
    "VolumeSizeInGB": 10,
}
PREFERRED = {
    "InstancePreferences": [{"InstanceType": one, "InstanceCount": 2} for one in (A, B)],
    "VolumeSizeInGB": 10,
}
EITHER = {"trainmaster:alternatives": f"{A}=4 {B}=2"}
NO_LOAN = {"red": {"nominal": {A: 4}, "borrowing_limit": {A: 0}}}
LENT = {"red": {"nominal": {A: 4}}, "blue": {"nominal": {A: 0}}}
WAYS = {
    "priority": Way(),
    "reclaim": Way(
        policy={**pool({A: 4}, quotas=LENT), **teams("red", "blue")},
        victims=jobs(4, team="blue", priority=500),
        urgent={**width(4), **LONG, **tagged(0, "red")},
    ),
    "its own team at the borrowing limit": Way(
        policy={**pool({A: 8}, quotas=NO_LOAN), **teams("red")},
        victims=jobs(4, team="red"),
        urgent={**width(4), **LONG, **tagged(500, "red")},
    ),
    "spot": Way(
        policy=pool({}, spot_capacity={A: 4}),
        victims=({**width(1), **SPOT, **tagged(1)},) * 4,
        urgent={**width(4), **SPOT, **tagged(500)},
    ),
    "alternatives": Way(
        policy=pool({A: 4, B: 2}),
        victims=(*jobs(4), *jobs(2, B)),
        urgent={**width(4), **LONG, **tagged(500, **EITHER)},
    ),
    "instances of several types": Way(
        policy=pool({A: 2, B: 2}),
        victims=(*jobs(2), *jobs(2, B)),
        urgent={"ResourceConfig": GROUPS, **LONG, **tagged(500)},
    ),
    "types that SageMaker chooses from": Way(
        policy=pool({A: 2, B: 2}),
        victims=(*jobs(2), *jobs(2, B)),
        urgent={"ResourceConfig": PREFERRED, **LONG, **tagged(500)},
    ),
}


def waits_in_vain(market: Market, name: str) -> None:
    """SageMaker gives it up when its pending time is over."""
    if market.world.now - market.world.sagemaker.jobs[name].created >= minutes(30):
        market.ends(name, "Stopped")


OUTCOMES: dict[str, Outcome] = {
    "capacity": fails(CAPACITY_ERROR),
    "service": fails("InternalServerError: We encountered an internal error. Please try again."),
    "the pending time ran out": waits_in_vain,
}
REFUSALS: dict[str, TrainmasterError] = {
    "a fault of AWS": ServerFaultError("InternalFailure"),
    "not now": UnavailableError("ServiceUnavailable"),
    "an error that nobody knows": UnclassifiedTrainingError("SomethingNew"),
    "a limit of the account": InstanceLimitError("the limit is 3 instances"),
}


def check_wait(market: Market, *, wait: int, stops: int) -> None:
    """Nobody is stopped for the urgent job before the wait (minutes) is over, and then at once."""
    before, over = market.stops, market.urgent_ends[-1] + minutes(wait)
    market.let_pass(over - minutes(1) - market.world.now)
    assert market.stops == before, market.stopped_at
    assert {market.state(name) for name in VICTIMS} == {"running"}
    assert f"until {over:%Y-%m-%d %H:%M} UTC" in market.view(URGENT)["waiting"]["message"]
    market.let_pass(minutes(2))
    assert market.stops == before + stops


def test_O1_a_preemption_that_aws_does_not_serve_is_repeated_after_15_then_30_then_60_minutes() -> None:
    market = WAYS["priority"].comes(OUTCOMES["capacity"])
    assert market.stops == 4
    for wait in (15, 30, 60):
        check_wait(market, wait=wait, stops=4)
    (told,) = market.events("Preemption Did Not Help")
    assert (told["job"], told["reason"], told["wanted"]) == (URGENT, "capacity", f"{A}=4")
    (warned,) = market.events("Platform Warning")
    assert (warned["job"], warned["subject"]) == (URGENT, "preemption-did-not-help")
    assert sum("Preemption Did Not Help" in subject for subject, _ in market.world.mailer.mails) == 1


def test_O1_it_starts_into_free_instances_at_any_time_and_then_all_is_forgotten() -> None:
    market = WAYS["priority"].comes(OUTCOMES["capacity"])
    market.is_served = True
    for name in VICTIMS:
        market.cancel(name)
    market.let_pass(minutes(1))
    job = market.world.job(URGENT)
    assert market.state(URGENT) == "running"
    assert (job.futile, job.made_room_for, job.starts.no_capacity) == (None, None, None)


def test_O1_it_runs_once_aws_serves_it_when_its_wait_is_over() -> None:
    market = WAYS["priority"].comes(OUTCOMES["capacity"])
    market.is_served = True
    market.let_pass(minutes(16))
    assert (market.state(URGENT), market.stops) == ("running", 8)


def test_O1_what_comes_free_in_its_wait_is_not_kept_for_it() -> None:
    """A victim that fails for want of capacity gets its instance again, although the urgent one is ahead."""
    market = WAYS["priority"].comes(OUTCOMES["capacity"])
    market.let_pass(minutes(5))
    (name,) = [name for name in market.world.sagemaker.live() if name.startswith(VICTIMS[0])]
    market.ends(name, "Failed", reason=CAPACITY_ERROR)
    market.let_pass(minutes(1))
    assert (market.state(VICTIMS[0]), market.stops) == ("running", 4)


@pytest.mark.parametrize("way", [name for name in WAYS if name != "priority"])
def test_O2_whatever_way_room_was_made(way: str) -> None:
    market = WAYS[way].comes(OUTCOMES["capacity"])
    stops = market.stops
    assert stops >= 2
    check_wait(market, wait=15, stops=stops)
    assert len(market.events("Preemption Did Not Help")) == 1


@pytest.mark.parametrize("outcome", ["service", "the pending time ran out"])
def test_O2_whatever_became_of_the_attempt(outcome: str) -> None:
    way = Way(
        policy={**pool({A: 4}), "recovery": {"max_retries": 9}},
        urgent={**width(4), **PENDING, **tagged(500)},
    )
    market = way.comes(OUTCOMES[outcome])
    if not market.urgent_ends:
        market.let_pass(minutes(30))
    assert (market.stops, len(market.urgent_ends)) == (4, 1)
    check_wait(market, wait=15, stops=4)
    assert len(market.events("Preemption Did Not Help")) == 1


@pytest.mark.parametrize("refusal", REFUSALS)
def test_O2_whatever_aws_answers_to_the_start(refusal: str) -> None:
    """One that a limit of the account refuses preempts no more until AWS has taken a start of it."""
    market = Market(world=plane(pool({A: 4})))
    error = REFUSALS[refusal]
    market.world.sagemaker.objections.append(
        lambda request: error if request["TrainingJobName"].startswith(URGENT) else None
    )
    for name in VICTIMS:
        market.submit(name, **width(1), **LONG, **tagged(1))
    market.settle()
    market.submit(URGENT, **width(4), **LONG, **tagged(500))
    market.let_pass(minutes(14))
    assert {market.state(name) for name in VICTIMS} == {"running"}
    assert market.stops == 4
    assert len(market.events("Preemption Did Not Help")) == 1
    market.let_pass(minutes(3))
    assert market.stops == (4 if refusal == "a limit of the account" else 8)


def test_O2_a_preemptor_that_does_not_even_start_in_time_has_preempted_in_vain() -> None:
    """Its victims ended while an admin had paused everything, for longer than what they freed is kept."""
    market = Market(world=plane(pool({A: 4})))
    for name in VICTIMS:
        market.submit(name, **width(1), **LONG, **tagged(1))
    market.settle()
    market.submit(URGENT, **width(4), **LONG, **tagged(500))
    run(market.world, market.world.run_pass)
    market.world.pause(paused=True)
    market.let_pass(minutes(20))
    futile = market.world.job(URGENT).futile
    assert futile is not None
    assert (futile.count, futile.vector) == (1, {A: 4})
    assert market.world.tables.pools["main"].holds == {}
    (told,) = market.events("Preemption Did Not Help")
    assert "it did not start in time" in told["what"]


@pytest.mark.parametrize(
    ("instances", "stops"),
    [
        pytest.param(1, 0, id="a smaller one does not"),
        pytest.param(4, 4, id="an equal one does"),
        pytest.param(5, 4, id="a larger one does"),
    ],
)
@pytest.mark.parametrize("is_over", [False, True])
def test_O3_an_attempt_of_as_many_instances_that_trains_ends_the_wait(
    instances: int, stops: int, *, is_over: bool
) -> None:
    """Also one that has ended by the time the waiting job is looked at again."""
    market = WAYS["priority"].comes(OUTCOMES["capacity"])
    world, sagemaker = market.world, market.world.sagemaker
    world.change_policy(pool({A: 4 + instances}))
    market.submit("other", **width(instances), **LONG, **tagged(900))
    run(world, world.run_pass)
    before = market.stops
    world.now += minutes(1)
    sagemaker.train("other")
    if is_over:
        market.ends("other", "Completed")
        market.submit("next", **width(instances), **LONG, **tagged(900))
    else:
        run(world, lambda: world.hear("other"))
    run(world, world.run_pass)
    assert (before, market.stops) == (4, 4 + stops)
    assert market.state("next" if is_over else "other") == "running"


def test_O3_the_chain_goes_on_after_a_wait_that_an_attempt_has_ended() -> None:
    """The next wait is the doubled one: what was seen did not help either."""
    market = WAYS["priority"].comes(OUTCOMES["capacity"])
    first = market.world.job(URGENT).futile
    assert first is not None
    market.let_pass(minutes(17))
    second = market.world.job(URGENT).futile
    assert second is not None
    assert (first.count, second.count) == (1, 2)
    assert second.until - second.since == timedelta(minutes=30)


@pytest.mark.parametrize(
    ("hours", "most"),
    [
        pytest.param(0.249, 4, id="a quarter of an hour"),
        pytest.param(1, 12, id="one hour"),
        pytest.param(6, 24, id="six hours"),
    ],
)
def test_C1_four_victims_are_stopped_a_few_times_only(hours: float, most: int) -> None:
    market = Way(policy=pool({A: 4})).comes(OUTCOMES["capacity"])
    market.let_pass(timedelta(hours=hours))
    assert 4 <= market.stops <= most
    market.is_served = True
    futile = market.world.job(URGENT).futile
    assert futile is not None
    market.let_pass(futile.until + minutes(1) - market.world.now)
    assert market.state(URGENT) == "running"


def test_C1_events_say_how_often_for_whom_what_it_cost_and_what_helps() -> None:
    market = Market(world=plane(pool({A: 4})))
    for name in VICTIMS:
        market.submit(name, **width(1), **LONG, **tagged(1))
    run(market.world, market.world.run_pass)
    market.world.now += minutes(3)
    market.submit(URGENT, **width(4), **LONG, **tagged(500))
    market.let_pass(minutes(20))
    stops = market.events("Job Preempted")
    assert len(stops) == 8
    assert all(not event["todo"].startswith("Nothing") for event in stops)
    first, again = ([event for event in stops if event["job"] == VICTIMS[0]][turn] for turn in (0, 1))
    assert "It had not begun to train: 4 min of start-up was lost." in first["what"]
    assert (first["preemptions"], first["in_a_row"], first["startup_seconds"]) == (1, 1, 240)
    assert "It has made room 2 times, the last 2 times for job urgent." in again["what"]
    assert "preemption.max_per_job" in again["todo"]
    view = market.view(VICTIMS[0])
    assert view["wasted_seconds"]["preemption"] >= 240
    got_nowhere = [event for event in market.events("Job Retried") if event["job"] == URGENT]
    assert len(got_nowhere) == 2
    assert all("trainmaster:alternatives" in event["todo"] for event in got_nowhere)
    assert "Jobs were stopped for it in vain, once" in got_nowhere[0]["what"]
