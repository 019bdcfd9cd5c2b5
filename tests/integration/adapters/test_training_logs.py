"""The end of a training job's log, read from CloudWatch Logs whatever state it is in."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, ReadTimeoutError
from botocore.stub import Stubber
from trainmaster.adapters.training_logs import GROUP, CloudWatchLogs

JOB = "resnet-r1-0a1b2c"
Line = tuple[int, str]


@dataclass(slots=True)
class Logs:
    """The two calls of CloudWatch Logs, on streams in memory."""

    streams: dict[str, list[Line]]
    created: dict[str, int] = field(default_factory=dict)
    broken: dict[str, Exception] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    on_call: Callable[[], None] = lambda: None

    def describe_log_streams(self, **request: Any) -> dict[str, Any]:
        self._called("describe")
        names = [name for name in sorted(self.streams) if name.startswith(request["logStreamNamePrefix"])]
        found = [{"logStreamName": name, "creationTime": self.created.get(name, 0)} for name in names]
        return {"logStreams": found[: request["limit"]]}

    def get_log_events(self, **request: Any) -> dict[str, Any]:
        name = request["logStreamName"]
        self._called(name)
        events = [{"timestamp": at, "message": text} for at, text in self.streams[name]]
        return {"events": events[-request["limit"] :]}

    def _called(self, call: str) -> None:
        self.calls.append(call)
        self.on_call()
        if call in self.broken:
            raise self.broken[call]


def refused(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code}}, "GetLogEvents")


def tail(logs: Logs) -> tuple[str, ...]:
    return CloudWatchLogs(lambda: logs, seconds=lambda: 0.0).tail(JOB)


def test_lines_of_all_hosts_come_in_the_order_of_time() -> None:
    logs = Logs(
        {
            f"{JOB}/algo-1-17": [(1, "one"), (4, "four")],
            f"{JOB}/algo-2-17": [(2, "two"), (3, "three")],
            f"{JOB}0/algo-1-17": [(2, "of a namesake")],
        }
    )
    assert tail(logs) == ("one", "two", "three", "four")


def test_only_the_last_two_hundred_lines_are_read() -> None:
    logs = Logs({f"{JOB}/algo-1-17": [(number, f"line {number}") for number in range(500)]})
    found = tail(logs)
    assert (len(found), found[0], found[-1]) == (200, "line 300", "line 499")


def test_a_host_that_talks_much_does_not_hide_what_another_said() -> None:
    chatter = [(100 + number, "NCCL WARN connection reset") for number in range(300)]
    logs = Logs({f"{JOB}/algo-1-17": [(1, "CUDA out of memory")], f"{JOB}/algo-2-17": chatter})
    found = tail(logs)
    assert found[0] == "CUDA out of memory"
    assert len(found) == 1 + 100


def test_lines_of_ten_megabytes_are_cut_and_64_kilobytes_are_the_most() -> None:
    huge = f"head {'x' * 10_000_000} tail"
    (found,) = tail(Logs({f"{JOB}/algo-1-17": [(1, huge)]}))
    assert found.startswith("head xxx")
    assert found.endswith("xxx tail")
    assert len(found) == 4096 + len(" ... ")
    many = tail(Logs({f"{JOB}/algo-1-17": [(number, huge) for number in range(30)]}))
    assert len(many) == 15
    assert sum(len(line) for line in many) <= 64 * 1024


def test_wide_characters_count_as_the_bytes_they_are() -> None:
    found = tail(Logs({f"{JOB}/algo-1-17": [(number, "\u20ac" * 1000) for number in range(30)]}))
    assert len(found) == 21  # of 3,000 bytes each


def test_a_message_may_have_several_lines_and_a_progress_bar_overwrites_itself() -> None:
    logs = Logs({f"{JOB}/algo-1-17": [(1, "Traceback:\n\n  KeyError: 'x'\r\n"), (2, "1%\r2%\r3%\r")]})
    assert tail(logs) == ("Traceback:", "  KeyError: 'x'", "3%")


def test_control_characters_come_as_they_are() -> None:
    assert tail(Logs({f"{JOB}/algo-1-17": [(1, "\x00\x1b[31m\ud800")]})) == ("\x00\x1b[31m\ud800",)


def test_the_ten_newest_streams_are_read() -> None:
    names = [f"{JOB}/algo-{number}-17" for number in range(1, 16)]
    logs = Logs({name: [(1, name)] for name in names}, created={name: n for n, name in enumerate(names)})
    assert set(tail(logs)) == set(names[5:])


@pytest.mark.parametrize(
    "code", ["ResourceNotFoundException", "AccessDeniedException", "ThrottlingException"]
)
def test_without_a_log_there_are_no_lines(code: str) -> None:
    assert tail(Logs({}, broken={"describe": refused(code)})) == ()


def test_without_streams_there_are_no_lines() -> None:
    assert tail(Logs({})) == ()


def test_a_stream_that_cannot_be_read_does_not_hide_the_others() -> None:
    broken, good = f"{JOB}/algo-1-17", f"{JOB}/algo-2-17"
    logs = Logs({broken: [(1, "a")], good: [(2, "b")]})
    for error in (refused("AccessDeniedException"), ReadTimeoutError(endpoint_url="https://logs")):
        logs.broken = {broken: error}
        assert tail(logs) == ("b",)


def test_after_three_seconds_what_was_read_is_enough() -> None:
    names = [f"{JOB}/algo-{number}-17" for number in range(1, 6)]
    logs = Logs({name: [(1, name)] for name in names})
    passed = iter(range(100))
    now = [0.0]

    def a_second_passes() -> None:
        now[0] = float(next(passed))

    logs.on_call = a_second_passes
    found = CloudWatchLogs(lambda: logs, seconds=lambda: now[0]).tail(JOB)
    assert found == tuple(names[:3])
    assert logs.calls == ["describe", *names[:3]]


def test_the_calls_are_those_of_cloudwatch_logs(aws: None) -> None:
    client = boto3.client("logs")
    stream = f"{JOB}/algo-1-17"
    with Stubber(client) as stub:
        stub.add_response(
            "describe_log_streams",
            {"logStreams": [{"logStreamName": stream, "creationTime": 1, "lastEventTimestamp": 2}]},
            {"logGroupName": GROUP, "logStreamNamePrefix": f"{JOB}/", "limit": 50},
        )
        stub.add_response(
            "get_log_events",
            {"events": [{"timestamp": 1, "message": "hello", "ingestionTime": 2}]},
            {"logGroupName": GROUP, "logStreamName": stream, "limit": 200, "startFromHead": False},
        )
        assert CloudWatchLogs(lambda: client).tail(JOB) == ("hello",)
        stub.assert_no_pending_responses()
