"""``trainmaster tune`` beside a queue that remembers and S3."""

import json
import re

from tests.integration.client.command import Trainmaster
from tests.integration.client.hooks.tuning_world import World, world
from tests.unit.client.tuning.requests import request

__all__ = ["world"]


def test_a_study_is_shown_stopped_and_attached_to(world: World, trainmaster: Trainmaster) -> None:
    world.sagemaker.create_hyper_parameter_tuning_job(**request())
    shown = trainmaster("tune", "show", "tune")
    assert shown.err == ""
    assert shown.out.splitlines()[0] == "tune: InProgress, 0 of 4 trials ended, 2 wait or run"
    assert re.search(r"tune-001-\w{8} InProgress \(rate=0\.\d+\)", shown.out)
    stored = json.loads(trainmaster("tune", "show", "tune", "--output", "s3://bucket/out", "--json").out)
    assert [one["status"] for one in stored["trials"]] == ["InProgress"] * 2

    assert trainmaster("tune", "stop", "tune").code == 0
    attached = trainmaster("tune", "attach", "tune")
    assert (attached.code, attached.out) == (1, "tune: Stopped, 2 of 4 trials ended, 0 wait or run\n")


def test_attaching_to_a_study_that_completed_ends_with_0(world: World, trainmaster: Trainmaster) -> None:
    limits = {"MaxNumberOfTrainingJobs": 2, "MaxParallelTrainingJobs": 2}
    world.sagemaker.create_hyper_parameter_tuning_job(**request(ResourceLimits=limits))
    world.end(1, 0.5)
    world.end(2, None, state="failed")
    world.eventually(lambda seen: seen["HyperParameterTuningJobStatus"] == "Completed")
    attached = trainmaster("tune", "attach", "tune", "--json")
    assert attached.code == 0
    assert json.loads(attached.out)["ending"] == "Completed"
    assert "best loss 0.5 by tune-001-" in trainmaster("tune", "show", "tune").out


def test_an_unknown_study_is_not_found_and_says_what_to_give(world: World, trainmaster: Trainmaster) -> None:
    for command in (["show", "other"], ["attach", "other", "--output", "s3://bucket/out"], ["stop", "other"]):
        found = trainmaster("tune", *command)
        assert found.code == 4
        assert "No such tuning job" in found.err
        assert "--output s3://bucket/prefix" in found.err
    assert "is not a place for a study" in trainmaster("tune", "show", "other", "--output", "bucket").err
