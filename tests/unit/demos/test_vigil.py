"""What counts as progress in a twin, and how long its clock stands still for those who leave."""

import json
from pathlib import Path
from typing import Any

import pytest

from demos.stage.directions import Hold
from demos.stage.patience import STANDSTILL_SECONDS, Progress, StandstillError, TwinEndedError
from demos.stage.vigil import GRACE_SECONDS, Grace, Journal, Vigil
from local.twin_process import TwinProcess
from training.monitoring.report import last_step_allowed


def call(operation: str, status: int = 200) -> dict[str, Any]:
    return {"kind": "call", "operation": operation, "status": status}


def process(event: str, job: str = "job1", host: str = "algo-1") -> dict[str, Any]:
    return {"kind": "process", "event": event, "training_job": job, "host": host}


def write(path: Path, *records: dict[str, Any]) -> None:
    with path.open("a") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)


@pytest.mark.parametrize(
    ("record", "changes"),
    [
        pytest.param(call("CreateTrainingJob"), 1, id="a job is started"),
        pytest.param(call("CreateTrainingJob", 400), 0, id="a start is refused"),
        pytest.param(call("POST /add-job", 201), 1, id="a submission"),
        pytest.param(call("DELETE /jobs/job1"), 1, id="a cancel"),
        pytest.param(call("GET /jobs/job1"), 0, id="our own look"),
        pytest.param(call("DescribeTrainingJob"), 0, id="a look of the plane"),
        pytest.param(call("TransactWriteItems"), 0, id="a pass that writes what it thinks"),
        pytest.param(process("start"), 1, id="a container starts"),
        pytest.param(process("exit"), 1, id="a container ends"),
    ],
)
def test_what_the_plane_does_every_minute_is_no_progress(
    record: dict[str, Any], changes: int, tmp_path: Path
) -> None:
    journal = Journal(tmp_path / "journal")
    write(tmp_path / "journal", record)
    journal.read()
    assert journal.changes == changes


def test_a_journal_is_read_on_from_where_it_was_and_half_a_line_waits(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path)
    write(path, process("start"), process("signal"), process("start", host="algo-2"))
    whole = json.dumps(process("exit"))
    with path.open("a") as file:
        file.write(whole[:10])
    journal.read()
    assert (journal.changes, journal.leaving) == (3, {("job1", "algo-1")})
    with path.open("a") as file:
        file.write(whole[10:] + "\n")
    journal.read()
    assert (journal.changes, journal.leaving) == (4, set())


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds


class Ended:
    def __init__(self, code: int | None = None) -> None:
        self.code = code

    def poll(self) -> int | None:
        return self.code


def vigil_over(path: Path, clock: Clock, ended: Ended | None = None) -> Vigil:
    path.touch()
    twin = TwinProcess(ready={}, journal=path, process=ended or Ended())  # type: ignore[arg-type]
    return Vigil(twin, progress=Progress(clock=clock), pause=clock.pause)


def test_a_story_waits_as_long_as_anything_happens(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "journal"
    vigil = vigil_over(path, clock)

    def between() -> None:
        if clock.now % 200 == 0:
            write(path, process("start"))

    vigil.until("an hour has passed", lambda: clock.now >= 3600, between=between)


def test_what_a_demo_looks_at_itself_is_progress_too(tmp_path: Path) -> None:
    clock = Clock()
    vigil = vigil_over(tmp_path / "journal", clock)
    vigil.evidence.append(lambda: clock.now // 250)  # a log line every 250 s
    vigil.until("an hour has passed", lambda: clock.now >= 3600)


def test_a_story_in_which_nothing_happens_is_given_up(tmp_path: Path) -> None:
    clock = Clock()
    with pytest.raises(StandstillError, match="this: job4 runs"):
        vigil_over(tmp_path / "journal", clock).until("job4 runs", lambda: False)
    assert STANDSTILL_SECONDS <= clock.now < STANDSTILL_SECONDS + 2


def test_a_twin_that_was_killed_is_found_at_the_next_look(tmp_path: Path) -> None:
    clock, ended = Clock(), Ended()
    vigil = vigil_over(tmp_path / "journal", clock, ended)

    def between() -> None:
        ended.code = -9

    with pytest.raises(TwinEndedError, match="exit code -9"):
        vigil.until("job4 runs", lambda: False, between=between)
    assert clock.now < 2


def test_the_twins_clock_stands_still_while_a_container_leaves_but_not_for_ever() -> None:
    clock = Clock()
    grace = Grace(clock=clock)
    one, other = ("job1", "algo-1"), ("job2", "algo-1")
    assert grace.may_go_on(set())
    assert not grace.may_go_on({one})
    clock.now += GRACE_SECONDS - 1
    assert not grace.may_go_on({one, other})
    clock.now += 1
    assert not grace.may_go_on({one, other}), "the other has had a second"
    assert grace.may_go_on({one})
    assert not grace.may_go_on({other}), "another stop begins anew"


def test_a_hold_is_read_by_the_training_program(tmp_path: Path) -> None:
    hold = Hold(tmp_path, "job1")
    assert last_step_allowed(hold.path) == float("inf")
    hold.at(53)
    assert last_step_allowed(hold.path) == 53
    hold.at(140)
    assert last_step_allowed(hold.path) == 140
    hold.release()
    hold.release()
    assert last_step_allowed(hold.path) == float("inf")
