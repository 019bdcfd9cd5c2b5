"""A job with a key of the customer, over the deployed template: without and with the parameter for it."""

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.plane import INSTANCE_TYPE, Plane, pool, running_plane

pytestmark = pytest.mark.thorough

MINUTE_SECONDS = 60
KEY = "arn:aws:kms:us-east-1:123456789012:key/volumes"


def submit(plane: Plane, name: str, **resources: Any) -> None:
    asked = {"InstanceType": INSTANCE_TYPE, "InstanceCount": 1, "VolumeSizeInGB": 10, **resources}
    plane.add(plane.request(name, ["true"], ResourceConfig=asked))


def test_N19_without_the_parameter_the_job_fails_with_the_remedy_and_the_next_one_starts(
    tmp_path: Path,
) -> None:
    with running_plane(tmp_path, "--clock", "manual", policy=pool(1)) as plane:
        submit(plane, "encrypted", VolumeKmsKeyId=KEY)
        submit(plane, "plain")
        for _ in range(5):
            plane.clock(MINUTE_SECONDS)
        reason = plane.job("encrypted")["reason"]
        assert reason["code"] == "failed-to-start"
        for part in (KEY, "not authorized to perform: kms:CreateGrant", "TrainingKmsKeyArns"):
            assert part in reason["message"]
        assert plane.job("plain")["state"] == "completed"


def test_N19_with_the_parameter_the_job_starts(tmp_path: Path) -> None:
    with running_plane(tmp_path, "--parameter", f"TrainingKmsKeyArns={KEY}", policy=pool(1)) as plane:
        submit(plane, "encrypted", VolumeKmsKeyId=KEY)
        plane.await_state("encrypted", "completed")
