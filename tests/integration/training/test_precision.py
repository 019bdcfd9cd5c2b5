"""What is computed in which type, and what a resumed job keeps of it."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from tests.integration.training.worlds import in_world
from training.config import TrainConfig, read_config
from training.config.choices import Precision
from training.errors import ConfigError
from training.job import make_model, run_in
from training.models.precision import settled
from training.optim import make_optimizer
from training.preemptible.preempt import StopRequest
from training.ranks.devices import Cpu
from training.ranks.world import World

_SLOW = "one has neither AMX nor AVX512-BF16"
_FP32, _BF16 = torch.float32, torch.bfloat16


class Attempts:
    """A job on one rank whose processor can be changed between attempts."""

    def __init__(
        self, world: World, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.world, self.place = world, place
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def on_cpu(self, lacks: str) -> None:
        """From now on the processor lacks this for fast bf16; empty: nothing."""
        self._monkeypatch.setattr(Cpu, "slow_bf16", lambda _self, _device: lacks)

    def trained(self, steps: int, *words: str) -> list[str]:
        """Train up to so many steps; what was printed."""
        given = ["--preset=tiny", "--sequence_length=16", "--batch_size=2", "--export=false"]
        given += [f"--checkpoint_dir={self.place / 'checkpoints'}", f"--model_dir={self.place / 'model'}"]
        config = read_config([*given, f"--steps={steps}", *words], {})
        assert run_in(self.world, config, {}, StopRequest()) == 0
        return self._capsys.readouterr().out.splitlines()

    def manifest(self, step: int) -> Path:
        return self.place / f"checkpoints/step-{step:08d}/manifest.json"


@pytest.fixture
def attempts(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Attempts:
    return Attempts(world, tmp_path, monkeypatch, capsys)


def _told(lines: list[str]) -> str:
    return next(line for line in lines if line.startswith("precision: "))


def test_a_job_keeps_its_precision_wherever_it_resumes(attempts: Attempts) -> None:
    attempts.on_cpu(_SLOW)
    first = attempts.trained(2)
    assert _told(first) == f"precision: fp32, by precision auto: {_SLOW}"
    assert json.loads(next(line for line in first if line.startswith("event "))[6:])["precision"] == "fp32"
    assert json.loads((attempts.place / "model/metrics.json").read_bytes())["precision"] == "fp32"
    attempts.on_cpu("")
    assert _told(attempts.trained(4)) == "precision: fp32, by precision auto: as the checkpoint of step 2"
    assert _told(attempts.trained(6, "--precision=bf16")) == "precision: bf16, as the job says"
    attempts.on_cpu(_SLOW)
    fourth = attempts.trained(8)
    assert _told(fourth) == "precision: bf16, by precision auto: as the checkpoint of step 6"
    assert any(line.startswith(f"warning: {_SLOW}, so bf16 is likely slower") for line in fourth)
    assert json.loads(attempts.manifest(8).read_bytes())["notes"] == {"precision": "bf16"}


def test_a_new_job_is_bf16_where_that_is_fast(attempts: Attempts) -> None:
    attempts.on_cpu("")
    lines = attempts.trained(2)
    assert _told(lines) == "precision: bf16, by precision auto: computed fast on every device of this job"
    assert not any(line.startswith("warning: ") for line in lines)


@pytest.mark.parametrize(("was", "kept"), [("bf16", "bf16"), ("fp32", "bf16"), ("bf16_pure", "bf16_pure")])
def test_a_checkpoint_without_notes_was_written_where_bf16_was_the_default(
    was: str, kept: str, attempts: Attempts
) -> None:
    attempts.on_cpu(_SLOW)
    attempts.trained(2, f"--precision={was}")
    found: dict[str, Any] = json.loads(attempts.manifest(2).read_bytes())
    del found["notes"]
    attempts.manifest(2).write_text(json.dumps(found))
    assert _told(attempts.trained(3)) == f"precision: {kept}, by precision auto: as the checkpoint of step 2"


def test_a_kept_precision_is_held_to_the_options_of_the_new_attempt(attempts: Attempts) -> None:
    attempts.on_cpu("")
    attempts.trained(2, "--precision=float8-emulated")
    with pytest.raises(ConfigError, match="precision float8_emulated does not go with strategy tp"):
        attempts.trained(4, "--strategy=tp")
    assert "as the checkpoint of step 2" in _told(attempts.trained(4))


def test_gradients_of_a_job_that_turns_out_fp32_are_summed_in_fp32(attempts: Attempts) -> None:
    attempts.on_cpu(_SLOW)
    lines = attempts.trained(2, "--reduce_dtype=bf16")
    assert _told(lines) == f"precision: fp32, by precision auto: {_SLOW}; gradients are summed in fp32, too"
    with pytest.raises(ConfigError, match="reduce_dtype bf16 needs a precision other than fp32"):
        read_config(["--precision=fp32", "--reduce_dtype=bf16"], {})


class _Beside(Cpu):
    """The processor of one rank of several."""

    def __init__(self, lacks: str) -> None:
        self._lacks = lacks

    def slow_bf16(self, _device: torch.device) -> str:
        return self._lacks


def _settled_beside(world: World, lacks: list[str]) -> tuple[str, str]:
    object.__setattr__(world, "accelerator", _Beside(lacks[world.rank]))
    config, choice = settled(TrainConfig(), world)
    return config.precision.value, choice.reason


def test_ranks_on_different_processors_come_to_the_same_precision() -> None:
    assert in_world(2, _settled_beside, ["", _SLOW]) == [("fp32", f"by precision auto: {_SLOW}")] * 2
    assert [precision for precision, _ in in_world(2, _settled_beside, ["", ""])] == ["bf16", "bf16"]


@pytest.mark.parametrize(
    ("precision", "lacks", "types"),
    [
        pytest.param(Precision.AUTO, "", (_FP32, _BF16, _FP32, _FP32), id="auto, fast"),
        pytest.param(Precision.AUTO, _SLOW, (_FP32, _FP32, _FP32, _FP32), id="auto, slow"),
        pytest.param(Precision.FP32, "", (_FP32, _FP32, _FP32, _FP32), id="fp32"),
        pytest.param(Precision.BF16, "", (_FP32, _BF16, _FP32, _FP32), id="bf16"),
        pytest.param(Precision.BF16, _SLOW, (_FP32, _BF16, _FP32, _FP32), id="bf16, slow"),
        pytest.param(Precision.BF16_PURE, "", (_BF16, _BF16, _BF16, _BF16), id="bf16_pure"),
        pytest.param(Precision.BF16_PURE, _SLOW, (_BF16, _BF16, _BF16, _BF16), id="bf16_pure, slow"),
    ],
)
def test_weights_computation_gradients_and_moments_are_of_these_types(
    precision: Precision, lacks: str, types: tuple[torch.dtype, ...], attempts: Attempts
) -> None:
    """The table of docs/training/precision.md."""
    attempts.on_cpu(lacks)
    config, _ = settled(TrainConfig(precision=precision, sequence_length=16), attempts.world)
    model = make_model(config, attempts.world)
    optimizer = make_optimizer(model, config)
    computed: list[torch.dtype] = []
    block = next(iter(model.blocks.values()))
    block.register_forward_hook(lambda _module, _inputs, output: computed.append(output.dtype))
    logits: Tensor = model(torch.zeros((2, 16), dtype=torch.long))
    wanted = torch.zeros(32, dtype=torch.long)
    nn.functional.cross_entropy(logits.float().flatten(0, 1), wanted).backward()
    matrix = next(one for one in block.parameters() if one.ndim == 2)
    optimizer.step()
    assert matrix.grad is not None
    local = matrix.to_local() if isinstance(matrix, DTensor) else matrix
    moments = {value.dtype for value in optimizer.state[matrix].values() if _is_moment(value)}
    assert moments == {types[3]}
    assert (local.dtype, computed, matrix.grad.dtype) == (types[0], [types[1]], types[2])


def _is_moment(value: object) -> bool:
    return isinstance(value, Tensor) and value.ndim == 2
