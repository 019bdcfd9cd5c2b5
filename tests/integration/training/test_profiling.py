import json
from pathlib import Path

import pytest
import torch

from training.profiling import traced
from training.world import World

_FIRST = World(rank=0, size=2, local_rank=0, ranks_per_host=2, device=torch.device("cpu"))
_SECOND = World(rank=1, size=2, local_rank=1, ranks_per_host=2, device=torch.device("cpu"))


def _multiply(step: int) -> int:
    torch.ones(8, 8) @ torch.ones(8, 8)
    return 10 * step


@pytest.mark.parametrize(("at", "world"), [(0, _FIRST), (2, _SECOND)], ids=["no step", "another rank"])
def test_where_nothing_is_traced_the_step_is_the_very_same_function(at: int, world: World) -> None:
    assert traced(_multiply, at=at, world=world, env={}) is _multiply


def test_the_first_rank_writes_the_operations_of_that_step_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    step = traced(_multiply, at=2, world=_FIRST, env={"SM_OUTPUT_DATA_DIR": str(tmp_path / "data")})
    assert [step(number) for number in (1, 2, 3)] == [10, 20, 30]
    (trace,) = (tmp_path / "data").iterdir()
    assert trace.name == "trace-step-00000002.json"
    names = [event.get("name") for event in json.loads(trace.read_bytes())["traceEvents"]]
    assert names.count("aten::mm") == 1
    assert capsys.readouterr().out == f'event {{"kind":"profile","step":2,"path":"{trace}"}}\n'


def test_a_trace_that_cannot_be_written_does_not_end_the_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    step = traced(_multiply, at=1, world=_FIRST, env={"SM_OUTPUT_DATA_DIR": str(tmp_path / "file")})
    assert step(1) == 10
    assert '"step":1,"error":' in capsys.readouterr().out
