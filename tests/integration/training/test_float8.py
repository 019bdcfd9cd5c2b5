"""Training in float8, by its emulation: as bf16 within bounds, however it is divided, saved and resumed."""

import json
import pickle
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.distributed.tensor import DTensor

from benchmarks.training.bench.modes import read_options, trainer_of
from tests.integration.training.learning import STRATEGIES, loss_of, sharded, tokens_of, trained
from tests.integration.training.worlds import in_world
from training.config import TrainConfig, read_config
from training.config.choices import ActivationCheckpointing, Compile, OptimizerName, Precision, Strategy
from training.job import run_in
from training.models.float8 import precompute_scales
from training.preemptible.preempt import StopRequest
from training.ranks.world import World

pytestmark = pytest.mark.thorough

_BF16 = TrainConfig(precision=Precision.BF16)
_TENSOR = TrainConfig(precision=Precision.FLOAT8_EMULATED)
_ROW = TrainConfig(precision=Precision.FLOAT8_ROWWISE_EMULATED)
_CONFIGS = {"bf16": _BF16, "by tensor": _TENSOR, "by row": _ROW}

Losses = dict[str, list[float]]


def _compared(world: World) -> tuple[Losses, dict[str, dict[str, Tensor]]]:
    """The losses of 50 steps, and the gradients of the first."""
    losses, gradients = {}, {}
    for name, config in _CONFIGS.items():
        model = sharded(config, world)
        loss_of(model, tokens_of(1)).backward()
        gradients[name] = {key: _whole(one.grad) for key, one in model.named_parameters()}
        model.zero_grad()
        losses[name] = trained(config, world, steps=50, model=model)[2]
    return losses, gradients


def _whole(tensor: Tensor | None) -> Tensor:
    assert isinstance(tensor, DTensor)
    return tensor.full_tensor().float().clone()


def _apart(some: Tensor, others: Tensor) -> float:
    return float((some - others).norm() / others.norm())


def test_float8_learns_what_bf16_learns() -> None:
    """The bounds of docs/training/precision.md."""
    losses, gradients = in_world(1, _compared)[0]
    plain, exact = losses["bf16"], gradients["bf16"]
    assert plain[-1] < plain[0] - 1.5
    for name in ("by tensor", "by row"):
        relative = [abs(one - other) / other for one, other in zip(losses[name], plain, strict=True)]
        assert 0 < max(relative) < 1e-2
        flat = [torch.cat([one.flatten() for one in found.values()]) for found in (gradients[name], exact)]
        assert 0 < _apart(*flat) < 0.06
        assert max(_apart(one, exact[key]) for key, one in gradients[name].items()) < 0.2


def _divided(world: World) -> tuple[Losses, list[bool]]:
    """By strategy, on two hosts of two ranks; and whether scales that are computed ahead change nothing."""
    here = replace(world, ranks_per_host=2)
    ways = {f"tensor {strategy}": replace(_TENSOR, strategy=strategy) for strategy in STRATEGIES}
    ways |= {
        "row full_shard": _ROW,
        "row no_shard": replace(_ROW, strategy=Strategy.NO_SHARD),
        "tensor offloaded": replace(_TENSOR, cpu_offload=True),
        "tensor gathered in bf16": replace(_TENSOR, float8_all_gather=False),
    }
    return _learned(here, ways), _unchanged_by_scales_ahead(here)


def _arranged(world: World) -> Losses:
    ways = {
        f"recomputed {kind}": replace(_TENSOR, activation_checkpointing=kind)
        for kind in ActivationCheckpointing
    }
    ways |= {
        "recomputed, compiled": replace(_TENSOR, compile=Compile.AOT_EAGER),
        "parts": replace(_TENSOR, gradient_accumulation_steps=2),
        "bf16": _BF16,
    }
    for optimizer in (OptimizerName.MUON, OptimizerName.ADAMW_8BIT):
        ways[optimizer] = replace(_TENSOR, optimizer=optimizer)
        ways[f"{optimizer} bf16"] = replace(_BF16, optimizer=optimizer)
    return _learned(world, ways)


def _learned(world: World, ways: dict[str, TrainConfig]) -> Losses:
    return {name: trained(replace(config, lr=1e-3), world, steps=2)[2] for name, config in ways.items()}


def _unchanged_by_scales_ahead(world: World) -> list[bool]:
    model, tokens = sharded(_TENSOR, world), tokens_of(1).chunk(world.size)[world.rank]
    found = []
    for _ in range(2):
        now = loss_of(model, tokens)
        precompute_scales(model)
        found.append(bool(now == loss_of(model, tokens)))
        with torch.no_grad():
            for one in model.parameters():
                one.mul_(1.5)
        precompute_scales(model)
    return found


def _furthest(*runs: list[float]) -> float:
    furthest: float = max(max(losses) - min(losses) for losses in zip(*runs, strict=True))
    return furthest


def test_however_a_model_in_float8_is_divided_it_learns_the_same() -> None:
    (losses, same), *others = in_world(4, _divided)
    assert all(other == (losses, same) for other in others)
    assert same == [True, True]
    gathered = [losses[f"tensor {one}"] for one in STRATEGIES if one is not Strategy.NO_SHARD]
    # Scales follow from the fp32 weights where those are gathered in float8, elsewhere from bf16 ones.
    in_bf16 = [losses[name] for name in ("tensor no_shard", "tensor offloaded", "tensor gathered in bf16")]
    assert _furthest(*gathered) == 0
    assert _furthest(*in_bf16) == 0
    assert 0 < _furthest(gathered[0], in_bf16[0]) < 1e-3
    assert losses["row full_shard"] == losses["row no_shard"] != gathered[0]


def test_however_a_step_in_float8_is_computed_it_is_the_same() -> None:
    losses = in_world(1, _arranged)[0]
    arranged = [run for name, run in losses.items() if name.startswith("recomputed")]
    assert len(arranged) == 4
    assert _furthest(*arranged) == 0
    assert 0 < _furthest(losses["parts"], arranged[0]) < 1e-3  # each part has scales of its own
    assert 0 < _furthest(losses["bf16"], arranged[0]) < 2e-3
    for optimizer in ("muon", "adamw_8bit"):
        assert 0 < _furthest(losses[optimizer], losses[f"{optimizer} bf16"]) < 2e-3


_OPTIONS = ("--preset=tiny", "--sequence_length=32", "--checkpoint_every=3", "--checkpoint_async=false")


def _run(world: World, root: Path, *options: str) -> int:
    places = (
        f"--checkpoint_dir={root}",
        f"--model_dir={root / 'model'}",
        f"--metrics_file={root / 'metrics'}",
    )
    config = read_config([*_OPTIONS, *places, *options], {})
    return run_in(world, config, {}, StopRequest())


def _attempts(world: World, root: Path) -> list[int]:
    """Each trains on from where the one before it ended, some in another precision."""
    float8, bf16 = "--precision=float8-emulated", "--precision=bf16"
    codes = [_run(world, root / "whole", "--steps=6", float8)]
    codes.append(_run(world, root / "mixed", "--steps=3", bf16, "--export=false"))
    for source, target in (("whole", "resumed"), ("mixed", "bf16")):
        if world.is_first:
            shutil.copytree(root / source, root / target)
            shutil.rmtree(root / target / "step-00000006", ignore_errors=True)
        torch.distributed.barrier()
    codes.append(_run(world, root / "resumed", "--steps=6", float8))
    codes.append(_run(world, root / "mixed", "--steps=6", float8, "--export=false"))
    codes.append(_run(world, root / "mixed", "--steps=9", bf16))
    codes.append(_run(world, root / "bf16", "--steps=6", bf16, "--export=false"))
    return codes


def _losses(root: Path) -> list[float]:
    lines = (root / "metrics").read_text().splitlines()
    return [float.fromhex(json.loads(line)["loss_hex"]) for line in lines]


def _kinds(step: Path) -> dict[str, str]:
    """Of the tensors of a checkpoint: shape and type by the name."""
    metadata = pickle.loads((step / ".metadata").read_bytes()).state_dict_metadata
    return {
        name: f"{one.size} {one.properties.dtype}" for name, one in metadata.items() if hasattr(one, "size")
    }


def test_checkpoints_are_those_of_bf16_and_resumed_to_the_last_bit(tmp_path: Path) -> None:
    assert in_world(2, _attempts, tmp_path) == [[0] * 6] * 2
    whole, mixed, bf16 = (_losses(tmp_path / name) for name in ("whole", "mixed", "bf16"))
    assert _losses(tmp_path / "resumed") == [*whole, *whole[3:]]
    last = [sorted((tmp_path / name / "step-00000006").glob("*.distcp")) for name in ("whole", "resumed")]
    assert [one.read_bytes() for one in last[0]] == [one.read_bytes() for one in last[1]]
    exported = [
        (tmp_path / name / "model" / "model.safetensors").read_bytes() for name in ("whole", "resumed")
    ]
    assert exported[0] == exported[1]
    # A checkpoint of bf16 is trained on in float8, and back, as if nothing had been.
    assert mixed[3:6] == pytest.approx(bf16[3:], rel=1e-2)
    assert mixed[3:6] != bf16[3:]
    assert len(mixed) == 9
    kinds = _kinds(tmp_path / "whole" / "step-00000006")
    assert kinds == _kinds(tmp_path / "bf16" / "step-00000006")
    assert "model.blocks.0.attention.query.weight" in kinds
    assert b"torchao" not in b"".join(one.read_bytes() for one in last[0])


def _image_losses(world: World) -> Losses:
    """Train vit-nano on one made-up batch, in each precision."""
    losses: Losses = {}
    for precision in ("bf16", "float8_emulated", "float8_rowwise_emulated"):
        options = ["--preset=vit-nano", "--batch_size=16", "--lr=1e-3", f"--precision={precision}"]
        trainer = trainer_of(read_options([*options, "--modes=eager"])[0], world)
        losses[precision] = []
        for step in range(1, 31):
            trainer.run(range(step, step + 1))
            losses[precision].append(trainer.loss())
    return losses


def test_a_vision_transformer_in_float8_learns_what_it_learns_in_bf16() -> None:
    """The bound of docs/training/precision.md: every matrix of its blocks is in float8."""
    losses = in_world(1, _image_losses)[0]
    plain = losses.pop("bf16")
    assert plain[-1] < plain[0] - 1
    for name, run in losses.items():
        assert run[-1] < run[0] - 1, name
        assert 0 < max(abs(loss - other) / other for loss, other in zip(run, plain, strict=True)) < 0.02
