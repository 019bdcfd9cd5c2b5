"""A stage looks, shows, and moves the clock, whatever the machine does meanwhile."""

import urllib.error
from email.message import Message
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from trainmaster_client.errors import ApiUnreachableError

from demos.stage import twin_stage as stage_module
from demos.stage.patience import Progress, TwinEndedError
from demos.stage.screen import Screen
from demos.stage.twin_stage import Stage
from demos.stage.vigil import Vigil
from local.twin_process import TwinProcess

Document = dict[str, Any]


class Api:
    """Answers with the states of one job, one a look; None: no answer at all."""

    def __init__(self, *states: str | None) -> None:
        self.states = list(states)

    def job(self, name: str, *, estimate: bool) -> Document:
        assert not estimate
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        if state is None:
            raise ApiUnreachableError("http://twin", why="timed out")
        return {"name": name, "state": state, "history": [], "attempts": []}

    def jobs(self) -> Document:
        return {"jobs": []}


class Ended:
    code: int | None = None

    def poll(self) -> int | None:
        return self.code


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How far the twin's clock was moved, each time."""
    moved: list[float] = []

    def control(_twin: TwinProcess, method: str, path: str, *, advance_seconds: float) -> Document:
        assert (method, path) == ("POST", "/clock")
        moved.append(advance_seconds)
        return {}

    monkeypatch.setattr(stage_module, "control", control)
    return moved


def a_stage(folder: Path, api: Api, ended: Ended | None = None) -> Stage:
    (folder / "journal").touch()
    twin = TwinProcess(
        ready={
            "api_url": "http://127.0.0.1:1/local",
            "endpoint_url": "http://127.0.0.1:1",
            "access_key_id": "key",
            "secret_access_key": "secret",
            "region": "us-east-1",
        },
        journal=folder / "journal",
        process=ended or Ended(),  # type: ignore[arg-type]
    )
    clock = Clock()
    vigil = Vigil(twin, progress=Progress(clock=clock), pause=clock.pause)
    found = Stage(twin, Screen(Console(file=StringIO())), folder, vigil=vigil)
    found.api = api  # type: ignore[assignment]
    found.name("job1", "job1-x")
    return found


def test_the_clock_goes_on_until_the_job_is_where_the_story_wants_it(
    tmp_path: Path, ticks: list[float]
) -> None:
    stage = a_stage(tmp_path, Api("pending", "starting", "running"))
    stage.until("job1 runs", lambda: stage.state("job1") == "running")
    assert len(ticks) == 2
    assert stage.screen.reached == "job1 runs"
    assert stage.are({"running"}, ["job1"])
    assert not stage.are({"completed"}, ["job1"])


def test_an_api_that_does_not_answer_in_time_is_asked_again(tmp_path: Path, ticks: list[float]) -> None:
    stage = a_stage(tmp_path, Api("pending", None, None, "running"))
    stage.until("job1 runs", lambda: stage.state("job1") == "running")
    assert len(ticks) == 3


def test_the_clock_stands_still_while_a_container_leaves(tmp_path: Path, ticks: list[float]) -> None:
    stage = a_stage(tmp_path, Api(*["preempting"] * 4, "preempted"))
    signal = '{"kind":"process","event":"signal","training_job":"job1-x","host":"algo-1"}\n'
    (tmp_path / "journal").write_text(signal)
    stage.until("job1 is preempted", lambda: stage.state("job1") == "preempted")
    assert ticks == []
    deaf = a_stage(tmp_path, Api(*["preempting"] * 4, "preempted"))
    (tmp_path / "journal").write_text(signal)
    deaf.until("job1 is preempted", lambda: deaf.state("job1") == "preempted", leaves_by_itself=False)
    assert len(ticks) == 4


def test_what_the_clock_set_off_may_take_longer_than_a_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = urllib.error.HTTPError("http://twin", 500, "still in flight", Message(), BytesIO())
    wrong = urllib.error.HTTPError("http://twin", 409, "no such clock", Message(), BytesIO())
    raised = [failed]

    def control(*_: object, **__: object) -> Document:
        raise raised[0]

    monkeypatch.setattr(stage_module, "control", control)
    stage = a_stage(tmp_path, Api("pending", "running"))
    stage.until("job1 runs", lambda: stage.state("job1") == "running")
    raised[0] = wrong
    with pytest.raises(urllib.error.HTTPError):
        stage.until("job1 is over", lambda: stage.state("job1") == "completed")


def test_a_twin_that_is_gone_is_said_before_the_api_is_asked(tmp_path: Path, ticks: list[float]) -> None:
    ended = Ended()
    ended.code = 247
    stage = a_stage(tmp_path, Api(None), ended)
    with pytest.raises(TwinEndedError, match="exit code 247"):
        stage.until("job1 runs", lambda: True)
    assert ticks == []
