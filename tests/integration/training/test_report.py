import json
import signal
from pathlib import Path

import pytest
import torch

from training.config import TrainConfig
from training.config.choices import ProfileRanks
from training.monitoring.report import Profiler, Trace
from training.ranks.world import World

_FIRST = World(rank=0, size=2, local_rank=0, ranks_per_host=2, device=torch.device("cpu"))
_SECOND = World(rank=1, size=2, local_rank=1, ranks_per_host=2, device=torch.device("cpu"))


def _traced(*steps: int, at: int, world: World, folder: Path) -> None:
    trace = Trace(TrainConfig(profile_step=at), world=world, env={"SM_OUTPUT_DATA_DIR": str(folder)})
    for step in steps:
        trace.begin(step)
        torch.ones(8, 8) @ torch.ones(8, 8)
        trace.end(step)


@pytest.mark.parametrize(("at", "world"), [(0, _FIRST), (2, _SECOND)], ids=["no step", "another rank"])
def test_nothing_is_traced_where_nothing_is_asked_for(
    at: int, world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _traced(1, 2, 3, at=at, world=world, folder=tmp_path)
    assert (list(tmp_path.iterdir()), capsys.readouterr().out) == ([], "")


def test_the_first_rank_writes_the_operations_of_that_step_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _traced(1, 2, 3, at=2, world=_FIRST, folder=tmp_path / "data")
    (trace,) = (tmp_path / "data").iterdir()
    assert trace.name == "trace-step-00000002.json"
    names = [event.get("name") for event in json.loads(trace.read_bytes())["traceEvents"]]
    assert names.count("aten::mm") == 1
    assert capsys.readouterr().out == f'event {{"kind":"profile","step":2,"path":"{trace}"}}\n'


def _profiled(
    steps: range, config: TrainConfig, *, world: World, folder: Path, asked_at: int = 0
) -> list[str]:
    profiler = Profiler(config, world=world, directory=folder)
    profiler.listen()
    told: list[str] = []
    for step in steps:
        profiler.begin(step)
        if step == asked_at:
            signal.raise_signal(signal.SIGUSR2)
        torch.ones(8, 8) @ torch.ones(8, 8)
        told += (profiler.end(step) or {}).values()
    return told


def _products(path: str) -> int:
    events = json.loads(Path(path).read_bytes())["traceEvents"]
    return sum(event.get("name") == "aten::mm" for event in events)


def test_a_trace_has_as_many_steps_as_wanted_and_each_rank_a_file_of_its_own(tmp_path: Path) -> None:
    config = TrainConfig(profile_step=2, profile_steps=3, profile_ranks=ProfileRanks.ALL)
    (path,) = _profiled(range(1, 8), config, world=_SECOND, folder=tmp_path)
    assert Path(path).name == "trace-step-00000002-to-00000004-rank-1.json"
    assert _products(path) == 3


def test_a_trace_ends_with_the_training(tmp_path: Path) -> None:
    config = TrainConfig(profile_step=3, profile_steps=5, steps=4)
    (path,) = _profiled(range(1, 5), config, world=_FIRST, folder=tmp_path)
    assert (Path(path).name, _products(path)) == ("trace-step-00000003-to-00000004.json", 2)


def test_a_signal_asks_for_the_next_whole_step_and_may_come_again(tmp_path: Path) -> None:
    (path,) = _profiled(range(1, 5), TrainConfig(), world=_FIRST, folder=tmp_path, asked_at=2)
    assert (Path(path).name, _products(path)) == ("trace-step-00000003.json", 1)
    assert _profiled(range(5, 9), TrainConfig(), world=_SECOND, folder=tmp_path, asked_at=6) == []


def test_on_cpus_it_says_what_there_is_instead_of_a_snapshot_of_the_memory(tmp_path: Path) -> None:
    path, memory = _profiled(
        range(1, 2), TrainConfig(profile_step=1, profile_memory=True), world=_FIRST, folder=tmp_path
    )
    assert memory == "allocations are in the trace; only CUDA's allocator makes snapshots"
    assert "[memory]" in Path(path).read_text()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="snapshots are of CUDA's allocator")
def test_on_gpus_the_history_of_the_allocator_is_written_beside_the_trace(tmp_path: Path) -> None:
    world = World(rank=0, size=1, local_rank=0, ranks_per_host=1, device=torch.device("cuda", 0))
    _, memory = _profiled(
        range(1, 2), TrainConfig(profile_step=1, profile_memory=True), world=world, folder=tmp_path
    )
    assert Path(memory).stat().st_size > 0


def test_a_trace_that_cannot_be_written_does_not_end_the_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    _traced(1, at=1, world=_FIRST, folder=tmp_path / "file")
    assert '"step":1,"error":' in capsys.readouterr().out
