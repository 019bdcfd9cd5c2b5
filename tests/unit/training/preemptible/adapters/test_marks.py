from datetime import UTC, datetime
from pathlib import Path

import pytest

from training.preemptible.adapters.attempts import (
    Found,
    Mark,
    found_in,
    newest_of,
    remove_all_but,
    remove_mark,
    step_in,
    write_mark,
)

NOW = datetime(2026, 11, 23, 14, tzinfo=UTC)
FILES = {"model.bin": 100, "optimizer.bin": 200}


def _found(step: int, files: dict[str, int] = FILES, *, marked: bool = True) -> Found:
    mark = Mark(step=step, files=FILES, saved_at="") if marked else None
    return Found(name=f"step-{step}", step=step, mark=mark, files=files)


@pytest.mark.parametrize(
    ("found", "newest", "torn"),
    [
        pytest.param([], None, {}, id="none yet"),
        pytest.param([_found(9), _found(20), _found(10)], 20, {}, id="by the number, not the text"),
        pytest.param(
            [_found(10), _found(20, {"model.bin": 100})],
            10,
            {"step-20": "optimizer.bin is missing"},
            id="a file is missing",
        ),
        pytest.param(
            [_found(10), _found(20, FILES | {"model.bin": 64})],
            10,
            {"step-20": "model.bin has 64 bytes of 100"},
            id="a file is cut",
        ),
        pytest.param(
            [_found(20, marked=False), _found(10)],
            10,
            {"step-20": "it was never finished"},
            id="no mark",
        ),
        pytest.param([_found(20, FILES | {"more": 1})], 20, {}, id="what came later does not hurt"),
    ],
)
def test_the_newest_whole_one_counts(found: list[Found], newest: int | None, torn: dict[str, str]) -> None:
    one, passed_over = newest_of(found, are_marked=True)
    assert (one and one.step, passed_over) == (newest, torn)


def test_what_was_saved_before_the_adapter_came_is_taken_as_the_library_would() -> None:
    one, passed_over = newest_of([_found(500, marked=False)], are_marked=False)
    assert (one and one.step, passed_over) == (500, {})


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("checkpoint-20", 20),
        ("step-00000020", 20),
        ("runs", None),
        ("runs-3", None),
        ("checkpoint-20-old", None),
    ],
)
def test_the_step_is_in_the_name(name: str, step: int | None) -> None:
    assert step_in(name) == step


def _save(folder: Path, step: int, *, marked: bool = True) -> Path:
    place = folder / f"step-{step}"
    (place / "rank").mkdir(parents=True)
    (place / "rank/state").write_bytes(b"x" * step)
    if marked:
        write_mark(place, step=step, now=NOW)
    return place


def test_a_mark_has_the_size_of_each_file(tmp_path: Path) -> None:
    place = _save(tmp_path, 7)
    (found,) = found_in(tmp_path)
    assert found.mark == Mark(step=7, files={"rank/state": 7}, saved_at="2026-11-23T14:00:00.000+00:00")
    (place / "rank/state").write_bytes(b"xx")
    (found,) = found_in(tmp_path)
    assert newest_of([found], are_marked=True)[0] is None


def test_half_a_mark_is_none(tmp_path: Path) -> None:
    place = _save(tmp_path, 7)
    (place / "whole.json").write_text('{"step": 7, "fi')
    assert [one.mark for one in found_in(tmp_path)] == [None]


def test_a_mark_that_was_removed_is_gone_and_may_be_removed_again(tmp_path: Path) -> None:
    place = _save(tmp_path, 7)
    remove_mark(place)
    remove_mark(place)
    assert [one.mark for one in found_in(tmp_path)] == [None]


def test_two_whole_ones_are_kept_and_the_torn_ones_between_them(tmp_path: Path) -> None:
    for step, marked in ((1, True), (2, False), (3, True), (4, False), (5, True)):
        _save(tmp_path, step, marked=marked)
    (tmp_path / "logs").mkdir()
    remove_all_but(tmp_path, 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["logs", "step-3", "step-4", "step-5"]


def test_nothing_is_removed_before_there_are_enough(tmp_path: Path) -> None:
    _save(tmp_path, 1)
    _save(tmp_path, 2, marked=False)
    remove_all_but(tmp_path, 2)
    assert len(found_in(tmp_path)) == 2


def test_a_folder_that_is_not_there_has_none(tmp_path: Path) -> None:
    assert found_in(tmp_path / "none") == []
