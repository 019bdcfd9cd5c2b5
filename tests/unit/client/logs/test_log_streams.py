"""Pages of CloudWatch Logs as it may answer them, of which its fake makes no use."""

from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from trainmaster_client.errors import LogsUnansweredError, LogsUnreadableError
from trainmaster_client.logs.log_streams import LogStream, LogStreams


class Scripted:
    """A client for logs that answers each operation's script in order."""

    def __init__(self, **answers: list[dict[str, Any]]) -> None:
        self.asked: list[dict[str, Any]] = []
        for operation, script in answers.items():
            setattr(self, operation, lambda script=script, **asked: self._next(script, asked))

    def _next(self, script: list[dict[str, Any]], asked: dict[str, Any]) -> dict[str, Any]:
        self.asked.append({key: asked[key] for key in ("nextToken", "startTime") if key in asked})
        return script.pop(0)


def test_an_empty_page_before_the_end_is_passed_over() -> None:
    event = {"timestamp": 1, "message": "a"}
    pages: list[dict[str, Any]] = [
        {"events": [], "nextForwardToken": "f/1"},
        {"events": [], "nextForwardToken": "f/2"},
        {"events": [event], "nextForwardToken": "f/3"},
    ]
    client = Scripted(get_log_events=pages)
    page = LogStreams(client).next_page("job1/algo-1-100", None, startTime=5)
    assert (page.events, page.forward) == ([event], "f/3")
    assert [one.get("nextToken") for one in client.asked] == [None, "f/1", "f/2"]
    assert {one["startTime"] for one in client.asked} == {5}


def test_the_end_is_where_the_token_stays_the_same() -> None:
    client = Scripted(get_log_events=[{"events": [], "nextForwardToken": "f/1"}])
    page = LogStreams(client).next_page("job1/algo-1-100", "f/1")
    assert (page.events, page.forward) == ([], "f/1")


def test_all_pages_of_streams_are_read_and_those_that_no_host_writes_are_left_out() -> None:
    pages: list[dict[str, Any]] = [
        {
            "logStreams": [{"logStreamName": "job1/algo-10-100"}, {"logStreamName": "job1/notes"}],
            "nextToken": "t",
        },
        {"logStreams": [{"logStreamName": "job1/algo-2-200"}, {"logStreamName": "job1/algo-2-100"}]},
    ]
    client = Scripted(describe_log_streams=pages)
    found = [stream.name for stream in LogStreams(client).of("job1")]
    assert found == ["job1/algo-2-100", "job1/algo-2-200", "job1/algo-10-100"]
    assert client.asked == [{}, {"nextToken": "t"}]


@pytest.mark.parametrize("name", ["job1", "job1/algo-x-1", "job1/algo-1", "a/b/algo-1-1", "job1/algo-1-1/x"])
def test_a_name_of_another_form_is_no_stream_of_a_host(name: str) -> None:
    assert LogStream.parse(name) is None


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [
        ("ThrottlingException", 400, LogsUnansweredError),
        ("ServiceUnavailableException", 503, LogsUnansweredError),
        ("AccessDeniedException", 400, LogsUnreadableError),
    ],
)
def test_what_may_pass_is_told_from_missing_rights(code: str, status: int, expected: type[Exception]) -> None:
    class Refusing:
        def describe_log_streams(self, **_: object) -> None:
            answer = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
            raise ClientError(answer, "DescribeLogStreams")  # type: ignore[arg-type]  # not all of its metadata

    with pytest.raises(LogsUnreadableError) as caught:
        LogStreams(Refusing()).of("job1")
    assert type(caught.value) is expected


def test_an_endpoint_out_of_reach_is_one_error_that_names_it() -> None:
    class Away:
        def describe_log_streams(self, **_: object) -> None:
            raise EndpointConnectionError(endpoint_url="https://logs.example")

    with pytest.raises(LogsUnansweredError, match="https://logs"):
        LogStreams(Away()).of("job1")
