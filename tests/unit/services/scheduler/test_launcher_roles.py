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


def test_a_role_that_cannot_be_assumed_is_tried_three_times_and_named_and_mending_it_helps() -> None:
    for mended in (True, False):
        world = plane(policy(LAUNCHER))
        world.sagemaker.untrusting.add(LAUNCHER)
        submitted(world, "one")
        run(world, world.run_pass)
        job = world.job("one")
        assert (job.state, world.sagemaker.creates) == ("pending", [])
        assert job.waiting is not None
        assert LAUNCHER in job.waiting.message
        if mended:
            world.sagemaker.untrusting.clear()
        for _ in range(30):
            world.now += minutes(1)
            run(world, world.reconcile)
            run(world, world.run_pass)
        assert states(world, "one") == ["running" if mended else "failed"]
        assert len(world.sagemaker.tried) == (2 if mended else 3)


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
