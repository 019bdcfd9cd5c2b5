"""When ranks count as hanging, and when they must not: fed with what a host would show, without a clock."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from training.monitoring.watchdog import (
    VARIABLE,
    Beat,
    Heartbeat,
    Progress,
    Watchdog,
    beat_in,
    catches,
    is_stopped,
    place,
    told,
)

LOOK = 0.5


class Ranks:
    """Of one host, looked at twice a second."""

    def __init__(self, *, hang_seconds: float = 0.0) -> None:
        self.progress, self.now, self.hang_seconds = Progress(), 0.0, hang_seconds

    def look(self, *doing: str, step: int, running: bool = True) -> bool:
        beats = tuple(Beat(doing=one, step=step, hang_seconds=self.hang_seconds) for one in doing)
        found = self.progress.hangs(beats, self.now, are_running=running)
        self.now += LOOK
        return found

    def stay(self, seconds: float, *doing: str, step: int, running: bool = True) -> float | None:
        """Seconds until they hang; None: they do not."""
        began = self.now
        while self.now < began + seconds:
            if self.look(*doing, step=step, running=running):
                return self.now - LOOK - began
        return None

    def train(self, *steps: int, seconds: float = 1.0) -> None:
        for step in steps:
            assert self.stay(seconds, "step", "step", step=step) is None


def test_ranks_that_stay_in_a_step_hang_after_eight_minutes() -> None:
    ranks = Ranks()
    ranks.train(1, 2, 3, 4, 5)
    assert ranks.stay(1000, "step", "step", step=6) == 480
    assert ranks.progress.step == 5


def test_where_steps_are_long_they_have_twenty_times_the_usual() -> None:
    ranks = Ranks()
    ranks.train(1, 2, 3, 4, 5, seconds=60)
    assert ranks.stay(2000, "step", "step", step=6) == 1200


@pytest.mark.parametrize(("length", "limit"), [(1.0, 10.0), (4.0, 20.0)], ids=["as set", "five steps"])
def test_a_job_may_set_a_limit_that_no_five_steps_reach(length: float, limit: float) -> None:
    ranks = Ranks(hang_seconds=10)
    ranks.train(1, 2, 3, 4, 5, seconds=length)
    assert ranks.stay(100, "step", "step", step=6) == limit


def test_the_first_steps_compile_and_are_not_judged() -> None:
    ranks = Ranks(hang_seconds=1)
    assert ranks.stay(5000, "step", "step", step=1) is None
    assert ranks.stay(5000, "step", "step", step=2) is None


@pytest.mark.parametrize("doing", ["between", "data"])
def test_who_evaluates_saves_or_waits_for_data_keeps_the_others_waiting_and_none_hangs(doing: str) -> None:
    ranks = Ranks(hang_seconds=2)
    ranks.train(1, 2, 3, 4, 5)
    assert ranks.stay(5000, "step", doing, step=6) is None
    assert ranks.stay(1.5, "step", "step", step=6) is None, "its time begins now"


def test_before_the_first_step_a_rank_has_said_nothing_and_none_hangs() -> None:
    progress = Progress()
    for now in range(5000):
        assert not progress.hangs((Beat(doing="step", step=9, hang_seconds=1), None), now, are_running=True)


def test_a_rank_that_somebody_has_stopped_does_not_hang_and_has_its_time_again_afterwards() -> None:
    ranks = Ranks(hang_seconds=2)
    ranks.train(1, 2, 3, 4, 5)
    assert ranks.stay(5000, "step", "step", step=6, running=False) is None
    assert ranks.stay(1.5, "step", "step", step=6) is None


def test_a_launcher_that_was_held_up_itself_has_seen_no_time_pass() -> None:
    ranks = Ranks(hang_seconds=5)
    ranks.train(1, 2, 3, 4, 5)
    assert not ranks.look("step", "step", step=6)
    ranks.now += 3600
    assert not ranks.look("step", "step", step=6)


def test_steps_between_two_looks_are_counted_one_by_one() -> None:
    ranks = Ranks()
    for step in range(1, 100, 10):
        ranks.look("step", "step", step=step)
    assert ranks.progress.longest == pytest.approx(LOOK / 10)


def test_progress_of_one_rank_is_progress() -> None:
    progress = Progress()
    for now in range(1000):
        beats = tuple(Beat(doing="step", step=step, hang_seconds=3) for step in (now // 2, 7))
        assert not progress.hangs(beats, now * LOOK, are_running=True)


def test_a_heart_says_what_the_watchdog_reads(tmp_path: Path) -> None:
    path = tmp_path / "0"
    assert beat_in(path) is None
    heart = Heartbeat({VARIABLE: str(path)}, hang_seconds=90)
    assert beat_in(path) is None, "empty yet"
    for act, doing in (
        (lambda: heart.begins(123_456), "step"),
        (heart.waits_for_data, "data"),
        (heart.has_data, "step"),
        (heart.ends, "between"),
    ):
        act()
        assert beat_in(path) == Beat(doing=doing, step=123_456, hang_seconds=90)


def test_without_a_launcher_nothing_is_written() -> None:
    Heartbeat({}).begins(1)


def test_the_file_of_each_rank_is_named_to_it_and_removed_in_the_end() -> None:
    with Watchdog([{"RANK": "8"}, {"RANK": "9"}]) as watchdog:
        first, second = (Path(one[VARIABLE]) for one in watchdog.envs)
        assert (first.name, second.name, first.parent) == ("8", "9", second.parent)
        first.touch()
    assert not first.parent.exists()


def test_where_nothing_can_be_written_ranks_are_not_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: str) -> str:
        raise FileNotFoundError

    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    with Watchdog([{"RANK": "0"}]) as watchdog:
        assert watchdog.envs == [{"RANK": "0"}]
        assert watchdog.why([]) == ""


STACKS = """\
Thread 0x00007f1 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 331 in wait
Current thread 0x00007f2 (most recent call first):
  File "/opt/ml/code/mine.py", line 12 in <lambda>
  File "/opt/ml/code/train.py", line 60 in main
"""


def test_the_main_thread_is_the_last_and_its_innermost_frame_the_first() -> None:
    assert place(STACKS) == "<lambda> (mine.py:12)"
    assert place("Killed") == place("") == "an unknown place"


def test_the_place_of_the_fewest_comes_first_and_not_that_of_those_who_wait_for_them() -> None:
    waits, sleeps = "all_reduce (distributed_c10d.py:3252)", "sleep (mine.py:3)"
    where = {f"rank {rank}": waits for rank in range(7)} | {"rank 7": sleeps}
    assert list(told(where)) == [
        f"rank 7 in {sleeps}",
        f"rank 0, rank 1, rank 2, rank 3 and 3 more in {waits}",
    ]
    assert next(told({"rank 0": waits, "rank 1": sleeps})) == f"rank 1 in {sleeps}"


@pytest.fixture
def child() -> Iterator["subprocess.Popen[str]"]:
    script = "import signal; signal.signal(signal.SIGUSR1, print); print('ready', flush=True); input()"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", script], stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def test_linux_says_who_is_stopped_and_who_would_be_ended_by_a_signal(
    child: "subprocess.Popen[str]",
) -> None:
    assert (catches(child.pid, signal.SIGUSR1), catches(child.pid, signal.SIGUSR2)) == (True, False)
    assert not is_stopped(child.pid)
    child.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, child.pid, os.WSTOPPED)
    assert is_stopped(child.pid)
    child.kill()
    child.wait()
    assert not is_stopped(child.pid)
    assert not catches(child.pid, signal.SIGUSR1)
