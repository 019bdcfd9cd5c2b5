import json
import os
import signal
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import torch.distributed as dist
from torch._C._distributed_c10d import FileStore

from training.preemptible.adapters.attempts import Attempt, newest_whole, step_of
from training.preemptible.checkpoint.saver import Status

NOW = "2026-11-23T14:00:00.000+00:00"


def _attempt(folder: Path, step: int = 0) -> Attempt:
    return Attempt(folder, step=step, steps=40, now=lambda: datetime(2026, 11, 23, 14, tzinfo=UTC))


def _status(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "status.json").read_bytes())
    return found


@pytest.fixture(autouse=True)
def _handler_restored() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def _save(attempt: Attempt, step: int) -> None:
    place = attempt.begin_save(f"step-{step}")
    place.mkdir()
    (place / "model").write_bytes(b"x")
    attempt.saved(f"step-{step}", step=step, keep=2)


def test_a_stop_leaves_after_the_save_with_the_exit_code_of_an_unfinished_job(tmp_path: Path) -> None:
    attempt = _attempt(tmp_path)
    assert not attempt.is_asked_to_stop()
    os.kill(os.getpid(), signal.SIGTERM)
    assert attempt.is_asked_to_stop()
    with pytest.raises(SystemExit) as left:
        _save(attempt, 13)
    assert left.value.code == 143
    assert _status(tmp_path) == {
        "state": "preempted",
        "step": 13,
        "steps": 40,
        "checkpoint": "step-13",
        "checkpoint_at": NOW,
        "updated_at": NOW,
        "lost_steps": 0,
        "reason": "SIGTERM",
        "skipped": [],
        "marked": True,
    }
    assert newest_whole(tmp_path) == str(tmp_path / "step-13")
    assert step_of(newest_whole(tmp_path)) == 13


def test_what_a_stop_loses_is_said(tmp_path: Path) -> None:
    _save(_attempt(tmp_path), 10)
    attempt = _attempt(tmp_path, step=10)
    with pytest.raises(SystemExit):
        attempt.leave(12)
    assert (_status(tmp_path)["checkpoint"], _status(tmp_path)["lost_steps"]) == ("step-10", 2)


def test_after_the_end_sigterm_does_what_it_did_before(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    attempt = _attempt(tmp_path)
    assert signal.getsignal(signal.SIGTERM) != before
    attempt.completed(40)
    assert signal.getsignal(signal.SIGTERM) == before
    assert (_status(tmp_path)["state"], _status(tmp_path)["lost_steps"]) == ("completed", 40)


def test_what_is_not_marked_counts_only_before_the_first_attempt_with_the_adapter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "checkpoint-500").mkdir()
    assert newest_whole(tmp_path) == str(tmp_path / "checkpoint-500")
    _attempt(tmp_path, step=500)
    (tmp_path / "checkpoint-600").mkdir()
    assert newest_whole(tmp_path) == str(tmp_path / "checkpoint-500")
    _attempt(tmp_path, step=500)
    assert _status(tmp_path)["skipped"] == [
        {"checkpoint": "checkpoint-600", "reason": "it was never finished"}
    ]
    assert capsys.readouterr().out == "skipping torn checkpoint checkpoint-600: it was never finished\n"


def test_a_checkpoint_that_is_written_again_has_no_mark_meanwhile(tmp_path: Path) -> None:
    attempt = _attempt(tmp_path)
    _save(attempt, 10)
    attempt.begin_save("step-10")
    assert newest_whole(tmp_path) is None


def test_from_scratch_is_step_0() -> None:
    assert step_of(None) == 0


def test_the_status_says_nothing_but_its_mark_that_the_training_program_does_not(tmp_path: Path) -> None:
    _attempt(tmp_path)
    ours = Status(step=0, steps=40, newest=None).text(now=datetime(2026, 11, 23, tzinfo=UTC))
    assert set(_status(tmp_path)) - set(json.loads(ours)) == {"marked"}


def test_S6_process_groups_that_the_script_left_end_before_the_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_exit: list[Callable[[], None]] = []
    monkeypatch.setattr("training.preemptible.adapters.attempts.atexit.register", at_exit.append)
    dist.init_process_group("gloo", store=FileStore(str(tmp_path / "store"), 1), rank=0, world_size=1)
    try:
        _attempt(tmp_path / "saved").completed(40)
        assert dist.is_initialized()  # the script may still evaluate, or save its model
        (end,) = at_exit
        end()
        assert not dist.is_initialized()
        end()  # as after a script that ended them itself
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()
