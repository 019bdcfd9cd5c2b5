"""The lines of a job over all its attempts, against CloudWatch Logs in this process."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import cycle

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, UnauthorizedSSOTokenError
from moto import mock_aws
from trainmaster_client.errors import LogsExpiredError, LogsUnansweredError, LogsUnreadableError
from trainmaster_client.jobs.progress import ExpiryNotice
from trainmaster_client.logs.joined_attempts import JobLogs, LogLine, LogTail, Selection

from tests.unit.client.cloudwatch_logs import NOON, TrainingLogs, job, ms

NOT_NOW = "No new log lines for now: Cannot read the logs of training jobs: "


@pytest.fixture
def logs() -> Iterator[TrainingLogs]:
    with mock_aws():
        yield TrainingLogs()


def told(lines: list[LogLine]) -> list[tuple[int, str, str]]:
    return [(line.attempt, line.host, line.text) for line in lines]


def test_a_job_of_a_region_without_logs_has_no_lines_yet(logs: TrainingLogs) -> None:
    assert JobLogs(logs.client).new_lines(job("job1")) == []


def test_a_line_says_attempt_host_time_and_text(logs: TrainingLogs) -> None:
    logs.write("job1/algo-1-100", (5, "loss 1.5\n"))
    assert JobLogs(logs.client).new_lines(job("job1")) == [
        LogLine(attempt=0, host="algo-1", at=NOON + timedelta(seconds=5), text="loss 1.5")
    ]


def test_lines_of_hosts_are_in_the_order_of_their_times(logs: TrainingLogs) -> None:
    logs.write("job1/algo-2-100", (2, "b"), (4, "d"))
    logs.write("job1/algo-1-100", (1, "a"), (3, "c"))
    found = told(JobLogs(logs.client).new_lines(job("job1")))
    assert found == [(0, "algo-1", "a"), (0, "algo-2", "b"), (0, "algo-1", "c"), (0, "algo-2", "d")]


def test_lines_of_one_instant_are_in_the_order_of_their_hosts(logs: TrainingLogs) -> None:
    for host in (10, 2, 1):
        logs.write(f"job1/algo-{host}-100", (1, "at once"))
    found = told(JobLogs(logs.client).new_lines(job("job1")))
    assert [host for _, host, _ in found] == ["algo-1", "algo-2", "algo-10"]


def test_attempts_follow_each_other_whatever_their_clocks_say(logs: TrainingLogs) -> None:
    logs.write("job1/algo-1-100", (9, "first"))
    logs.write("job1-r1-aa/algo-1-200", (1, "second"))
    logs.write("job1-other/algo-1-300", (1, "another job's"))
    found = JobLogs(logs.client).new_lines(job("job1", "job1-r1-aa", ended=[0]))
    assert told(found) == [(0, "algo-1", "first"), (1, "algo-1", "second")]


def test_each_line_comes_once(logs: TrainingLogs) -> None:
    reader = JobLogs(logs.client)
    logs.write("job1/algo-1-100", (1, "a"))
    assert told(reader.new_lines(job("job1"))) == [(0, "algo-1", "a")]
    assert reader.new_lines(job("job1")) == []
    logs.write("job1/algo-1-100", (1, "b"), (2, "c"))
    assert told(reader.new_lines(job("job1"))) == [(0, "algo-1", "b"), (0, "algo-1", "c")]


def test_a_host_and_an_attempt_that_appear_later_are_found(logs: TrainingLogs) -> None:
    reader = JobLogs(logs.client)
    assert reader.new_lines(job(None)) == []
    logs.write("job1/algo-1-100", (1, "a"))
    reader.new_lines(job("job1"))
    logs.write("job1/algo-2-100", (1, "b"))
    assert told(reader.new_lines(job("job1"))) == [(0, "algo-2", "b")]
    logs.write("job1-r1-aa/algo-1-200", (5, "c"))
    assert told(reader.new_lines(job("job1", "job1-r1-aa", ended=[0]))) == [(1, "algo-1", "c")]


def test_the_second_stream_of_a_host_that_spot_took_away_is_read_too(logs: TrainingLogs) -> None:
    logs.write("job1/algo-1-100", (1, "before"))
    logs.write("job1/algo-1-200", (9, "after"))
    found = told(JobLogs(logs.client).new_lines(job("job1")))
    assert found == [(0, "algo-1", "before"), (0, "algo-1", "after")]


def test_late_lines_of_an_ended_attempt_come_with_its_number(logs: TrainingLogs) -> None:
    reader = JobLogs(logs.client)
    logs.write("job1/algo-1-100", (1, "a"))
    logs.write("job1-r1-aa/algo-1-200", (5, "c"))
    reader.new_lines(job("job1", "job1-r1-aa", ended=[0]))
    for text in ("late", "later"):
        logs.write("job1/algo-1-100", (2, text))
        assert told(reader.new_lines(job("job1", "job1-r1-aa", ended=[0]))) == [(0, "algo-1", text)]


def test_an_attempt_whose_end_nobody_has_seen_is_read_on_beside_a_later_one(logs: TrainingLogs) -> None:
    reader = JobLogs(logs.client)
    logs.write("job1/algo-1-100", (1, "a"))
    logs.write("job1-r1-aa/algo-1-200", (5, "c"))
    for _ in range(3):
        reader.new_lines(job("job1", "job1-r1-aa"))
    logs.write("job1/algo-1-100", (2, "b"))
    assert told(reader.new_lines(job("job1", "job1-r1-aa"))) == [(0, "algo-1", "b")]


def test_an_attempt_that_is_over_and_followed_is_no_longer_asked_for(logs: TrainingLogs) -> None:
    reader = JobLogs(logs.client)
    logs.write("job1/algo-1-100", (1, "a"))
    logs.write("job1-r1-aa/algo-1-200", (5, "c"))
    document = job("job1", "job1-r1-aa", ended=[0])
    for _ in range(2):
        reader.new_lines(document)
    logs.calls.clear()
    assert reader.new_lines(document) == []
    assert logs.calls == ["DescribeLogStreams", "GetLogEvents"]


def test_an_attempt_that_ended_is_asked_for_until_the_next_one_writes(logs: TrainingLogs) -> None:
    reader = JobLogs(logs.client)
    logs.write("job1/algo-1-100", (1, "a"))
    for _ in range(3):
        reader.new_lines(job("job1", "job1-r1-aa", ended=[0]))
    logs.write("job1/algo-1-100", (2, "late"))
    assert told(reader.new_lines(job("job1", "job1-r1-aa", ended=[0]))) == [(0, "algo-1", "late")]


def test_a_backlog_of_more_than_a_page_is_read_to_its_end(logs: TrainingLogs) -> None:
    for first in range(0, 15_000, 5_000):
        logs.write("job1/algo-1-100", *((1, str(number)) for number in range(first, first + 5_000)))
    texts = [line.text for line in JobLogs(logs.client).lines(job("job1"))]
    assert texts == [str(number) for number in range(15_000)]


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(attempt=1), ["c1", "c2"]),
        (Selection(host="algo-2"), ["a2", "c2"]),
        (Selection(since=NOON + timedelta(seconds=3)), ["c1", "c2"]),
        (Selection(tail=1), ["c2"]),
        (Selection(tail=3), ["a2", "c1", "c2"]),
        (Selection(tail=9), ["a1", "a2", "c1", "c2"]),
        (Selection(tail=9, attempt=0, host="algo-1"), ["a1"]),
    ],
)
def test_a_selection_narrows_what_is_read(
    logs: TrainingLogs, selection: Selection, expected: list[str]
) -> None:
    logs.write("job1/algo-1-100", (1, "a1"))
    logs.write("job1/algo-2-100", (2, "a2"))
    logs.write("job1-r1-aa/algo-1-200", (5, "c1"))
    logs.write("job1-r1-aa/algo-2-200", (6, "c2"))
    document = job("job1", "job1-r1-aa", ended=[0])
    assert [line.text for line in JobLogs(logs.client, selection).new_lines(document)] == expected


def test_after_a_tail_only_what_is_new_is_told(logs: TrainingLogs) -> None:
    reader = JobLogs(logs.client, Selection(tail=1))
    logs.write("job1/algo-1-100", (1, "a"), (2, "b"))
    reader.new_lines(job("job1"))
    logs.write("job1/algo-1-100", (3, "c"))
    assert told(reader.new_lines(job("job1"))) == [(0, "algo-1", "c")]


def test_a_short_tail_does_not_read_older_attempts(logs: TrainingLogs) -> None:
    logs.write("job1/algo-1-100", (1, "a"))
    logs.write("job1-r1-aa/algo-1-200", (5, "c"))
    reader, document = JobLogs(logs.client, Selection(tail=1)), job("job1", "job1-r1-aa", ended=[0])
    assert told(reader.new_lines(document)) == [(1, "algo-1", "c")]
    assert logs.calls == ["DescribeLogStreams", "GetLogEvents"]
    assert reader.new_lines(document) == []


def test_lines_before_and_after_a_failure_come_once(logs: TrainingLogs) -> None:
    logs.write("job1/algo-1-100", (1, "a"), (2, "b"), (4, "d"))
    logs.write("job1/algo-2-100", (3, "c"))
    tail, fails = LogTail(lambda: logs.client), cycle([False, False, True])

    def fail(**_: object) -> None:
        if next(fails):
            raise EndpointConnectionError(endpoint_url="https://logs.example")

    logs.client.meta.events.register("before-call.cloudwatch-logs.GetLogEvents", fail)
    shown = [line for _ in range(4) for line in tail.lines(job("job1"))]
    assert [line for line in shown if not line.startswith(NOT_NOW)] == ["a", "b", "c", "d"]
    assert sum(line.startswith(NOT_NOW) for line in shown) > 1


def test_fit_shows_lines_that_cloudwatch_did_not_give_for_a_while(logs: TrainingLogs) -> None:
    logs.write("job1/algo-1-100", (1, "a"))
    answered = iter([True, False, False, True])

    def fail(**_: object) -> None:
        if not next(answered):
            raise EndpointConnectionError(endpoint_url="https://logs.example")

    logs.client.meta.events.register("before-call.cloudwatch-logs.DescribeLogStreams", fail)
    tail = LogTail(lambda: logs.client)
    shown = [tail.lines(job("job1")), tail.lines(job("job1")), tail.lines(job("job1"))]
    logs.client.put_log_events(
        logGroupName="/aws/sagemaker/TrainingJobs",
        logStreamName="job1/algo-1-100",
        logEvents=[{"timestamp": ms(2), "message": "b"}],
    )
    shown.append(tail.lines(job("job1")))
    assert shown == [
        ["a"],
        [
            (
                f'{NOT_NOW}Could not connect to the endpoint URL: "https://logs.example". '
                "The job does not depend on it; the same lines can be read later."
            )
        ],
        [],
        ["b"],
    ]


def test_a_tail_that_failed_is_taken_again(logs: TrainingLogs) -> None:
    logs.write("job1/algo-1-100", (1, "a"), (2, "b"))
    logs.write("job1/algo-2-100", (3, "c"), (4, "d"))
    reader, failures = JobLogs(logs.client, Selection(tail=1)), iter([False, True, *[False] * 9])

    def fail(**_: object) -> None:
        if next(failures):
            raise EndpointConnectionError(endpoint_url="https://logs.example")

    logs.client.meta.events.register("before-call.cloudwatch-logs.GetLogEvents", fail)
    with pytest.raises(LogsUnansweredError):
        reader.new_lines(job("job1"))
    assert told(reader.new_lines(job("job1"))) == [(0, "algo-2", "d")]


EXPIRED = (
    ClientError({"Error": {"Code": "ExpiredTokenException", "Message": "it is expired"}}, "GetLogEvents"),
    UnauthorizedSSOTokenError(),
)


@pytest.mark.parametrize("error", EXPIRED, ids=lambda error: type(error).__name__)
def test_O15_credentials_that_expire_are_no_missing_right(logs: TrainingLogs, error: Exception) -> None:
    logs.write("job1/algo-1-100", (1, "a"))

    def fail(**_: object) -> None:
        raise error

    logs.client.meta.events.register("before-call.cloudwatch-logs.GetLogEvents", fail)
    with pytest.raises(LogsExpiredError) as caught:
        JobLogs(logs.client).new_lines(job("job1"))
    assert "To log in again: aws sso login" in str(caught.value)
    assert "logs:GetLogEvents" not in str(caught.value)


@pytest.mark.parametrize("error", EXPIRED, ids=lambda error: type(error).__name__)
def test_O15_fit_says_once_that_they_expired_and_shows_the_lines_after_a_login(
    logs: TrainingLogs, error: Exception
) -> None:
    logs.write("job1/algo-1-100", (1, "a"))
    answered, made = iter([True, False, False, False, True, True]), []

    def fail(**_: object) -> None:
        if not next(answered):
            raise error

    def make() -> object:
        made.append(logs.client)
        return logs.client

    logs.client.meta.events.register("before-call.cloudwatch-logs.DescribeLogStreams", fail)
    expiry = ExpiryNotice()
    tail = LogTail(make, expiry=expiry)
    shown = [tail.lines(job("job1")) for _ in range(4)]
    logs.client.put_log_events(
        logGroupName="/aws/sagemaker/TrainingJobs",
        logStreamName="job1/algo-1-100",
        logEvents=[{"timestamp": ms(2), "message": "b"}],
    )
    shown.append(tail.lines(job("job1")))
    (line,) = shown[1]
    assert "To log in again" in line
    assert "logs:" not in line
    assert shown == [["a"], [line], [], [], ["b"]]
    assert len(made) == 4, "a new session finds a new login"
    assert expiry.lines() == [], "the look at the job does not say it again"


def test_missing_rights_are_one_error_that_names_them(logs: TrainingLogs) -> None:
    def refuse(**_: object) -> None:
        raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "DescribeLogStreams")

    logs.client.meta.events.register("before-call.cloudwatch-logs.DescribeLogStreams", refuse)
    with pytest.raises(LogsUnreadableError, match="logs:GetLogEvents on the log group"):
        JobLogs(logs.client).new_lines(job("job1"))
