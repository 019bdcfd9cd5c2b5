"""Keys of the customer: of a job's volumes, and of a bucket with checkpoints."""

from typing import Any

import pytest

from local.wire import Response
from tests.builders import A, minutes
from tests.faults.conftest import NewWorld
from tests.faults.scenes import code_of, trains
from tests.integration.cloud import Refused, refusal
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
    assert world.states("job1", "job2") == ["pending", "running"]
    waiting = world.api("GET", "/jobs/job1")["waiting"]
    assert waiting["code"] == "refused"
    names_the_remedy(waiting["message"])
    world.sagemaker.end("job2", "Completed")
    world.tell("job2")
    world.sagemaker.intercept["CreateTrainingJob"] = denied
    world.a_minute_passes()
    assert world.states("job1") == ["failed"]
    assert code_of(world, "job1") == "failed-to-start"
    names_the_remedy(world.api("GET", "/jobs/job1")["reason"]["message"])
    world.check("job1", "job2")
    world.submit("job3", ResourceConfig=ENCRYPTED)  # by now the stack lists the key
    world.schedule()
    assert world.states("job3") == ["running"]


def names_the_remedy(message: str) -> None:
    for part in (KEY, "kms:CreateGrant", "TrainingKmsKeyArns"):
        assert part in message


FORBIDDEN = Refused("AccessDenied", status=403)
SAVED = "job1/step-100/model"


@pytest.fixture
def saving(new_world: NewWorld) -> World:
    """job1 trains and saves into a bucket with SSE-KMS, job2 waits for its instance."""
    world: World = new_world({"pools": [{"name": "main", "capacity": {A: 1}}]})
    world.submit(
        "job1", CheckpointConfig={"S3Uri": "s3://encrypted/job1", "LocalPath": "/opt/ml/checkpoints"}
    )
    world.submit("job2")
    world.schedule()
    trains(world, "job1")
    world.listed[SAVED] = world.now + minutes(2)
    world.wire.lasting["GetObject"] = FORBIDDEN
    return world


def five_looks(world: World) -> dict[str, Any]:
    """Each job is looked at in one run of five. What GET /jobs says of the attempt then."""
    for _ in range(5):
        world.now += minutes(1)
        world.reconcile()
    world.schedule()
    attempt: dict[str, Any] = world.api("GET", "/jobs/job1")["attempts"][-1]
    return attempt


def warnings(world: World) -> list[str]:
    """Subjects of the warnings that operators got."""
    told = [event for event in world.messages.events if event.kind == "Platform Warning"]
    assert len([mail for mail in world.messages.mails if "Platform Warning" in mail.subject]) == len(told)
    return [event.detail["subject"] for event in told]


def test_N20_a_status_that_may_not_be_decrypted_leaves_the_listing_as_a_lower_bound(saving: World) -> None:
    shown = five_looks(saving)
    assert shown["last_checkpoint"] == "2026-11-02T12:02:00.000Z"
    assert shown["last_checkpoint_is_lower_bound"]
    assert warnings(saving) == []
    saving.wire.heal()  # the stack lists the key by now
    saving.checkpoints["s3://encrypted/job1"] = saving.now
    assert not five_looks(saving)["last_checkpoint_is_lower_bound"]


def test_N20_a_bucket_that_may_not_be_read_at_all_is_told_to_operators_once(saving: World) -> None:
    saving.wire.lasting["ListObjectsV2"] = FORBIDDEN
    for _ in range(3):
        shown = five_looks(saving)
        assert (shown["last_checkpoint"], shown["checkpoint_overdue"]) == (None, False)
    assert warnings(saving) == ["checkpoints-unreadable"]
    saving.check("job1", "job2")
