"""A container's output becomes log lines."""

import threading
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from local.sagemaker.container_logs import LogStream
from local.sagemaker.ports import LogLine
from tests.integration.local.sagemaker_world import Lines

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


class Broken:
    def __init__(self) -> None:
        self.tries = 0

    def put(self, *_: object) -> None:
        self.tries += 1
        raise ConnectionError


class Slow(Lines):
    """Keeps nothing until it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.let = threading.Event()

    def put(self, group: str, stream: str, lines: Sequence[LogLine]) -> None:
        self.let.wait(10)
        super().put(group, stream, lines)


@pytest.fixture
def lines() -> Lines:
    return Lines()


def logged(sink: Lines, *parts: bytes) -> list[str]:
    stream = LogStream("job/algo-1-1", sink, lambda: NOON)
    for part in parts:
        stream.write(part)
    stream.close()
    return sink.messages("job")


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        pytest.param([b"a\nb\n"], ["a", "b"], id="two lines"),
        pytest.param([b"a", b"b\n"], ["ab"], id="a line in parts"),
        pytest.param([b"a\nrest"], ["a", "rest"], id="an unfinished last line"),
        pytest.param([b"\n\na\r\n\n"], ["a"], id="empty lines are left out"),
        pytest.param([b"10%\r20%\n"], ["10%\r20%"], id="a progress bar is one line"),
        pytest.param(["größe\n".encode()[:3], "größe\n".encode()[3:]], ["größe"], id="a character in parts"),
        pytest.param([b"a\xff\xfeb\n"], ["a\ufffd\ufffdb"], id="what is not UTF-8 is replaced"),
        pytest.param([], [], id="nothing"),
    ],
)
def test_output_becomes_lines(lines, parts, expected):
    assert logged(lines, *parts) == expected


@pytest.mark.parametrize("end", ["\n", ""])
def test_a_line_that_is_too_long_is_cut_between_characters(lines, end):
    text = "ü" * 300_000

    messages = logged(
        lines, *[(text + end).encode()[start : start + 65_536] for start in range(0, 600_001, 65_536)]
    )

    assert "".join(messages) == text
    assert len(messages) > 1
    assert all(len(message.encode()) <= 256 * 1024 for message in messages)


def test_batches_keep_the_limits_of_put_log_events(lines):
    logged(lines, b"x\n" * 12_000, (b"y" * 200_000 + b"\n") * 8)

    sizes = [[len(line.message) + 26 for line in batch] for _, _, batch in lines.puts]
    assert all(len(batch) <= 10_000 and sum(batch) <= 1024 * 1024 for batch in sizes)
    assert sum(map(len, sizes)) == 12_008


def test_lines_carry_the_time_of_the_clock_and_go_to_the_group_of_training_jobs(lines):
    logged(lines, b"a\n")

    group, stream, batch = lines.puts[0]
    assert (group, stream) == ("/aws/sagemaker/TrainingJobs", "job/algo-1-1")
    assert batch == [LogLine(timestamp_ms=1780315200000, message="a")]


def test_a_log_that_is_down_loses_lines_and_stops_nobody(caplog):
    broken = Broken()
    stream = LogStream("job/algo-1-1", broken, lambda: NOON)
    stream.write(b"a\n")
    stream.close()

    assert broken.tries == 1
    assert "are lost" in caplog.text


def test_a_container_that_prints_faster_than_it_can_be_kept_waits():
    slow = Slow()
    stream = LogStream("job/algo-1-1", slow, lambda: NOON)

    def write() -> None:
        for _ in range(8):
            stream.write(b"x\n" * 15_000)

    writer = threading.Thread(target=write)
    writer.start()
    writer.join(0.5)
    has_waited = writer.is_alive()
    slow.let.set()
    writer.join(10)
    stream.close()

    assert has_waited
    assert len(slow.messages("job")) == 120_000


def test_what_comes_after_the_end_is_dropped(lines):
    stream = LogStream("job/algo-1-1", lines, lambda: NOON)
    stream.close()
    stream.write(b"late\n" * 50_000)

    assert lines.messages("job") == []
