"""A demo ends by progress, not by the clock, and never in a traceback."""

import os
import signal
import sys
from pathlib import Path

import pytest
from trainmaster_client.report import Report

from demos.stage.command import INTERRUPTED, TERMINATED, Telling, play
from demos.stage.patience import (
    STANDSTILL_SECONDS,
    ProgramEndedError,
    Progress,
    StandstillError,
    StoryError,
    TwinEndedError,
    three_lines,
)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_what_takes_hours_is_not_given_up_while_anything_changes() -> None:
    clock = Clock()
    progress = Progress(clock=clock)
    for step in range(100):
        clock.now += STANDSTILL_SECONDS - 1
        progress.observe(step)
        progress.check("the end")


def test_what_changes_in_nothing_for_five_minutes_is_given_up() -> None:
    clock = Clock()
    progress = Progress(clock=clock)
    progress.observe(["running", 7])
    clock.now += STANDSTILL_SECONDS - 1
    progress.observe(["running", 7])
    progress.check("job4 runs")
    clock.now += 1
    with pytest.raises(StandstillError, match=r"nothing has changed for 5 minutes .* this: job4 runs"):
        progress.check("job4 runs")


def test_nothing_ever_seen_is_given_up_as_well() -> None:
    clock = Clock()
    progress = Progress(clock=clock)
    clock.now += STANDSTILL_SECONDS
    with pytest.raises(StandstillError):
        progress.check("the first sign")


@pytest.mark.parametrize(
    ("error", "said", "remedy"),
    [
        pytest.param(
            StandstillError(waited_for="job4 runs", seconds=300),
            "nothing has changed for 5 minutes",
            "end other programs",
            id="standstill",
        ),
        pytest.param(
            TwinEndedError(exit_code=-9),
            "twin has ended in the middle, with exit code -9",
            "dmesg",
            id="twin",
        ),
        pytest.param(
            ProgramEndedError(program="the reference", exit_code=1),
            "the reference has ended with exit code 1",
            "read what it printed",
            id="a program",
        ),
        pytest.param(
            KeyError("a\nb"),
            "it met an error: KeyError: 'a\\nb'",
            "report it with that file",
            id="our mistake",
        ),
        pytest.param(ValueError(), "ValueError: without a word", "report it", id="an error without a text"),
    ],
)
def test_three_lines_say_what_was_reached_how_the_machine_is_and_what_to_do(
    error: Exception, said: str, remedy: str
) -> None:
    lines = three_lines("demo", error, reached="job1 runs", details=Path("build/demo.log"))
    assert len(lines) == 3
    assert not any("\n" in line for line in lines)
    assert said in lines[0]
    assert lines[0].endswith("Reached: job1 runs.")
    assert "load of the last minute" in lines[1]
    assert remedy in lines[2]
    assert lines[2].endswith("Details: build/demo.log")


def _telling(folder: Path) -> Telling:
    return Telling(report=Report(name="demo"), path=folder / "new" / "demo.json")


@pytest.mark.parametrize("error", [StoryError("it broke"), RuntimeError("it broke"), OSError("it broke")])
def test_whatever_a_story_raises_is_three_lines_and_exit_code_1(
    error: Exception, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def tell(telling: Telling) -> int:
        telling.report.facts["seen"] = 3
        raise error

    telling = _telling(tmp_path)
    assert play(tell, telling) == 1
    printed = capsys.readouterr()
    assert len(printed.out.strip().splitlines()) == 3
    assert "Traceback" not in printed.out + printed.err
    report = telling.path.read_text()
    assert '"ok": false' in report, "an earlier report that was ok must not stay"
    assert '"seen": 3' in report
    assert "Traceback" in telling.path.with_suffix(".log").read_text()


def test_what_a_broken_program_printed_is_in_the_file_that_is_named(tmp_path: Path) -> None:
    def tell(_: Telling) -> int:
        raise ProgramEndedError(program="the training", exit_code=1, printed="out of luck")

    telling = _telling(tmp_path)
    assert play(tell, telling) == 1
    assert "out of luck" in telling.path.with_suffix(".log").read_text()


def test_ctrl_c_ends_a_demo_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def tell(_: Telling) -> int:
        raise KeyboardInterrupt

    assert play(tell, _telling(tmp_path)) == INTERRUPTED
    assert capsys.readouterr().out == "\ndemo: stopped; nothing of it is left running.\n"


def test_sigterm_unwinds_what_was_begun(tmp_path: Path) -> None:
    before, cleaned = signal.getsignal(signal.SIGTERM), []

    def tell(_: Telling) -> int:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            signal.pause()
        finally:
            cleaned.append("twin")
        return 0

    with pytest.raises(SystemExit) as ended:
        play(tell, _telling(tmp_path))
    assert (ended.value.code, cleaned) == (TERMINATED, ["twin"])
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_story_that_ends_well_has_its_own_exit_code(tmp_path: Path) -> None:
    assert play(lambda _: 0, _telling(tmp_path)) == 0
    assert sys.exc_info() == (None, None, None)
