"""A job that obeys the demo: what it saves, says and resumes from, and how it ends."""

import hashlib
from pathlib import Path

import pytest

from demos.programs import ordered_job
from demos.programs.ordered_job import CHECKPOINT, END, FAIL, SAVES, SAVES_ONCE, SAY, TRAINS
from demos.stage.directions import Orders


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SM_CHECKPOINT_DIR", str(tmp_path / "checkpoints"))


def run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, work: str, *, looks: int, order: str = END, text: str = ""
) -> int:
    """Run the program, and give it an order after so many looks."""
    orders, pauses = Orders(folder), iter(range(looks, -1, -1))

    def pause(_seconds: float) -> None:
        if next(pauses) == 0:
            orders.give("job1", order, text)

    monkeypatch.setattr("demos.programs.ordered_job.time.sleep", pause)
    monkeypatch.setattr("sys.argv", orders.command("job1", work)[1:])
    return ordered_job.main()


def checkpoint(folder: Path) -> Path:
    return folder / "checkpoints" / CHECKPOINT


@pytest.mark.parametrize(
    ("work", "looks", "saved"),
    [
        pytest.param(SAVES_ONCE, 12, 1, id="once"),
        pytest.param(SAVES, 12, 10, id="each fifth look"),
        pytest.param(TRAINS, 45, 40, id="each twentieth step"),
    ],
)
def test_it_saves_as_it_was_told(
    work: str, looks: int, saved: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(tmp_path, monkeypatch, work, looks=looks) == 0
    assert int(checkpoint(tmp_path).read_text().split()[0]) == saved


def test_it_says_what_it_resumes_from_and_goes_on_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint(tmp_path).parent.mkdir()
    checkpoint(tmp_path).write_text("40 by process 7\n")
    digest = hashlib.sha256(b"40 by process 7\n").hexdigest()
    run(tmp_path, monkeypatch, TRAINS, looks=1)
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first == f"resumed from {CHECKPOINT} sha256={digest}"
    assert second.startswith("metric step=41 loss=")


def test_it_fails_with_the_text_of_the_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, monkeypatch, SAVES, looks=0, order=FAIL, text="out of memory") == 1
    assert capsys.readouterr().err == "out of memory\n"


def test_it_says_a_text_once_and_saves_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Orders(tmp_path).give("job1", SAY, "NCCL")
    run(tmp_path, monkeypatch, SAVES, looks=20)
    assert capsys.readouterr().out.splitlines() == ["started from nothing", "NCCL"]
    assert not checkpoint(tmp_path).exists()
