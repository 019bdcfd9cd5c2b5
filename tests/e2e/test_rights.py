"""The twin enforces the rights in template.yaml: what is taken out there is refused here, whoever asks."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from tests.e2e.plane import Plane, eventually, keys_of, pool, running_plane, tags, until_exists
from tests.e2e.signing import Keys

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]
TAKEN_OUT = {
    "Action: [sagemaker:StopTrainingJob, sagemaker:UpdateTrainingJob]": "Action: sagemaker:UpdateTrainingJob",
}
"""Lines of the template of which a right is removed: schedule may no longer stop its own jobs."""


@pytest.fixture(scope="module")
def plane(tmp_path_factory) -> Iterator[Plane]:
    folder = tmp_path_factory.mktemp("rights")
    with running_plane(folder, policy=pool(1), checkout=checkout_with_less(folder / "less")) as running:
        yield running


def checkout_with_less(folder: Path) -> Path:
    """The project as it is, but for its template."""
    folder.mkdir()
    for name in ("local", "functions", "layers"):
        (folder / name).symlink_to(ROOT / name)
    template = (ROOT / "template.yaml").read_text()
    for line, less in TAKEN_OUT.items():
        assert template.count(line) == 1
        template = template.replace(line, less)
    (folder / "template.yaml").write_text(template)
    return folder


def test_a_right_that_the_template_does_not_give_is_refused_and_the_journal_says_so(plane, tmp_path):
    file, before = tmp_path / "may-end", plane.twin.records()[-1]["seq"]
    plane.add(plane.request("unstoppable", until_exists(file)))
    plane.await_state("unstoppable", "running")
    plane.await_status("unstoppable", "Training")
    assert plane.call("DELETE", "/jobs/unstoppable").status == 202
    stops = eventually(lambda: plane.calls("StopTrainingJob"), bool)
    assert all(re.search(r":assumed-role/[^/]+/schedule$", one["principal"]) for one in stops)
    assert {(one["error_code"], one["status"]) for one in stops} == {("AccessDeniedException", 400)}
    assert plane.job("unstoppable")["state"] == "stopping"
    assert plane.described("unstoppable")["TrainingJobStatus"] == "InProgress"
    file.touch()
    plane.await_state("unstoppable", "completed")
    since = [one for one in plane.twin.records() if one["kind"] == "call" and one["seq"] > before]
    refused = {one["operation"] for one in since if "AccessDenied" in (one["error_code"] or "")}
    assert refused == {"StopTrainingJob"}, "everything else is still allowed"


def test_the_keys_of_the_api_are_good_for_its_own_work_alone(plane):
    """They are read from the environment of its process, where an intruder would find them."""
    keys = keys_of(plane, "api")
    assert plane.client("sts", keys).get_caller_identity()["Arn"].endswith("/api")
    sagemaker, request = plane.client("sagemaker", keys), plane.request("intruder", ["true"])
    assert is_refused(sagemaker.create_training_job, **request)
    assert is_refused(sagemaker.describe_training_job, TrainingJobName="unstoppable")
    assert is_refused(sagemaker.list_training_jobs)
    assert_reads_no_data_and_makes_nobody(plane, keys)


def test_the_keys_of_schedule_start_nothing_but_what_carries_the_tag_and_an_allowed_role(plane):
    keys = keys_of(plane, "schedule")
    sagemaker = plane.client("sagemaker", keys)
    stack = tags(**{"trainmaster:stack": "trainmaster"})
    untagged = plane.request("intruder", ["true"])
    for_another = untagged | {"Tags": tags(**{"trainmaster:stack": "another"})}
    as_another = untagged | {"Tags": stack, "RoleArn": f"{plane.twin.ready['role_arn']}-2"}
    for request in (untagged, for_another, as_another):
        assert is_refused(sagemaker.create_training_job, **request)
    assert is_refused(sagemaker.delete_training_job, TrainingJobName="unstoppable")
    assert_reads_no_data_and_makes_nobody(plane, keys)
    sagemaker.create_training_job(**untagged | {"Tags": stack})
    assert plane.described("intruder")["TrainingJobStatus"] == "InProgress"


def assert_reads_no_data_and_makes_nobody(plane: Plane, keys: Keys) -> None:
    bucket = plane.twin.ready["bucket"]
    assert is_refused(plane.client("s3", keys).list_objects_v2, Bucket=bucket)
    assert is_refused(plane.client("iam", keys).create_user, UserName="intruder")
    (table,) = plane.client("dynamodb").list_tables()["TableNames"]
    assert is_refused(plane.client("dynamodb", keys).delete_table, TableName=table)
    assert is_refused(plane.client("dynamodb", keys).scan, TableName=table)


def is_refused(operation: Callable[..., object], **params: object) -> bool:
    try:
        operation(**params)
    except ClientError as error:
        return error.response["Error"]["Code"] in {"AccessDenied", "AccessDeniedException"}
    return False
