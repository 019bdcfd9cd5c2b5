import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.training.bench import measure, mlp
from benchmarks.training.bench.cases import Case, Kind, State
from benchmarks.training.bench.modes import read_options
from benchmarks.training.bench.suite import in_a_process
from benchmarks.training.bench.suites import suite_of
from training.preemptible.checkpoint import CheckpointStore, open_store
from training.ranks.world import World

pytestmark = pytest.mark.thorough

_SMALL = ("--modes", "eager", "--batch-size", "2", "--warm-up", "1", "--lap", "1", "--laps", "3")


def _bench(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.training.bench", *arguments],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.long
def test_the_training_step_is_timed_here_and_now(tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    done = _bench(*_SMALL, "--json", str(path))
    assert done.returncode == 0, done.stderr
    facts = json.loads(path.read_bytes())["facts"]
    (eager,) = facts["modes"]
    assert (facts["preset"], facts["batch_size"], facts["ranks"]) == ("tiny", 2, 1)
    assert len(eager["step_seconds"]) == 3
    # 2 sequences of 128 tokens in the median step.
    assert round(eager["tok_s"] * sorted(eager["step_seconds"])[1]) == 256
    assert f"{eager['tok_s']:.1f}" in done.stdout


def test_wrong_options_are_told_at_once() -> None:
    done = _bench("--modes", "fast")
    assert (done.returncode, done.stderr) == (
        2,
        "error: hyperparameters: modes must be eager, compiled or both, not 'fast'\n",
    )


def test_cases_that_fail_in_a_process_of_their_own_say_how() -> None:
    small = {"preset": "tiny", "sequence-length": "128", "batch-size": "2", "lr": "3e-4", "modes": "eager"}
    small |= {"warm-up": "1", "lap": "1", "laps": "1"}
    steps = Case(id="eager", kind=Kind.STEPS, options=small, needs=1, limit=100)
    states = {
        "learns": in_a_process(steps.task(), 100),
        "slow": in_a_process(steps.task(), 0.5),
        "large": in_a_process(replace(steps, kind=Kind.BATCH, memory_gib=0.4).task(4096), 100),
        "wrong": in_a_process(steps.task() | {"options": small | {"preset": "none"}}, 100),
        "float8": in_a_process(steps.task() | {"options": small | {"precision": "float8"}}, 100),
    }
    assert {name: one.state for name, one in states.items()} == {
        "learns": State.OK,
        "slow": State.TIME_LIMIT,
        "large": State.OUT_OF_MEMORY,
        "wrong": State.FAILED,
        "float8": State.SKIPPED,
    }
    assert states["learns"].result["tok_s"] > 0
    assert states["wrong"].reason.startswith("ConfigError: hyperparameters: preset must be one of")


def test_what_a_case_writes_lies_where_it_goes_with_it(
    tmp_path: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A case that is killed removes nothing itself."""
    folders: list[str] = []

    def opened(place: str, environment: dict[str, str]) -> CheckpointStore:
        folders.append(place)
        return open_store(place, environment)

    monkeypatch.setattr(measure, "open_store", opened)
    config, _ = read_options(["--preset=tiny", "--sequence_length=32", "--batch_size=2"])
    result = measure.checkpoint(config, world, tmp_path)
    assert [Path(one).parent for one in folders] == [tmp_path] * 2
    assert len(result["stall_seconds"]) == 3


def test_the_articles_matrices_train_in_each_way_that_the_suite_compares(world: World) -> None:
    """On a toy of them: what is held is that each row runs and learns, not a figure."""
    rows = [case for case in suite_of("cpu", host_threads=1) if case.kind is Kind.MLP]
    for case in rows:
        task = case.task()["options"]
        size = {name: int(task.pop(name)) for name in ("layers", "width")}
        config, options = read_options([f"--{name}={text}" for name, text in task.items()])
        result = mlp.measured(config, options, world, **size)
        before, after = result["losses"]
        assert after < before, case.id
        assert (result["layers"], result["width"], len(result["step_seconds"])) == (3, 128, 3)
        assert result["memory_gib"] > 0


def test_the_row_of_matrices_is_one_case_of_the_suite() -> None:
    (case,) = [case for case in suite_of("cpu", host_threads=1) if case.id == "mlp-offload"]
    ended = in_a_process(case.task(), 100)
    assert ended.state is State.OK, ended.reason
    assert ended.result["samples_s"] > 0
