"""What is told of a job, as a subscriber of the mail topic and a rule on the event bus get it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.plane import Document, Plane, eventually, pool, running_plane, until_exists

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    with running_plane(tmp_path_factory.mktemp("notices"), policy=pool(2)) as running:
        yield running


def queue(plane: Plane, name: str) -> tuple[str, str]:
    """URL and ARN of a new one."""
    sqs = plane.client("sqs")
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    wanted = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    return url, wanted["Attributes"]["QueueArn"]


def received(plane: Plane, url: str) -> Document | None:
    for message in plane.client("sqs").receive_message(QueueUrl=url).get("Messages", []):
        body: Document = json.loads(message["Body"])
        return body
    return None


def subscribe(plane: Plane, queue_arn: str, **filters: list[str]) -> None:
    sns = plane.client("sns")
    topics = [one["TopicArn"] for one in sns.list_topics()["Topics"]]
    (mail,) = [arn for arn in topics if "MailTopic" in arn]
    attributes: dict[str, Any] = {"FilterPolicy": json.dumps(filters)}
    sns.subscribe(TopicArn=mail, Protocol="sqs", Endpoint=queue_arn, Attributes=attributes)


def test_a_stopped_job_is_mailed_and_an_event_with_the_same_id(plane: Plane, tmp_path: Any) -> None:
    mails, mail_queue = queue(plane, "mails")
    others, other_queue = queue(plane, "mails-of-others")
    subscribe(plane, mail_queue, team=["default"], kind=["Job Stopped"])
    subscribe(plane, other_queue, team=["speech"])
    events, event_queue = queue(plane, "events")
    pattern = json.dumps({"source": ["trainmaster"], "detail-type": ["Job Stopped"]})
    plane.client("events").put_rule(Name="told", EventPattern=pattern)
    plane.client("events").put_targets(Rule="told", Targets=[{"Id": "1", "Arn": event_queue}])

    plane.add(plane.request("told-of", until_exists(tmp_path / "never")))
    plane.await_state("told-of", "running")
    assert plane.call("DELETE", "/jobs/told-of").status == 202
    plane.await_state("told-of", "stopped")

    event = eventually(lambda: received(plane, events), lambda seen: seen is not None)
    mail = eventually(lambda: received(plane, mails), lambda seen: seen is not None)
    assert event is not None
    assert mail is not None
    assert (event["source"], event["detail-type"]) == ("trainmaster", "Job Stopped")
    assert (event["detail"]["job"], event["detail"]["reason"]) == ("told-of", "stopped-by-user")
    assert mail["Subject"] == "[trainmaster] Job Stopped: told-of"
    assert event["detail"]["id"] in mail["Message"]
    assert received(plane, others) is None
