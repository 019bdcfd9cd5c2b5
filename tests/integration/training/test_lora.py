"""Adapters of a model that came from files: trained by every strategy, resumed, merged, opened by PEFT."""

import json
import signal
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch.distributed.checkpoint.filesystem import FileSystemReader

from tests.integration.training.attempts import Attempt, Job
from tests.integration.training.learning import BATCH, SHAPE, STRATEGIES, trained
from tests.integration.training.worlds import in_world
from training.config import TrainConfig
from training.config.choices import ActivationCheckpointing, Compile, Precision, Strategy
from training.config.decoder_shape import Family, ModelShape
from training.interop.exporting import export_weights
from training.interop.importing import hashed_weights
from training.models.init import initialise
from training.models.lora import adapt, initialise_adapters, trained_part
from training.models.transformer import Transformer
from training.optim import make_optimizer
from training.parallel.sharding import allocate, shard
from training.ranks.world import World

pytestmark = pytest.mark.thorough

_FP32 = TrainConfig(precision=Precision.FP32, lora_rank=4, init_from="somewhere", lr=1e-2)
_CONFIGS = {f"fp32 {strategy}": replace(_FP32, strategy=strategy) for strategy in STRATEGIES} | {
    f"bf16 {strategy}": replace(_FP32, strategy=strategy, precision=Precision.BF16)
    for strategy in (Strategy.FULL_SHARD, Strategy.NO_SHARD)
}
_CONFIGS["fp32 offloaded"] = replace(_FP32, cpu_offload=True)
_CONFIGS["fp32 recomputed"] = replace(_FP32, activation_checkpointing=ActivationCheckpointing.SELECTIVE)
_CONFIGS["fp32 compiled"] = replace(_FP32, compile=Compile.AOT_EAGER)
_CONFIGS["pure"] = replace(_FP32, precision=Precision.BF16_PURE)
_QWEN = ModelShape(
    family=Family.QWEN3,
    layers=2,
    width=32,
    heads=4,
    kv_heads=2,
    head_width=12,
    hidden=48,
    vocabulary=256,
    sequence_length=32,
    head_norms=True,
    tied_head=True,
)


def _learned(world: World, configs: dict[str, TrainConfig]) -> dict[str, list[float]]:
    here = replace(world, ranks_per_host=min(2, world.size))
    return {name: _losses(config, here) for name, config in configs.items()}


def _losses(config: TrainConfig, world: World) -> list[float]:
    with torch.device("meta"):
        model = Transformer(SHAPE)
    adapt(model, config)
    shard(model, world=world, config=config)
    allocate(model, world=world, config=config)
    initialise(model, seed=0, layers=SHAPE.layers)
    initialise_adapters(model, seed=0, layers=SHAPE.layers)
    frozen = [one for one in model.parameters() if not one.requires_grad]
    before = [one.detach().clone() for one in frozen]
    optimizer = make_optimizer(trained_part(model), config)
    losses = trained(config, world, steps=5, model=model, optimizer=optimizer)[2]
    assert all(torch.equal(_here(one), _here(was)) for one, was in zip(frozen, before, strict=True))
    return losses


def _here(tensor: torch.Tensor) -> torch.Tensor:
    local: torch.Tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return local


def test_every_strategy_trains_the_same_adapters_and_leaves_the_rest_as_it_was() -> None:
    assert BATCH % 4 == 0
    alone, four = (in_world(ranks, _learned, _CONFIGS)[0] for ranks in (1, 4))
    runs = [losses for found in (alone, four) for name, losses in found.items() if name.startswith("fp32")]
    assert len(runs) == 2 * (len(STRATEGIES) + 3)
    assert all(max(step) - min(step) < 1e-6 for step in zip(*runs, strict=True))
    assert runs[0][-1] < runs[0][0]
    of_bf16 = [losses for name, losses in four.items() if name.startswith("bf16")]
    assert all(losses == of_bf16[0] for losses in of_bf16)
    assert abs(four["pure"][-1] - runs[0][-1]) < 0.02


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("base")
    model = Transformer(_QWEN)
    initialise(model, seed=4, layers=2)
    export_weights(model, directory, _QWEN, file_bytes=20_000)
    return directory


def _job(root: Path, base: Path, *options: str) -> Job:
    told = f"--model_config={base} --init_from={base} --lora_rank=4 --lora_targets=q_proj,v_proj,down_proj"
    said = "--sequence_length=32 --steps=9 --batch_size=4 --lr=0.01 --seed=1"
    saved = ("--checkpoint_every=3", "--checkpoint_async=false")
    return Job.under(root, *told.split(), *said.split(), *saved, *options)


@pytest.fixture(scope="module")
def whole(base: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Job, Attempt]:
    """Without an interruption, in fp32."""
    job = _job(tmp_path_factory.mktemp("whole"), base, "--precision=fp32")
    attempt = job.run()
    assert attempt.exit_code == 0, attempt.errors
    return job, attempt


def _folder(job: Job, name: str) -> dict[str, bytes]:
    return {
        one.name: one.read_bytes() for one in sorted((job.root / "model" / name).iterdir()) if one.is_file()
    }


def test_a_killed_training_of_adapters_resumes_to_the_last_bit(base: Path, whole, tmp_path: Path) -> None:
    job = _job(tmp_path, base, "--precision=fp32")
    killed = job.run_until(5, signal.SIGKILL, "--min_step_seconds=0.2")
    resumed = job.run()
    assert resumed.exit_code == 0, resumed.errors
    assert resumed.resumed_from is not None
    assert resumed.resumed_from[0] in {3, 6}  # the signal may come late
    for attempt in (killed, resumed):
        assert attempt.losses.items() <= whole[1].losses.items()
    for name in ("", "adapter"):
        ours, theirs = _folder(job, name), _folder(whole[0], name)
        assert {key: ours[key] for key in ours if key != "metrics.json"} == {
            key: theirs[key] for key in theirs if key != "metrics.json"
        }


def test_checkpoints_hold_adapters_alone_and_name_what_they_belong_to(base: Path, whole) -> None:
    job, _ = whole
    manifest = json.loads((job.checkpoints / "step-00000009/manifest.json").read_bytes())
    assert manifest["guard"]["lora"] == "rank 4, alpha 8, on q_proj, v_proj, down_proj"
    names = sorted(path.name for path in base.glob("*.safetensors"))
    listed = "".join(f"{sha256((base / name).read_bytes()).hexdigest()}  {name}\n" for name in names)
    assert manifest["guard"]["base"] == hashed_weights(str(base), {}) == sha256(listed.encode()).hexdigest()
    index = FileSystemReader(job.checkpoints / "step-00000009").read_metadata()
    weights = {name for name in index.state_dict_metadata if name.startswith("model.")}
    assert weights == {
        f"model.blocks.{layer}.{matrix}.{part}"
        for layer in range(2)
        for matrix in ("attention.query", "attention.value", "feed_forward.output")
        for part in ("lora_a", "lora_b")
    }


def test_other_base_weights_are_refused_by_name(base: Path, whole, tmp_path: Path) -> None:
    job, _ = whole
    model = Transformer(_QWEN)
    initialise(model, seed=5, layers=2)
    export_weights(model, tmp_path, _QWEN, file_bytes=20_000)
    refused = job.run("--init_from", str(tmp_path), "--steps=12")
    assert refused.exit_code == 1
    assert "is of another training: base was" in refused.errors


def test_peft_opens_the_adapter_and_transformers_what_is_merged(base: Path, whole) -> None:
    from peft import PeftModel  # noqa: PLC0415  takes seconds
    from transformers import AutoModelForCausalLM  # noqa: PLC0415

    result = whole[0].root / "model"
    merged = AutoModelForCausalLM.from_pretrained(result)
    plain = AutoModelForCausalLM.from_pretrained(base)
    tokens = torch.randint(256, (2, 24), generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        before, wanted = plain(tokens).logits, merged(tokens).logits
        adapted = PeftModel.from_pretrained(plain, result / "adapter")
        found = adapted(tokens).logits
    assert (found - wanted).abs().max() <= 1e-5
    assert (found - before).abs().max() > 1e-3
    together = adapted.merge_and_unload().state_dict()
    files = [load_file(one) for one in result.glob("*.safetensors")]
    ours = {name: one for file in files for name, one in file.items()}
    assert all((one - together[name]).abs().max() <= 1e-6 for name, one in ours.items())


def test_the_merged_weights_may_be_left_out(base: Path, tmp_path: Path) -> None:
    job = _job(tmp_path, base, "--lora_merge=false", "--steps=2", "--lora_alpha=3")
    assert job.run().exit_code == 0
    left = {one.relative_to(job.root / "model").as_posix() for one in (job.root / "model").rglob("*.*")}
    assert left == {"metrics.json", "adapter/adapter_config.json", "adapter/adapter_model.safetensors"}
    config = json.loads((job.root / "model/adapter/adapter_config.json").read_bytes())
    assert (config["r"], config["lora_alpha"], config["base_model_name_or_path"]) == (4, 3.0, str(base))
