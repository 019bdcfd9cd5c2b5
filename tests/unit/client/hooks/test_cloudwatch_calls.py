"""What a log loop that knows only the submitted name reads of a job with several attempts."""

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from trainmaster_client.errors import ApiUnreachableError, CredentialsError, TrainmasterClientError
from trainmaster_client.hooks import cloudwatch_calls
from trainmaster_client.hooks.botocore_events import PlainClients, Where
from trainmaster_client.jobs.queued_jobs import QueuedJobs

from tests.unit.client.cloudwatch_logs import GROUP, TrainingLogs, job, ms, session


class Queue(QueuedJobs):
    """Knows one job, and asks nobody."""

    def __init__(self) -> None:
        self.document: dict[str, Any] | None = None
        self.trouble: TrainmasterClientError | None = None

    def find(self, name: str) -> dict[str, Any] | None:
        if self.trouble:
            raise self.trouble
        names = [one["training_job_name"] for one in (self.document or {}).get("attempts", ())]
        return self.document if name in names else None


class Readers(PlainClients):
    """Gives one client for every place, and says for which it was asked."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.asked: set[tuple[str, Where]] = set()

    def of(self, service: str, where: Where) -> Any:
        self.asked.add((service, where))
        return self._client


class World:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.logs = TrainingLogs()
        self.queue = Queue()
        self.client: Any = session().client("logs", "us-east-1")
        self.now = 0.0
        monkeypatch.setattr("time.monotonic", lambda: self.now)
        self.readers = Readers(self.logs.client)
        for queue in (Queue(), self.queue):  # said again, the last time counts
            cloudwatch_calls.register(self.client.meta.events, queue, self.readers, region="us-east-1")

    def streams(self, prefix: str) -> list[str]:
        answer = self.client.describe_log_streams(logGroupName=GROUP, logStreamNamePrefix=prefix)
        return [one["logStreamName"] for one in answer["logStreams"]]

    def read(self, stream: str, **options: Any) -> tuple[list[str], str]:
        answer = self.client.get_log_events(
            logGroupName=GROUP, logStreamName=stream, **{"startFromHead": True, **options}
        )
        return [event["message"] for event in answer["events"]], answer["nextForwardToken"]

    def read_all(self, stream: str, **options: Any) -> list[str]:
        """As SDK v2 does: with a token from page to page, until one is empty."""
        found, token = self.read(stream, **options)
        texts = found
        while found:
            found, token = self.read(stream, nextToken=token, **options)
            texts = texts + found
        return texts


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with mock_aws():
        yield World(monkeypatch)


@pytest.fixture
def two_attempts(world: World) -> World:
    world.logs.write("job1/algo-1-100", (1, "a"), (2, "b"))
    world.logs.write("job1/algo-2-100", (1, "other host"))
    world.logs.write("job1-r1-aa/algo-1-200", (9, "c"), (10, "d"))
    world.queue.document = job("job1", "job1-r1-aa", ended=[0])
    return world


def test_the_streams_are_those_of_the_submitted_name_one_a_host(two_attempts: World) -> None:
    assert two_attempts.streams("job1/") == ["job1/algo-1-100", "job1/algo-2-100"]
    assert two_attempts.streams("job1/algo-2") == ["job1/algo-2-100"]


def test_a_stream_goes_on_with_the_same_host_of_the_next_attempt(two_attempts: World) -> None:
    assert two_attempts.read_all("job1/algo-1-100") == ["a", "b", "c", "d"]
    assert two_attempts.read_all("job1/algo-2-100") == ["other host"]


def test_a_loop_that_keeps_its_token_gets_what_comes_later(two_attempts: World) -> None:
    token = None
    for expected in (["a", "b"], ["c", "d"], []):
        options: dict[str, str] = {"nextToken": token} if token else {}
        found, token = two_attempts.read("job1/algo-1-100", **options)
        assert found == expected
    two_attempts.logs.write("job1-r1-aa/algo-1-200", (11, "e"))
    assert two_attempts.read("job1/algo-1-100", nextToken=token)[0] == ["e"]


def test_a_token_of_the_time_before_the_second_attempt_still_counts(world: World) -> None:
    world.logs.write("job1/algo-1-100", (1, "a"), (2, "b"))
    world.queue.document = job("job1")
    found, token = world.read("job1/algo-1-100")
    assert (found, token[:2]) == (["a", "b"], "f/")
    world.logs.write("job1-r1-aa/algo-1-200", (9, "c"))
    world.queue.document = job("job1", "job1-r1-aa", ended=[0])
    assert world.read("job1/algo-1-100", nextToken=token)[0] == ["c"]


def test_a_loop_that_asks_by_time_gets_all_attempts_from_there_on(two_attempts: World) -> None:
    assert two_attempts.read_all("job1/algo-1-100", startTime=ms(2)) == ["b", "c", "d"]
    assert two_attempts.read_all("job1/algo-1-100", startTime=ms(10)) == ["d"]


def test_an_attempt_that_ended_long_before_the_time_asked_for_is_not_read(two_attempts: World) -> None:
    two_attempts.queue.document["attempts"][0]["ended_at"] = "2001-01-01T00:00:00Z"  # type: ignore[index]
    two_attempts.logs.calls.clear()
    assert two_attempts.read("job1/algo-1-100", startTime=ms(9))[0] == ["c", "d"]
    assert two_attempts.logs.calls == ["DescribeLogStreams", "GetLogEvents"]


def test_an_ended_attempt_is_read_on_until_the_next_one_writes(world: World) -> None:
    world.logs.write("job1/algo-1-100", (1, "a"))
    world.queue.document = job("job1", "job1-r1-aa", ended=[0])
    found, token = world.read("job1/algo-1-100")
    world.logs.write("job1/algo-1-100", (2, "late"))
    found, token = world.read("job1/algo-1-100", nextToken=token)
    assert found == ["late"]
    world.logs.write("job1-r1-aa/algo-1-200", (9, "c"))
    world.now += 5
    assert world.read("job1/algo-1-100", nextToken=token)[0] == ["c"]


def test_streams_are_listed_once_in_five_seconds(two_attempts: World) -> None:
    for _ in range(3):
        two_attempts.read("job1/algo-1-100")
    assert two_attempts.logs.calls.count("DescribeLogStreams") == 2
    two_attempts.now += 5
    two_attempts.read("job1/algo-1-100")
    assert two_attempts.logs.calls.count("DescribeLogStreams") == 3, "the first attempt is over"


def test_the_first_line_of_an_attempt_that_ended_since_the_list_is_read_at_once(world: World) -> None:
    """The loop of SDK v3 looks once more when the job has ended, and never again."""
    world.logs.write("job1/algo-1-100", (1, "a"))
    world.queue.document = job("job1", "job1-r1-aa", ended=[0])
    found, token = world.read("job1/algo-1-100")
    assert (found, world.read("job1/algo-1-100", nextToken=token)[0]) == (["a"], [])
    world.logs.write("job1-r1-aa/algo-1-200", (9, "c"))
    world.queue.document = job("job1", "job1-r1-aa", ended=[0, 1])
    assert world.read("job1/algo-1-100", nextToken=token)[0] == ["c"]


def test_a_first_attempt_that_never_wrote_has_streams_in_name(world: World) -> None:
    world.logs.write("job1-r1-aa/algo-1-200", (9, "c"))
    world.queue.document = job("job1", "job1-r1-aa", ended=[0])
    assert world.streams("job1/") == ["job1/algo-1-200"]
    assert world.read_all("job1/algo-1-200") == ["c"]


def test_a_job_without_any_line_has_no_streams(world: World) -> None:
    world.queue.document = job("job1", "job1-r1-aa", ended=[0])
    assert world.streams("job1/") == []


def test_the_name_of_a_later_attempt_reads_that_attempt_alone(two_attempts: World) -> None:
    assert two_attempts.streams("job1-r1-aa/") == ["job1-r1-aa/algo-1-200"]
    assert two_attempts.read_all("job1-r1-aa/algo-1-200") == ["c", "d"]


def test_what_is_not_in_the_queue_is_read_as_ever(world: World) -> None:
    world.logs.write("other/algo-1-100", (1, "a"))
    assert world.streams("other/") == ["other/algo-1-100"]
    assert world.read("other/algo-1-100")[0] == ["a"]
    assert world.logs.calls == []


@pytest.mark.parametrize(
    "trouble", [ApiUnreachableError("https://api", why="away."), CredentialsError("none.")]
)
def test_logs_are_read_while_the_queue_cannot_be_asked(
    trouble: TrainmasterClientError, two_attempts: World
) -> None:
    two_attempts.queue.trouble = trouble
    assert two_attempts.read_all("job1/algo-1-100") == ["a", "b"]


def test_a_client_of_another_region_than_the_queue_s_reads_what_is_there(world: World) -> None:
    world.queue.document = job("job1", "job1-r1-aa", ended=[0])
    client = session().client("logs", "us-west-2")
    cloudwatch_calls.register(client.meta.events, world.queue, world.readers, region="us-east-1")
    client.create_log_group(logGroupName=GROUP)
    client.create_log_stream(logGroupName=GROUP, logStreamName="job1/algo-1-7")
    streams = client.describe_log_streams(logGroupName=GROUP, logStreamNamePrefix="job1/")["logStreams"]
    assert [one["logStreamName"] for one in streams] == ["job1/algo-1-7"]


def test_later_attempts_are_read_where_the_caller_reads(two_attempts: World) -> None:
    client = session().client(
        "logs", "us-east-1", endpoint_url="https://vpce-0a.logs.us-east-1.vpce.amazonaws.com"
    )
    cloudwatch_calls.register(
        client.meta.events, two_attempts.queue, two_attempts.readers, region="us-east-1"
    )
    client.describe_log_streams(logGroupName=GROUP, logStreamNamePrefix="job1/")
    there = Where(region="us-east-1", endpoint_url="https://vpce-0a.logs.us-east-1.vpce.amazonaws.com")
    assert two_attempts.readers.asked == {("logs", there)}


def test_other_log_groups_are_none_of_its_business(two_attempts: World) -> None:
    two_attempts.client.create_log_group(logGroupName="other")
    two_attempts.client.create_log_stream(logGroupName="other", logStreamName="job1/algo-1-100")
    asked = {"logGroupName": "other", "logStreamName": "job1/algo-1-100", "startFromHead": True}
    assert two_attempts.client.get_log_events(**asked)["events"] == []


def test_a_refusal_is_the_one_the_caller_would_have_got(two_attempts: World) -> None:
    def refuse(**_: object) -> None:
        raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "GetLogEvents")

    two_attempts.logs.client.meta.events.register("before-call.cloudwatch-logs.GetLogEvents", refuse)
    with pytest.raises(ClientError, match="AccessDeniedException"):
        two_attempts.read("job1/algo-1-100")
