"""Vision transformers in the loop: as transformers has them, on any number of ranks, resumed."""

import json
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from tests.integration.training.attempts import Job
from tests.integration.training.worlds import in_world
from tests.unit.training.vision.pictures import folders
from tools.training.prepare_images import main as prepare
from training.config import read_config
from training.errors import ConfigError, WeightsError
from training.families import model_of, objective_of, open_data
from training.interop.exporting import export_weights
from training.interop.importing import load_weights
from training.job import run_in
from training.metrics import metrics_in
from training.models.init import initialise
from training.preemptible.preempt import StopRequest
from training.ranks.world import World

_SMALL = {
    "hidden_size": 32,
    "intermediate_size": 40,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "image_size": 24,
    "patch_size": 8,
    "num_labels": 5,
}
_MODELS: dict[str, dict[str, Any]] = {
    "as usual": {},
    "without biases of queries, keys and values": {"qkv_bias": False},
    "one wide head, one layer": {"num_attention_heads": 1, "num_hidden_layers": 1, "layer_norm_eps": 1e-5},
    "small patches, more classes": {"patch_size": 4, "num_labels": 11, "hidden_size": 24},
}
_SEED = 19


def _theirs(said: dict[str, Any], *, kind: str = "ViTForImageClassification") -> Any:
    """With weights, norms and biases that are all at random."""
    import transformers  # noqa: PLC0415  takes seconds

    config = transformers.ViTConfig(**{**_SMALL, **said})
    config.encoder_stride = config.patch_size
    options = {"use_mask_token": True} if kind == "ViTModel" else {}
    model = getattr(transformers, kind)(config, **options).eval()
    source = torch.Generator().manual_seed(_SEED)
    with torch.no_grad():
        for one in model.parameters():
            one.copy_(0.2 * torch.randn(one.shape, generator=source) + (one.ndim == 1))
    return model


def _images(side: int, count: int = 3) -> torch.Tensor:
    return torch.randn(count, 3, side, side, generator=torch.Generator().manual_seed(_SEED))


@pytest.mark.thorough
@pytest.mark.parametrize("name", _MODELS)
def test_a_classifier_computes_here_and_there_the_same(name: str, tmp_path: Path) -> None:
    from transformers import AutoModelForImageClassification  # noqa: PLC0415  takes seconds

    theirs = _theirs(_MODELS[name])
    theirs.save_pretrained(tmp_path / "theirs")
    config = read_config([f"--model_config={tmp_path / 'theirs'}"], {})
    ours = model_of(config.shape)
    load_weights(ours, str(tmp_path / "theirs"), {})
    images = _images(24)
    with torch.no_grad():
        wanted = theirs(images).logits
        assert wanted.abs().max() > 0.1
        assert (ours(images) - wanted).abs().max() <= 1e-5

        export_weights(ours, tmp_path / "ours", config.shape)
        back = AutoModelForImageClassification.from_pretrained(tmp_path / "ours")
        assert type(back) is type(theirs)
        assert (back(images).logits - wanted).abs().max() <= 1e-5
    assert all(torch.equal(one, back.state_dict()[key]) for key, one in theirs.state_dict().items())
    again = read_config([f"--model_config={tmp_path / 'ours'}"], {})
    assert again.shape == config.shape


@pytest.mark.thorough
def test_hidden_patches_are_predicted_here_and_there_the_same(tmp_path: Path) -> None:
    theirs = _theirs({}, kind="ViTForMaskedImageModeling")
    theirs.save_pretrained(tmp_path / "theirs")
    told = [f"--model_config={tmp_path / 'theirs'}", "--objective=masked"]
    config = read_config(told, {})
    ours = model_of(config.shape)
    load_weights(ours, str(tmp_path / "theirs"), {})
    images, hidden = _images(24), torch.rand(3, 9, generator=torch.Generator().manual_seed(2)) < 0.5
    objective = objective_of(config)
    with torch.no_grad():
        found = theirs(images, bool_masked_pos=hidden)
        outputs = objective.outputs(ours, (images, hidden))
        loss = objective.terms(outputs, (images, hidden)).sum() / hidden.sum()
    # Theirs is summed over pixels and divided by those that are hidden and by the colours.
    assert abs(loss - found.loss) <= 1e-5
    pixels = outputs.view(3, 3, 3, 3, 8, 8).permute(0, 3, 1, 4, 2, 5).reshape(3, 3, 24, 24)
    assert (pixels - found.reconstruction).abs().max() <= 1e-5
    export_weights(ours, tmp_path / "ours", config.shape)
    files = [load_file(tmp_path / name / "model.safetensors") for name in ("ours", "theirs")]
    assert all(torch.equal(one, files[0][key]) for key, one in files[1].items())
    assert files[0].keys() == files[1].keys()


def _saved(place: Path, **said: Any) -> Path:
    """A config.json as transformers writes it, without weights."""
    config = {"model_type": "vit", "architectures": ["ViTForImageClassification"], **_SMALL, **said}
    place.mkdir(exist_ok=True)
    (place / "config.json").write_text(json.dumps(config))
    return place


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"hidden_act": "relu"}, 'hidden_act must be "gelu", not'),
        ({"num_channels": 1}, "num_channels must be 3, not 1"),
        ({"hidden_dropout_prob": 0.1}, "hidden_dropout_prob must be 0, not 0.1"),
        ({"patch_size": 7}, "image_size 24 does not divide by patch_size 7"),
        ({"num_attention_heads": 5}, "hidden_size 32 does not divide by num_attention_heads 5"),
        ({"patch_size": [8, 8]}, "patch_size must be a whole number"),
        ({"layerscale_value": 1e-5}, "layerscale_value 1e-05: not known here"),
        ({"architectures": [["ViTModel"]]}, 'architectures must be ["ViTForImageClassification"], not'),
        ({"architectures": ["ViTMSNModel"]}, 'architectures must be ["ViTForImageClassification"], not'),
    ],
)
def test_what_is_not_computed_here_is_refused_by_the_name_of_its_field(
    said: dict[str, Any], told: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        read_config([f"--model_config={_saved(tmp_path, **said)}"], {})
    (problem,) = caught.value.problems
    assert problem.replace("'gelu'", '"gelu"').startswith(f"config.json: {told}")


def test_pixels_are_scaled_as_the_file_beside_the_weights_says(tmp_path: Path) -> None:
    _saved(tmp_path)
    told = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225], "size": 224}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(told))
    shape = read_config([f"--model_config={tmp_path}"], {}).image_shape
    assert shape.pixel_mean == (0.485, 0.456, 0.406)
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({"image_mean": [0.5]}))
    with pytest.raises(ConfigError, match="image_mean must be three numbers between 0 and 1, not"):
        read_config([f"--model_config={tmp_path}"], {})


def test_a_new_head_takes_the_weights_of_other_classes_and_nothing_else_does(tmp_path: Path) -> None:
    told = read_config(["--preset=vit-nano"], {})
    before = model_of(told.shape)
    initialise(before, seed=1, layers=3)
    export_weights(before, tmp_path, told.shape)
    other = model_of(replace(told.image_shape, classes=4))
    with pytest.raises(WeightsError, match="classes is 10, the model has 4"):
        load_weights(other, str(tmp_path), {})
    initialise(other, seed=2, layers=3)
    kept = other.get_parameter("head.weight").clone()
    load_weights(other, str(tmp_path), {}, new_head=True)
    assert torch.equal(other.get_parameter("head.weight"), kept)
    theirs = before.state_dict()
    rest = {name: one for name, one in other.state_dict().items() if not name.startswith("head.")}
    assert all(torch.equal(one, theirs[name]) for name, one in rest.items())


def _run(world: World, options: list[str]) -> int:
    return run_in(world, read_config(options, {}), {}, StopRequest())


_OPTIONS = [
    "--preset=vit-nano",
    "--classes=3",
    "--batch_size=8",
    "--steps=6",
    "--precision=fp32",
    "--lr=1e-3",
    "--seed=1",
]


def _trained(ranks: int, place: Path, *options: str) -> list[float]:
    """Losses step by step, unrounded."""
    written = place / f"{ranks}{''.join(options).replace('/', '-')}.jsonl"
    run = place / written.stem
    told = [*_OPTIONS, *options, f"--metrics_file={written}", f"--checkpoint_dir={run}"]
    assert in_world(ranks, _run, [*told, f"--model_dir={run}-model"]) == [0] * ranks
    return [json.loads(line)["loss"] for line in written.read_text().splitlines()]


@pytest.mark.parametrize(
    ("ranks", "options"),
    [
        (2, ["--strategy=full_shard", "--gradient_accumulation_steps=2", "--activation_checkpointing=full"]),
        pytest.param(4, ["--strategy=hybrid_shard", "--shard_group_size=2"], marks=pytest.mark.thorough),
    ],
)
def test_any_number_of_ranks_and_any_strategy_has_the_losses_of_one(
    ranks: int, options: list[str], tmp_path: Path
) -> None:
    folders(tmp_path / "pictures", each=6)
    data = tmp_path / "data"
    assert prepare(["--input", str(tmp_path / "pictures"), "--output", str(data)]) == 0
    place = f"--data={data}"
    alone = _trained(1, tmp_path, place)
    assert len(alone) == 6
    found = _trained(ranks, tmp_path, place, *options)
    assert max(abs(one - other) for one, other in zip(alone, found, strict=True)) < 1e-6


def test_hidden_patches_are_learned_alike_on_two_ranks(tmp_path: Path) -> None:
    options = ("--objective=masked", "--image_size=64", "--export=false")
    alone, both = _trained(1, tmp_path, *options), _trained(2, tmp_path, *options, "--strategy=no_shard")
    assert alone[-1] < alone[0]
    assert max(abs(one - other) for one, other in zip(alone, both, strict=True)) < 1e-6


@pytest.mark.thorough
def test_killed_and_resumed_it_is_bit_for_bit_the_uninterrupted_run(tmp_path: Path) -> None:
    place = folders(tmp_path / "pictures", each=5)
    options = (*_OPTIONS, "--steps=8", f"--data={place}", "--checkpoint_every=3", "--eval_every=4")
    options = (*options, f"--eval_data={place}", "--eval_batches=0")
    whole, job = (Job.under(tmp_path / name, *options) for name in ("whole", "job"))
    wanted = whole.run()
    assert wanted.exit_code == 0, wanted.errors
    # The checkpoint of step 6 began, so that of step 3 is complete; that of step 6 may be.
    killed = job.run_until(7, signal.SIGKILL, "--min_step_seconds=0.3")
    resumed = job.run()
    assert resumed.exit_code == 0, resumed.errors
    assert min(resumed.losses) in (4, 7)
    assert (killed.losses | resumed.losses).items() <= wanted.losses.items()
    left = [(one.root / "model/model.safetensors").read_bytes() for one in (whole, job)]
    assert left[0] == left[1]
    told = [json.loads((one.root / "model/metrics.json").read_bytes()) for one in (whole, job)]
    steps = [[(part["width"], part["steps"]) for part in one.pop("widths")] for one in told]
    assert steps == [[(1, 8)]] * 2  # their seconds are of the clock
    assert told[0] == told[1]
    assert 0 <= told[0]["val_accuracy"] <= 1
    first = metrics_in(next(line for line in wanted.lines if line.startswith("metric ")))
    assert first is not None
    assert float(first["img_s"]) * 17 == pytest.approx(
        float(first["tok_s"]), abs=17 * 0.005 + 0.05
    )  # as rounded


def test_another_augmentation_is_another_training(tmp_path: Path) -> None:
    common = [*_OPTIONS, "--steps=1", f"--checkpoint_dir={tmp_path / 'c'}", f"--model_dir={tmp_path / 'm'}"]
    assert in_world(1, _refused, common) == [""]
    assert "augment was crop, now none" in in_world(1, _refused, [*common, "--steps=2", "--augment=none"])[0]


def _refused(world: World, options: list[str]) -> str:
    config = read_config(options, {})
    try:
        run_in(world, config, {}, StopRequest())
    except Exception as error:  # noqa: BLE001  its text is what is asked for
        return str(error)
    return ""


def test_data_of_images_is_opened_by_the_family(tmp_path: Path) -> None:
    config = read_config([*_OPTIONS, f"--data={folders(tmp_path)}"], {})
    assert open_data(config, {}).identity == open_data(config, {}).identity
