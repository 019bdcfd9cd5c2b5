"""Two teams whose jobs differ only in the size of the volume: the advice, and what follows from it."""

from typing import Any

import pytest

from tests.builders import A, minutes
from tests.faults.conftest import NewWorld
from tests.faults.scenes import ends, trains
from tests.integration.messages import ACCOUNT, USER, proxy_event, request
from tests.integration.world import World

SPEECH = f"arn:aws:sts::{ACCOUNT}:assumed-role/speech/bob"
SIZES = {"vision": 50, "speech": 200}
ROUNDS = 3


def policy(**pool: Any) -> dict[str, Any]:
    teams = [
        {"name": "vision", "roles": "any", "principals": [USER]},
        {"name": "speech", "roles": "any", "principals": [f"arn:aws:iam::{ACCOUNT}:role/speech"]},
    ]
    main = {"name": "main", "capacity": {A: 2}, "warm_pool": {"keep_alive": "10m", "retain": "10m"}, **pool}
    return {"pools": [main], "teams": teams, "admins": [USER]}


def runs(world: World, name: str, team: str) -> None:
    """A job of the team starts, trains after four minutes and ends two minutes later."""
    resources = {"InstanceType": A, "InstanceCount": 1, "VolumeSizeInGB": SIZES[team]}
    user = USER if team == "vision" else SPEECH
    event = proxy_event("POST", "/add-job", request(name, ResourceConfig=resources), user=user)
    assert world.call("api", event)["statusCode"] == 201
    world.schedule()
    assert world.states(name) == ["running"]
    world.now += minutes(4)
    trains(world, name)
    world.now += minutes(2)
    ends(world, name)
    world.now += minutes(1)


def sharing(world: World) -> list[dict[str, Any]]:
    (pool,) = world.api("GET", "/pools", query={"sharing": "true"})["pools"]
    found: list[dict[str, Any]] = pool["sharing"]
    return found


@pytest.fixture
def advised(new_world: NewWorld) -> World:
    """Jobs of the two teams have followed each other, each beside a warm pool that it could not use."""
    world = new_world(policy(), as_written=True)
    world.sagemaker.bills_startup = True
    for number in range(ROUNDS):
        runs(world, f"vision{number}", "vision")
        runs(world, f"speech{number}", "speech")
        world.now += minutes(15)
        world.a_minute_passes()
    return world


def test_the_advice_names_both_teams_and_what_sharing_would_have_saved(advised: World) -> None:
    assert all(advised.sagemaker.jobs[name].warm_status != "InUse" for name in advised.sagemaker.creates)
    (advice,) = sharing(advised)
    assert advice["differ_in"] == ["volume"]
    sizes = {tuple(kind["teams"]): kind["volume_size_in_gb"] for kind in advice["kinds"]}
    assert sizes == {(team,): size for team, size in SIZES.items()}
    assert (advice["starts"], advice["warm_now"], advice["warm_together"]) == (2 * ROUNDS, 0, ROUNDS)
    assert advice["saved_instance_seconds"] == ROUNDS * 210, (
        "of four minutes each, a warm start takes half of one"
    )
    assert "overrides.volume_size_in_gb: 200" in advice["todo"]


def test_after_the_override_the_second_team_lands_in_the_firsts_warm_pool(advised: World) -> None:
    document = policy(overrides={"volume_size_in_gb": 200})
    policies = advised.wiring.policies
    policies.put(document, pools=["main"], replaces=policies.current())
    runs(advised, "vision-after", "vision")
    runs(advised, "speech-after", "speech")
    assert advised.sagemaker.jobs["vision-after"].warm_status == "InUse"
    sent = advised.sagemaker.jobs["speech-after"].request["ResourceConfig"]
    assert sent["VolumeSizeInGB"] == 200
    advised.check("vision-after", "speech-after")


def test_without_warm_pools_there_is_nothing_to_advise(new_world: NewWorld) -> None:
    world = new_world(policy(warm_pool={"keep_alive": "0s"}), as_written=True)
    for number in range(ROUNDS):
        runs(world, f"vision{number}", "vision")
        runs(world, f"speech{number}", "speech")
    assert sharing(world) == []


def test_where_the_account_keeps_none_warm_there_is_nothing_to_advise(new_world: NewWorld) -> None:
    world = new_world(policy(), as_written=True)
    world.sagemaker.keeps_warm = False
    for number in range(ROUNDS):
        runs(world, f"vision{number}", "vision")
        runs(world, f"speech{number}", "speech")
    assert sharing(world) == []
