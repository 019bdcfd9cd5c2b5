"""Logs and curves that windows look at: no line lost, none twice, and CloudWatch asked seldom."""

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest
from moto import mock_aws
from trainmaster_client.dashboard import job_readers
from trainmaster_client.dashboard.job_readers import MOST_READERS, JobReaders, selection_of
from trainmaster_client.errors import LogsUnansweredError
from trainmaster_client.logs.joined_attempts import JobLogs

from tests.unit.client.cloudwatch_logs import TrainingLogs, job

FIRST, SECOND = "job1/algo-1-1790000000", "job1-r1/algo-1-1790000001"
EVERYTHING = selection_of({})


class Clock:
    """Each look comes ten seconds after the one before, unless it stands still."""

    def __init__(self) -> None:
        self.now = 0.0
        self.step = 10.0

    def __call__(self) -> float:
        self.now += self.step
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def logs() -> Iterator[TrainingLogs]:
    with mock_aws():
        yield TrainingLogs()


@pytest.fixture
def readers(logs: TrainingLogs, clock: Clock) -> JobReaders:
    return JobReaders(lambda: logs.client, monotonic=clock)


def texts(answer: dict[str, Any]) -> list[str]:
    return [line["text"] for line in answer["lines"]]


def test_a_window_gets_each_line_once_and_all_of_them(logs: TrainingLogs, readers: JobReaders) -> None:
    logs.write(FIRST, (0, "one"), (1, "two"))
    first = readers.log(job("job1"), after="", selection=EVERYTHING)
    assert (texts(first), first["is_new"], first["skipped"]) == (["one", "two"], True, 0)
    logs.write(FIRST, (2, "three"))
    second = readers.log(job("job1"), after=first["next"], selection=EVERYTHING)
    assert (texts(second), second["is_new"]) == (["three"], False)
    assert texts(readers.log(job("job1"), after=second["next"], selection=EVERYTHING)) == []


def test_a_window_that_lost_an_answer_and_one_that_comes_later_get_the_same_lines(
    logs: TrainingLogs, readers: JobReaders
) -> None:
    logs.write(FIRST, (0, "one"))
    first = readers.log(job("job1"), after="", selection=EVERYTHING)
    logs.write(FIRST, (1, "two"))
    readers.log(job("job1"), after=first["next"], selection=EVERYTHING)  # never came
    assert texts(readers.log(job("job1"), after=first["next"], selection=EVERYTHING)) == ["two"]
    assert texts(readers.log(job("job1"), after="", selection=EVERYTHING)) == ["one", "two"]


@pytest.mark.parametrize("after", ["0000.3", "x", ".", "\N{SUPERSCRIPT TWO}", "0000.\N{SUPERSCRIPT TWO}"])
def test_what_another_process_said_begins_anew(after: str, logs: TrainingLogs, readers: JobReaders) -> None:
    logs.write(FIRST, (0, "one"))
    answer = readers.log(job("job1"), after=after, selection=EVERYTHING)
    assert (texts(answer), answer["is_new"]) == (["one"], True)


def test_lines_that_are_no_longer_kept_are_counted(logs: TrainingLogs, readers: JobReaders) -> None:
    with patch.object(job_readers, "KEPT_LINES", 3):
        first = readers.log(job("job1"), after="", selection=EVERYTHING)
        logs.write(FIRST, *((second, f"line {second}") for second in range(10)))
        answer = readers.log(job("job1"), after=first["next"], selection=EVERYTHING)
    assert (texts(answer), answer["skipped"]) == (["line 7", "line 8", "line 9"], 7)


def test_attempts_are_joined_or_chosen_and_what_acts_on_a_screen_is_left_out(
    logs: TrainingLogs, readers: JobReaders
) -> None:
    logs.write(FIRST, (0, "\x1b[31mred\x1b[0m <b>"))
    logs.write(SECOND, (9, "resumed"))
    both = readers.log(job("job1", "job1-r1", ended=[0]), after="", selection=EVERYTHING)
    assert [(line["attempt"], line["text"]) for line in both["lines"]] == [(0, "red <b>"), (1, "resumed")]
    one = readers.log(job("job1", "job1-r1", ended=[0]), after="", selection=selection_of({"attempt": "1"}))
    assert texts(one) == ["resumed"]


def test_many_windows_ask_cloudwatch_once_in_two_seconds(
    logs: TrainingLogs, readers: JobReaders, clock: Clock
) -> None:
    logs.write(FIRST, (0, "one"))
    readers.log(job("job1"), after="", selection=EVERYTHING)
    before, clock.step = len(logs.calls), 0.1
    for _ in range(10):
        assert texts(readers.log(job("job1"), after="", selection=EVERYTHING)) == ["one"]
    assert len(logs.calls) == before


def test_curves_have_the_points_of_each_attempt_and_go_on_where_a_look_ended(
    logs: TrainingLogs, readers: JobReaders
) -> None:
    logs.write(FIRST, *((second, f"metric step={second} loss={9 - second}") for second in range(6)))
    logs.write(SECOND, (9, "resumed from step 4"), (10, "metric step=5 loss=3.5"))
    document = job("job1", "job1-r1", ended=[0])
    with patch.object(job_readers, "MOST_LINES_AT_ONCE", 4):
        assert readers.curves(document)["has_more"]
        found = readers.curves(document)
    assert [(one["attempt"], len(one["points"])) for one in found["curves"]] == [(0, 6), (1, 1)]
    assert [point["step"] for point in found["curves"][0]["points"]] == [0, 1, 2, 3, 4, 5]
    assert found["curves"][1]["points"][0]["loss"] == 3.5


def test_a_failure_keeps_what_was_read_and_the_next_look_goes_on(
    logs: TrainingLogs, readers: JobReaders
) -> None:
    logs.write(FIRST, (0, "one"))
    first = readers.log(job("job1"), after="", selection=EVERYTHING)
    with (
        patch.object(JobLogs, "lines", side_effect=LogsUnansweredError("away.")),
        pytest.raises(LogsUnansweredError),
    ):
        readers.log(job("job1"), after=first["next"], selection=EVERYTHING)
    logs.write(FIRST, (1, "two"))
    assert texts(readers.log(job("job1"), after=first["next"], selection=EVERYTHING)) == ["two"]


def test_what_nobody_looked_at_for_longest_is_let_go(readers: JobReaders) -> None:
    for number in range(2 * MOST_READERS):
        readers.log({**job(), "name": f"job{number}"}, after="", selection=EVERYTHING)
    assert len(readers._logs) == MOST_READERS


@pytest.mark.parametrize(
    ("given", "attempt"),
    [({}, None), ({"attempt": "2"}, 2), ({"attempt": "-1"}, None), ({"attempt": "x"}, None)],
)
def test_an_attempt_that_is_no_number_is_all_of_them(given: dict[str, str], attempt: int | None) -> None:
    assert selection_of(given).attempt == attempt
