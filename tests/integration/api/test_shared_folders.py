"""C8 and O13: two live jobs that save to one folder; their owners are told, as far as they may know."""

from typing import Any

import pytest
from trainmaster.core.errors import UnavailableError
from trainmaster.core.jobs.model import JobState

from tests.bodies import body, tag_list
from tests.integration.api.conftest import ADA, BOB, BOTH, Answer, Api

CHECKPOINTS = "s3://shared/checkpoints/"


def send(
    api: Api, name: str, uri: str | None = CHECKPOINTS, *, user: str = ADA, dry: bool = False, **more: Any
) -> Answer:
    config = {"S3Uri": uri} if uri else None
    request = body(TrainingJobName=name, CheckpointConfig=config, Tags=more.pop("Tags", None), **more)
    query = {"dry_run": "true"} if dry else None
    answer = api.call("POST", "/add-job", request, user=user, query=query)
    assert answer.status == (200 if dry else 201), answer
    return answer


def said(answer: Answer) -> list[str]:
    return [f"{one['field']}: {one['message']}" for one in answer.json["warnings"]]


def same(who: str, uri: str = CHECKPOINTS) -> str:
    return (
        f"CheckpointConfig.S3Uri: {who} saves to the same folder, {uri}: each would restore the other's"
        " checkpoints"
    )


def test_C8_from_the_second_on_each_is_warned_of_the_live_job_and_the_folder(api: Api) -> None:
    assert said(send(api, "shares-a")) == []
    api.start("shares-a")
    assert said(send(api, "shares-b")) == [same("job shares-a (running)")]
    assert said(send(api, "shares-c", dry=True)) == [same("job shares-b (pending)")]
    assert said(send(api, "shares-c", CHECKPOINTS.rstrip("/"), dry=True)) == [same("job shares-b (pending)")]


def test_O13_a_job_that_has_ended_is_no_trouble(api: Api) -> None:
    send(api, "a")
    api.end("a", JobState.COMPLETED)
    assert said(send(api, "b")) == []
    send(api, "c")
    api.end("c", JobState.COMPLETED)
    assert said(send(api, "d", dry=True)) == [same("job b (pending)")]  # the last that is live


@pytest.mark.parametrize(
    ("first", "second", "field"),
    [
        ({"uri": "s3://b/a"}, {"uri": "s3://b/ab/x"}, "CheckpointConfig.S3Uri"),
        ({"uri": "s3://b/a/b"}, {"uri": "s3://b/a"}, "CheckpointConfig.S3Uri"),
        (
            {"uri": "s3://b/a"},
            {"uri": None, "OutputDataConfig": {"S3OutputPath": "s3://b/a"}},
            "OutputDataConfig.S3OutputPath",
        ),
        (
            {"uri": None, "OutputDataConfig": {"S3OutputPath": "s3://b/a"}},
            {"uri": "s3://b/a/"},
            "CheckpointConfig.S3Uri",
        ),
    ],
    ids=["a prefix of it", "inside of it", "an output in checkpoints", "checkpoints over an output"],
)
def test_O13_folders_that_meet_otherwise_are_named_too(
    api: Api, first: dict[str, Any], second: dict[str, Any], field: str
) -> None:
    send(api, "first", **first)
    (warning,) = send(api, "second", **second).json["warnings"]
    assert warning["field"] == field
    assert "job first (pending)" in warning["message"]
    assert warning["hint"]


def test_O13_a_job_of_another_team_has_no_name(api: Api) -> None:
    send(api, "secret", user=BOB)
    assert said(send(api, "mine", user=ADA)) == [same("a live job of another team")]
    both = send(api, "ours", user=BOTH, Tags=tag_list({"team": "vision"}))
    assert said(both) == [same("job mine (pending)")]


def test_O13_outputs_beside_each_other_are_no_trouble(api: Api) -> None:
    for name in ("a", "b", "c"):
        assert said(send(api, name, f"s3://ckpt/{name}/")) == []


def test_O13_the_same_request_again_is_not_warned_of_itself(api: Api) -> None:
    send(api, "a")
    assert said(send(api, "a", dry=True)) == []


def test_O13_a_register_that_does_not_answer_keeps_nobody_from_submitting(api: Api) -> None:
    class Broken:
        def near(self, folders: Any) -> Any:  # noqa: ARG002  as the port
            raise UnavailableError("the table did not answer")

    from trainmaster.api import build_api  # noqa: PLC0415

    api.handle = build_api(api.outside(folders=Broken()))
    assert said(send(api, "a")) == []
    api.handle = build_api(api.outside(folders=None))
    assert said(send(api, "b")) == []
