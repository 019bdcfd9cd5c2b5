"""Which rank is missing in which collective, from what the flight recorders hold."""

import os
import pickle
from pathlib import Path
from typing import Any

import pytest
from trainmaster.core.diagnosis import FailureEvidence, diagnose

from tests.markdown import text_of
from training.config.environment import FLIGHT_RECORDER
from training.flight import main


def entry(number: int, name: str = "nccl:all_reduce", size: int = 4, group: str = "0") -> dict[str, Any]:
    torch = {"filename": "/lib/torch/distributed/distributed_c10d.py", "line": 3252, "name": "all_reduce"}
    mine = {"filename": "/opt/ml/code/loop.py", "line": 155, "name": "run"}
    return {
        "collective_seq_id": number,
        "profiling_name": name,
        "input_sizes": [[size]],
        "process_group": (group, "default_pg" if group == "0" else ""),
        "is_p2p": False,
        "frames": [torch, mine],
    }


def dumped(folder: Path, *ranks: list[dict[str, Any]]) -> Path:
    for rank, entries in enumerate(ranks):
        (folder / f"{FLIGHT_RECORDER}{rank}").write_bytes(pickle.dumps({"entries": entries}))
    return folder


def said(folder: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert main([str(folder)]) == 0
    return capsys.readouterr().out.splitlines()


def test_the_rank_that_is_behind_is_named_with_what_the_others_wait_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ahead = [entry(6), entry(7, "nccl:all_gather", 8)]
    dumped(tmp_path, ahead, [entry(6)], ahead)
    missing = (
        "group 0 (default_pg): rank 1 is missing in collective 7; newest call there: 6, nccl:all_reduce [4] "
        "called in loop.py:155; ranks 0, 2 are at 7, nccl:all_gather [8] called in loop.py:155"
    )
    assert said(tmp_path, capsys) == ["dumps of 3 ranks", missing]


def test_ranks_that_call_different_things_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dumped(tmp_path, [entry(3)], [entry(3, size=5)])
    assert said(tmp_path, capsys)[1] == (
        "group 0 (default_pg): at collective 3 rank 1 is calling nccl:all_reduce [5] called in loop.py:155, "
        "rank 0 is calling nccl:all_reduce [4] called in loop.py:155"
    )


def test_a_rank_without_a_dump_or_without_a_call_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dumped(tmp_path, [entry(3)], [], [entry(3)], [entry(3)])
    (tmp_path / f"{FLIGHT_RECORDER}2").unlink()
    assert said(tmp_path, capsys) == [
        "dumps of 3 ranks; rank 2 is without one",
        "group 0 (default_pg): rank 1 is without any collective",
    ]


def test_groups_are_compared_each_by_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dumped(tmp_path, [entry(3), entry(9, group="1")], [entry(3), entry(9, group="1")])
    assert said(tmp_path, capsys)[1:] == ["all ranks are at the same collective in every group"]


def test_a_dump_that_would_run_something_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Runs:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.system, ("true",)

    (tmp_path / f"{FLIGHT_RECORDER}0").write_bytes(pickle.dumps(Runs()))
    assert main([str(tmp_path)]) == 1
    assert "is no part of a flight recorder's dump" in capsys.readouterr().err


def test_what_is_no_folder_of_dumps_says_how_to_get_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path)]) == 1
    assert "a job writes them with debug=info" in capsys.readouterr().err
    assert main([]) == 2


def test_the_guide_shows_what_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gathers = entry(4710, "nccl:_all_gather_base", 2**20) | {
        "frames": [{"filename": "/opt/ml/code/loop.py", "line": 112, "name": "run"}]
    }
    dumped(tmp_path, *([gathers] if rank == 5 else [gathers, entry(4711, size=1)] for rank in range(8)))
    said_by_it = "\n".join(said(tmp_path, capsys))
    assert f"```\n{said_by_it}\n```" in text_of("docs/training/debugging.md")


def test_the_guide_shows_a_hang_as_the_control_plane_knows_it() -> None:
    (line,) = [one for one in text_of("docs/training/debugging.md").splitlines() if one.startswith("hang: ")]
    assert diagnose(FailureEvidence(failure_reason=line)).advice.startswith("The ranks hung inside a step")
