import json
from pathlib import Path

import pytest
import torch

from training.report import Trace
from training.world import World

_FIRST = World(rank=0, size=2, local_rank=0, ranks_per_host=2, device=torch.device("cpu"))
_SECOND = World(rank=1, size=2, local_rank=1, ranks_per_host=2, device=torch.device("cpu"))


def _traced(*steps: int, at: int, world: World, folder: Path) -> None:
    trace = Trace(at=at, world=world, env={"SM_OUTPUT_DATA_DIR": str(folder)})
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


def test_a_trace_that_cannot_be_written_does_not_end_the_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    _traced(1, at=1, world=_FIRST, folder=tmp_path / "file")
    assert '"step":1,"error":' in capsys.readouterr().out
