"""The suite with cases that fail in every way, on a clock that they move."""

import json
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.training.bench.cases import Case, Kind, Record, State
from benchmarks.training.bench.suite import Suite, main, outcome, read_records

DEVICE = Case(id="device", kind=Kind.DEVICE, needs=10, limit=60)
SEARCH = Case(id="batch", kind=Kind.BATCH, needs=10, limit=50, batches=(8, 32))
EAGER = Case(id="eager", kind=Kind.STEPS, needs=10, limit=90, options={"batch-size": "4"}, batch_of="batch")
COMPILED = Case(id="compiled", kind=Kind.STEPS, needs=10, limit=100, batch_of="batch")
CASES = (DEVICE, SEARCH, EAGER, COMPILED)


class Machine:
    """Runs each task as the test says; a task takes ten seconds, or all it may."""

    def __init__(self, path: Path, *, fits: int = 16, ends: Mapping[str, State] | None = None) -> None:
        self.path, self.fits, self.ends = path, fits, ends or {}
        self.seconds = 0.0
        self.ran: list[str] = []
        self.on_disk: list[dict[str, str]] = []

    def clock(self) -> float:
        return self.seconds

    def run(self, task: Mapping[str, Any], limit: float) -> Record:
        batch = task["options"].get("batch-size")
        self.ran.append(f"{task['id']} {batch}" if batch else task["id"])
        results = json.loads(self.path.read_bytes())["facts"]["results"]
        self.on_disk.append({one["id"]: one["state"] for one in results})
        state = self.ends.get(task["id"], State.OK)
        if task["kind"] is Kind.BATCH and int(batch) > self.fits:
            state = State.OUT_OF_MEMORY
        took = limit if state is State.TIME_LIMIT else min(10.0, limit)
        self.seconds += took
        return Record(id=task["id"], state=state, seconds=took)


def _suite(machine: Machine, records: dict[str, Record] | None = None) -> Suite:
    return Suite("cpu", CASES, machine.path, run=machine.run, records=records or {}, clock=machine.clock)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bench.json"


def _states(path: Path) -> dict[str, str]:
    return {one["id"]: one["state"] for one in json.loads(path.read_bytes())["facts"]["results"]}


def test_each_result_is_written_as_it_comes(path: Path) -> None:
    machine = Machine(path)
    _suite(machine).play(seconds=500)
    assert machine.ran == [
        "device", "batch 8", "batch 16", "batch 32", "batch 24", "batch 20", "batch 18",
        "eager 16", "compiled 16",
    ]  # fmt: skip
    assert machine.on_disk[0] == {"device": "running"}
    assert machine.on_disk[1] == {"device": "ok", "batch": "running"}
    assert machine.on_disk[-1] == {"device": "ok", "batch": "ok", "eager": "ok", "compiled": "running"}
    assert _states(path) == dict.fromkeys(("device", "batch", "eager", "compiled"), "ok")


@pytest.mark.parametrize("state", [State.OUT_OF_MEMORY, State.CRASHED, State.COMPILE_ERROR, State.TIME_LIMIT])
def test_a_case_that_fails_takes_no_other_with_it(path: Path, state: State) -> None:
    machine = Machine(path, ends={"eager": state})
    _suite(machine).play(seconds=500)
    assert _states(path) == {"device": "ok", "batch": "ok", "eager": state, "compiled": "ok"}


def test_what_the_seconds_do_not_suffice_for_is_said_and_made_up_for(path: Path) -> None:
    machine = Machine(path, fits=64)
    _suite(machine).play(seconds=105)
    assert _states(path) == {"device": "ok", "batch": "ok", "eager": "ok", "compiled": "ok"}
    path.unlink()
    machine = Machine(path, fits=64)
    suite = _suite(machine)
    suite.play(seconds=85)
    assert _states(path)["compiled"] == "ok"
    machine.seconds = 0.0
    short = _suite(machine)
    short.play(seconds=15)
    assert _states(path) == {
        "device": "ok",
        "batch": "no-time-left",
        "eager": "no-time-left",
        "compiled": "no-time-left",
    }
    resumed = _suite(machine, read_records(path, "cpu"))
    machine.ran.clear()
    resumed.play(seconds=500)
    assert machine.ran == ["batch 8", "batch 16", "batch 32", "eager 32", "compiled 32"]
    assert set(_states(path).values()) == {"ok"}


def test_a_search_that_was_cut_off_goes_on_with_what_it_knows(path: Path) -> None:
    machine = Machine(path)
    _suite(machine).play(seconds=75)
    assert _states(path)["batch"] == "no-time-left"
    known = read_records(path, "cpu")["batch"].result["tried"]
    assert known == {"8": "ok", "16": "ok"}
    assert machine.ran[-2:] == ["eager 16", "compiled 16"]  # shorter, with the largest that is known
    machine.ran.clear()
    _suite(machine, read_records(path, "cpu")).play(seconds=500)
    assert machine.ran == ["batch 32", "batch 24", "batch 20", "batch 18"]


def test_a_case_that_the_end_of_the_suite_cut_off_is_repeated_and_one_too_slow_is_not(path: Path) -> None:
    machine = Machine(path, ends={"eager": State.TIME_LIMIT, "batch": State.SKIPPED})
    _suite(machine).play(seconds=50)  # 30 are left for eager, which may take 90
    assert _states(path)["eager"] == "no-time-left"
    machine.seconds = 0.0
    _suite(machine, read_records(path, "cpu")).play(seconds=500)
    assert _states(path)["eager"] == "time-limit"


def test_a_suite_that_was_killed_in_a_case_begins_it_once_more_and_then_gives_it_up(path: Path) -> None:
    class KilledError(Exception):
        """As if the machine went away."""

    def run(task: Mapping[str, Any], _limit: float) -> Record:
        if task["id"] == "eager":
            raise KilledError
        return Record(id=task["id"], state=State.OK)

    cases = (DEVICE, EAGER, COMPILED)
    for _ in range(2):
        records = read_records(path, "cpu") if path.exists() else {}
        with pytest.raises(KilledError):
            Suite("cpu", cases, path, run=run, records=records).play(seconds=500)
    Suite("cpu", cases, path, run=run, records=read_records(path, "cpu")).play(seconds=500)
    assert _states(path) == {"device": "ok", "eager": "crashed", "compiled": "ok"}


@pytest.mark.parametrize(
    ("code", "said", "state", "reason"),
    [
        pytest.param(None, None, State.TIME_LIMIT, "not over after 7 s", id="time"),
        pytest.param(
            -signal.SIGKILL,
            None,
            State.OUT_OF_MEMORY,
            "killed; most likely the host ran out of memory",
            id="killed",
        ),
        pytest.param(-signal.SIGSEGV, None, State.CRASHED, "exited with -11: last words", id="crashed"),
        pytest.param(
            0,
            {"state": "compile-error", "reason": "r", "result": {}},
            State.COMPILE_ERROR,
            "r",
            id="it said so",
        ),
        pytest.param(
            -signal.SIGABRT,
            {"state": "ok", "reason": "", "result": {}},
            State.OK,
            "",
            id="aborted after its answer",
        ),
    ],
)
def test_what_became_of_a_process(
    code: int | None, said: Mapping[str, Any] | None, state: State, reason: str
) -> None:
    found = outcome("a", code, said, seconds=7.0, tail="last words\n")
    assert (found.state, found.reason) == (state, reason)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"facts": {"suite": "h200", "results": []}}', "is of the suite h200; resume it with --suite h200"),
        ("{}", "is no report of benchmarks.training.bench --suite"),
        ("half a rep", "is no report"),
    ],
)
def test_another_report_is_not_resumed(
    path: Path, text: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path.write_text(text)
    assert main(["--suite", "cpu", "--json", str(path), "--resume", str(path)]) == 2
    assert told in capsys.readouterr().err


def test_a_missing_report_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--suite", "cpu", "--resume", str(tmp_path / "none.json")]) == 2
    assert "none.json" in capsys.readouterr().err
