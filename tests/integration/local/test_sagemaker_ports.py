"""One contract for each port of the training twin, on the fake and on boto3 against an engine."""

import time
from typing import Any

import boto3
import pytest
from moto import mock_aws

from local.sagemaker.adapters import CloudWatchLogSink, S3Store
from local.sagemaker.ports import LogLine, LogSink, ObjectStore
from tests.integration.local.sagemaker_world import BUCKET, LOG_GROUP, Buckets, Lines

NOW_MS = round(time.time() * 1000)


@pytest.fixture
def engine(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        yield


@pytest.fixture(params=["in memory", "s3"])
def store(request, engine) -> ObjectStore:
    if request.param == "in memory":
        return Buckets(BUCKET)
    client: Any = boto3.client("s3")
    client.create_bucket(Bucket=BUCKET)
    client.meta.events.register("provide-client-params.s3.ListObjectsV2", _in_small_pages)
    return S3Store(client)


def _in_small_pages(params: dict[str, Any], **_: Any) -> dict[str, Any]:
    return params | {"MaxKeys": 2}


def test_a_store_knows_its_buckets(store):
    assert store.has_bucket(BUCKET)
    assert not store.has_bucket("no-such-bucket")


def test_a_store_gives_back_what_was_written_last(store):
    store.write(BUCKET, "a/b", b"1")
    store.write(BUCKET, "a/b", b"2")

    assert store.read(BUCKET, "a/b") == b"2"


def test_a_store_lists_all_keys_of_a_prefix_in_order(store):
    for number in range(5):
        store.write(BUCKET, f"p/{number}", b"")
    store.write(BUCKET, "q", b"")

    assert store.keys(BUCKET, "p/") == [f"p/{number}" for number in range(5)]


def test_what_a_store_deleted_is_gone(store):
    store.write(BUCKET, "a", b"1")
    store.delete(BUCKET, "a")

    assert store.keys(BUCKET, "") == []
    with pytest.raises(FileNotFoundError):
        store.read(BUCKET, "a")


def test_a_store_cannot_write_to_a_bucket_that_is_not_there(store):
    with pytest.raises(FileNotFoundError):
        store.write("no-such-bucket", "a", b"1")


class _CloudWatchLines(CloudWatchLogSink):
    def __init__(self, client: Any) -> None:
        super().__init__(client)
        self._logs = client

    def messages(self, job: str) -> list[str]:
        streams = self._logs.describe_log_streams(logGroupName=LOG_GROUP, logStreamNamePrefix=f"{job}/")
        return [
            event["message"]
            for stream in streams["logStreams"]
            for event in self._logs.get_log_events(
                logGroupName=LOG_GROUP, logStreamName=stream["logStreamName"], startFromHead=True
            )["events"]
        ]


@pytest.fixture(params=["in memory", "cloudwatch"])
def sink(request, engine) -> Any:
    return Lines() if request.param == "in memory" else _CloudWatchLines(boto3.client("logs"))


def test_a_log_keeps_the_lines_of_a_stream_in_order(sink: Any):
    taker: LogSink = sink
    taker.put(LOG_GROUP, "job/algo-1-1", [LogLine(timestamp_ms=NOW_MS, message="one")])
    taker.put(
        LOG_GROUP,
        "job/algo-1-1",
        [LogLine(timestamp_ms=NOW_MS, message="two"), LogLine(timestamp_ms=NOW_MS + 1, message="three")],
    )

    assert sink.messages("job") == ["one", "two", "three"]
    assert sink.messages("other") == []
