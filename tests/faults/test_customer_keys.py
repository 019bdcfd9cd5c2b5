"""Keys of the customer: of a job's volumes, and of a bucket with checkpoints."""

from typing import Any

from local.wire import Response
from tests.builders import A
from tests.faults.conftest import NewWorld
from tests.faults.scenes import code_of
from tests.integration.cloud import refusal
from tests.integration.world import World

KEY = "arn:aws:kms:us-east-1:111122223333:key/volumes"
ENCRYPTED = {"InstanceType": A, "InstanceCount": 1, "VolumeSizeInGB": 10, "VolumeKmsKeyId": KEY}
NO_GRANT = f"User: schedule is not authorized to perform: kms:CreateGrant on resource: {KEY}"


def denied(_: dict[str, Any]) -> Response:
    """As SageMaker answers where neither the job's role nor the caller may create a grant on the key."""
    return refusal("AccessDeniedException", NO_GRANT)


def test_N19_a_job_whose_key_nobody_may_use_fails_with_the_remedy_and_the_next_one_starts(
    new_world: NewWorld,
) -> None:
    world: World = new_world({"pools": [{"name": "main", "capacity": {A: 1}}]})
    world.submit("job1", ResourceConfig=ENCRYPTED)
    world.submit("job2")
    world.sagemaker.intercept["CreateTrainingJob"] = denied
    world.schedule()
    assert world.states("job1", "job2") == ["failed", "running"]
    assert code_of(world, "job1") == "failed-to-start"
    message = world.api("GET", "/jobs/job1")["reason"]["message"]
    for part in (KEY, "kms:CreateGrant", "TrainingKmsKeyArns"):
        assert part in message
    world.check("job1", "job2")
    world.submit("job3", ResourceConfig=ENCRYPTED)  # by now the stack lists the key
    world.sagemaker.end("job2", "Completed")
    world.tell("job2")
    world.schedule()
    assert world.states("job3") == ["running"]
