"""Rows N1 to N3, N5 and N6: AWS refuses starts for reasons nobody foresaw; nobody else waits for that."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

import pytest
from trainmaster.adapters.dynamodb.codec import decode
from trainmaster.api.jobs import show_job
from trainmaster.core.errors import AccountLimitError
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.instances import Capacity
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.planning.refusal_records import AccountLimit

from tests.bodies import body
from tests.builders import A, B, minutes
from tests.faults.planes import plane, run, states
from tests.histories.world import POOL, World

TYPES = {"pools": [{"name": POOL, "capacity": {A: 8, B: 2}}]}
SMALL = tuple(f"small{number}" for number in range(6))
FOR_RULES = "The account-level service limit 'ml.m5.xlarge for processing job usage' is 0 Instances"
NO_REGION = "ml.b.xlarge is not available in this region"


def of_type(instance_type: str, count: int = 1) -> dict[str, Any]:
    return {"InstanceType": instance_type, "InstanceCount": count, "VolumeSizeInGB": 10}


def submit(world: World, *names: str, priority: int = 0, resources: dict[str, Any] | None = None) -> None:
    tags = [{"Key": "priority", "Value": str(priority)}]
    for name in names:
        request = body(TrainingJobName=name, Tags=tags, ResourceConfig=resources or of_type(A))
        assert world.submit(request).status == 201


def never(*names: str) -> Callable[[Any], Exception | None]:
    """The account takes no training job of these names, whatever is free."""
    return lambda request: AccountLimitError(FOR_RULES) if request["TrainingJobName"] in names else None


def minutes_pass(world: World, count: int) -> None:
    """The reconciler rings each minute, and its ring is heard."""
    for _ in range(count):
        world.now += minutes(1)
        run(world, world.reconcile)
        run(world, world.run_pass)


def waiting(world: World, name: str) -> dict[str, Any]:
    answer: Any = world._call(lambda context: show_job(context, name))
    found: dict[str, Any] = answer.body["waiting"]
    return found


def creates_of(world: World, name: str) -> int:
    return world.sagemaker.tried.count(name)


def check_kept_low(world: World) -> None:
    """Each refused job tries every quarter of an hour, and a new one occasionally."""
    tried = len(world.sagemaker.tried)
    minutes_pass(world, 60)
    assert len(world.sagemaker.tried) - tried <= 40


@pytest.fixture
def eight() -> World:
    return plane(TYPES)


@pytest.mark.parametrize("comes_first", [True, False])
def test_N1_a_wide_job_above_the_quota_leaves_all_of_the_quota_to_others(
    eight: World, *, comes_first: bool
) -> None:
    eight.sagemaker.limits[Capacity(A)] = 4
    submit(eight, "wide", resources=of_type(A, 8))
    if comes_first:
        run(eight, eight.run_pass)
        assert states(eight, "wide") == ["pending"]
    submit(eight, *SMALL)
    run(eight, eight.run_pass)
    minutes_pass(eight, 2)
    assert sorted(states(eight, *SMALL)) == ["pending"] * 2 + ["running"] * 4
    waits = [name for name in ("wide", *SMALL) if states(eight, name) == ["pending"]]
    assert [waiting(eight, name)["code"] for name in waits] == ["account-limit"] * 3
    minutes_pass(eight, 60)
    check_kept_low(eight)
    assert sum(eight.sagemaker.taken().values()) == 4


def test_N1_what_comes_free_goes_to_a_refused_job_at_once(eight: World) -> None:
    eight.sagemaker.limits[Capacity(A)] = 4
    submit(eight, *SMALL)
    run(eight, eight.run_pass)
    minutes_pass(eight, 10)
    running = [name for name in SMALL if states(eight, name) == ["running"]]
    assert len(running) == 4
    eight.sagemaker.train(running[0])
    eight.sagemaker.end(running[0], "Completed")
    run(eight, lambda: eight.hear(running[0]))
    run(eight, eight.run_pass)
    assert states(eight, *SMALL).count("running") == 4


@pytest.mark.parametrize(("bad", "within"), [(1, 2), (2, 2), (10, 60)])
def test_N2_a_job_the_account_never_takes_delays_no_other_of_its_type(
    eight: World, bad: int, within: int
) -> None:
    """Of many such jobs each is tried before it is known; what waits behind them is tried in between."""
    refused = [f"bad{number}" for number in range(bad)]
    eight.sagemaker.objections.append(never(*refused))
    submit(eight, *refused, *SMALL)
    run(eight, eight.run_pass)
    minutes_pass(eight, within)
    assert states(eight, *SMALL) == ["running"] * 6
    for name in refused:
        why = waiting(eight, name)
        assert why["code"] == "account-limit"
        assert FOR_RULES in why["message"], "AWS's words, as a hint"
    minutes_pass(eight, 60)
    assert all(creates_of(eight, name) <= 20 for name in refused)


def test_N2_a_job_that_comes_later_is_not_delayed_by_old_refusals(eight: World) -> None:
    eight.sagemaker.objections.append(never("bad", "worse"))
    submit(eight, "bad", "worse")
    minutes_pass(eight, 200)
    submit(eight, "good")
    run(eight, eight.run_pass)
    minutes_pass(eight, 1)
    assert states(eight, "good") == ["running"]


def test_N3_a_refused_job_of_the_highest_priority_stops_nobody_and_keeps_nothing_free(eight: World) -> None:
    eight.sagemaker.objections.append(never("bad"))
    submit(eight, "bad", priority=100, resources=of_type(A, 8))
    run(eight, eight.run_pass)
    submit(eight, *SMALL)
    run(eight, eight.run_pass)
    for name in SMALL:
        eight.sagemaker.train(name)
        run(eight, partial(eight.hear, name))
    for _ in range(24):
        minutes_pass(eight, 4)
        eight.now += minutes(56)
    assert states(eight, *SMALL) == ["running"] * 6
    assert eight.watch.preemptions == 0
    assert all(eight.sagemaker.jobs[name].stops == 0 for name in SMALL)
    submit(eight, "seventh")
    run(eight, eight.run_pass)
    assert states(eight, "seventh") == ["running"], "nothing is reserved for the refused job"
    assert waiting(eight, "bad")["code"] == "account-limit"


def test_N3_a_job_above_a_learned_limit_stops_nobody_when_its_turn_to_try_comes(eight: World) -> None:
    """It could not start even if somebody made room: the account was never seen to take as many."""
    eight.sagemaker.limits[Capacity(A)] = 4
    submit(eight, *SMALL)
    run(eight, eight.run_pass)
    submit(eight, "wide", priority=100, resources=of_type(A, 8))
    minutes_pass(eight, 60)
    assert states(eight, *SMALL).count("running") == 4
    assert waiting(eight, "wide")["code"] == "account-limit"


def test_N3_once_a_start_of_it_is_taken_it_ranks_as_before(eight: World) -> None:
    eight.sagemaker.objections.append(never("wide"))
    submit(eight, "wide", priority=100, resources=of_type(A, 8))
    run(eight, eight.run_pass)
    assert eight.job("wide").starts.by_account is not None
    eight.sagemaker.objections.clear()
    minutes_pass(eight, 1)
    assert states(eight, "wide") == ["running"]
    assert eight.job("wide").starts.by_account is None


def test_N5_of_a_type_that_the_region_lacks_jobs_wait_and_other_types_start(eight: World) -> None:
    eight.sagemaker.objections.append(
        lambda request: (
            AccountLimitError(NO_REGION) if request["ResourceConfig"]["InstanceType"] == B else None
        )
    )
    submit(eight, "missing", "missing-too", priority=9, resources=of_type(B))
    submit(eight, *SMALL)
    run(eight, eight.run_pass)
    assert states(eight, *SMALL) == ["running"] * 6, "in the same pass"
    minutes_pass(eight, 3)
    for name in ("missing", "missing-too"):
        assert waiting(eight, name)["code"] == "account-limit"
        assert NO_REGION in waiting(eight, name)["message"]


def test_N6_after_the_fifth_refusal_its_owner_is_told_once_and_no_next_try_is_in_the_past(
    eight: World,
) -> None:
    eight.sagemaker.objections.append(never("bad"))
    submit(eight, "bad", *SMALL)
    run(eight, eight.run_pass)
    for _ in range(240):
        minutes_pass(eight, 1)
        why = waiting(eight, "bad")
        assert why["code"] == "account-limit"
        assert FOR_RULES in why["message"]
        assert all(instant >= eight.now for instant in instants(why["message"])), why["message"]
    (told,) = [detail for kind, detail in eight.notifier.told if kind == "Job Start Refused"]
    assert (told["job"], told["team"], told["refusals"]) == ("bad", "default", 5)
    assert FOR_RULES in told["why"]
    assert 10 <= creates_of(eight, "bad") <= 30


def instants(message: str) -> list[datetime]:
    words = (word.strip(",;.()") for word in message.split())
    return [datetime.fromisoformat(word) for word in words if word.startswith("2026-")]


# ---- what an earlier release has learned


def test_N1_a_limit_that_an_earlier_release_learned_does_no_harm(eight: World) -> None:
    """It said "nothing above what was held"; read as the sum that was refused it is probed and forgotten."""
    row = {"limit": 0, "until": "2026-11-02T12:05:00.000+00:00", "refusals": 9}
    eight.tables.pools[POOL].limits[Capacity(A)] = decode(AccountLimit, row)
    submit(eight, *SMALL)
    minutes_pass(eight, 5)
    assert states(eight, *SMALL) == ["running"] * 6
    assert eight.tables.pools[POOL].limits == {}


def test_N1_a_job_that_waited_for_the_account_under_an_earlier_release_starts(eight: World) -> None:
    """Its row has no refusals, and it was never parked."""
    submit(eight, "job1")
    why = Reason(code=ReasonCode.ACCOUNT_LIMIT, message="the account allows 0, the next try is at 12:01")
    eight.tables.jobs["job1"] = replace(eight.job("job1"), waiting=why)
    run(eight, eight.run_pass)
    assert states(eight, "job1") == ["running"]
