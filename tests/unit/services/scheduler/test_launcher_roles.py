"""A launcher role starts its team's jobs; one that cannot be assumed holds up its team alone."""

from typing import Any

from trainmaster.core.request.request import Launcher

from tests.bodies import body
from tests.builders import A, minutes
from tests.faults.planes import plane, run, states
from tests.histories.world import POOL, USER, World

LAUNCHER = "arn:aws:iam::123456789012:role/trainmaster-launcher-red"
TRAINING = body()["RoleArn"]


def policy(launcher: str | None) -> dict[str, Any]:
    red = {"name": "red", "principals": [USER], "roles": "any", "launcher_role": launcher}
    return {"pools": [{"name": POOL, "capacity": {A: 3}}], "teams": [red]}


def submitted(world: World, name: str) -> None:
    resources = {"InstanceType": A, "InstanceCount": 1, "VolumeSizeInGB": 10}
    answer = world.submit(body(TrainingJobName=name, ResourceConfig=resources))
    assert getattr(answer, "status", answer) == 201


def test_a_team_s_jobs_are_started_by_its_launcher_and_no_other_s() -> None:
    for role, launcher in {
        LAUNCHER: Launcher(role_arn=LAUNCHER, team="red", stack="trainmaster"),
        None: None,
    }.items():
        world = plane(policy(role))
        submitted(world, "one")
        run(world, world.run_pass)
        assert world.sagemaker.launchers == {world.sagemaker.creates[0]: launcher}


def test_a_job_whose_launcher_cannot_be_assumed_waits_an_hour_for_somebody_to_mend_it() -> None:
    for mended in (True, False):
        world = plane(policy(LAUNCHER))
        world.sagemaker.untrusting.add(LAUNCHER)
        submitted(world, "one")
        run(world, world.run_pass)
        job = world.job("one")
        assert (job.state, world.sagemaker.creates) == ("pending", [])
        assert job.waiting is not None
        assert job.waiting.code == "refused"
        assert LAUNCHER in job.waiting.message
        if mended:
            world.sagemaker.untrusting.clear()
        for _ in range(75):
            world.now += minutes(1)
            run(world, world.reconcile)
            run(world, world.run_pass)
        assert states(world, "one") == ["running" if mended else "failed"]
        assert len(world.sagemaker.tried) == (2 if mended else 8)


def test_a_launcher_that_a_whole_team_lost_fails_none_of_its_jobs() -> None:
    """The right that is missing is the stack's or the launcher's, whichever job is tried."""
    world = plane(policy(LAUNCHER))
    world.sagemaker.untrusting.add(LAUNCHER)
    names = [f"job{number}" for number in range(5)]
    for name in names:
        submitted(world, name)
    for _ in range(90):
        run(world, world.run_pass)
        world.now += minutes(1)
        run(world, world.reconcile)
    assert states(world, *names) == ["pending"] * 5
    world.sagemaker.untrusting.clear()
    for _ in range(16):
        world.now += minutes(1)
        run(world, world.reconcile)
        run(world, world.run_pass)
    assert states(world, *names).count("running") == 3


def test_a_launcher_s_pause_is_not_ended_by_a_start_of_another_team_with_the_same_role() -> None:
    """Another sends those starts: what AWS takes from it says nothing about the launcher."""
    document = policy(LAUNCHER)
    document["pools"][0]["capacity"] = {A: 9}
    blue = {"name": "blue", "principals": [], "roles": "any"}
    document["teams"].append(blue)
    world = plane(document)
    world.sagemaker.untrusting.add(LAUNCHER)
    for number in range(4):
        submitted(world, f"red{number}")
    document["teams"] = [{**document["teams"][0], "principals": []}, {**blue, "principals": [USER]}]
    world.policies.put(document, pools=[POOL], replaces=world.policies.current())
    submitted(world, "blue")
    for _ in range(10):
        run(world, world.run_pass)
        world.now += minutes(1)
        run(world, world.reconcile)
    assert states(world, "red0", "red1", "red2", "red3", "blue") == [*["pending"] * 4, "running"]


def test_other_teams_start_while_a_launcher_role_is_refused() -> None:
    """Of the same pass: the one that is refused stands first in the queue."""
    world = plane(policy(LAUNCHER))
    world.sagemaker.untrusting.add(LAUNCHER)
    submitted(world, "reds")
    without = policy(None)
    without["teams"] = [{"name": "blue", "principals": [USER], "roles": "any"}, policy(LAUNCHER)["teams"][0]]
    without["teams"][1]["principals"] = []
    world.policies.put(without, pools=[POOL], replaces=world.policies.current())
    submitted(world, "blues")
    run(world, world.run_pass)
    assert states(world, "reds", "blues") == ["pending", "running"]
