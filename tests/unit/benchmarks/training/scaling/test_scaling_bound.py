"""The plane's bound of the scaling, against what the training program knows of GPUs and of its model."""

import pytest
from trainmaster.core.memory.accelerators import BY_TYPE
from trainmaster.core.memory.footprint import cluster_of
from trainmaster.core.memory.scaling_bound import SPEEDS, UTILISATION_PERCENT, bound

from tools.training.plan import run_of
from training.config import TrainConfig
from training.config.choices import Objective
from training.config.decoder_shape import PRESETS
from training.config.vision_shape import VISION_PRESETS
from training.metrics import peak_of
from training.models.transformer import flops_per_token

P5 = "ml.p5.48xlarge"


@pytest.mark.parametrize("instance_type", SPEEDS)
def test_peaks_are_those_that_the_program_measures_itself_by(instance_type: str) -> None:
    peak = peak_of(f"NVIDIA {BY_TYPE[instance_type].kind}")
    assert peak is not None
    assert SPEEDS[instance_type].flops == peak.flops


@pytest.mark.parametrize("options", [{}, {"lora_rank": 8, "init_from": "x"}], ids=["all", "adapters"])
@pytest.mark.parametrize("preset", PRESETS)
def test_the_flops_of_a_step_are_those_that_the_program_counts(
    preset: str, options: dict[str, object]
) -> None:
    config = TrainConfig(preset=preset, batch_size=8, **options)  # type: ignore[arg-type]
    found = bound(run_of(config), cluster_of([(BY_TYPE[P5], 1)]), SPEEDS[P5])
    assert found is not None
    flops = config.shape.sequence_length * flops_per_token(config.shape, config.lora)
    assert found.compute_seconds == pytest.approx(flops / SPEEDS[P5].flops / UTILISATION_PERCENT * 100)


@pytest.mark.parametrize("objective", Objective)
@pytest.mark.parametrize("preset", VISION_PRESETS)
def test_the_flops_of_images_are_those_that_the_program_counts(preset: str, objective: Objective) -> None:
    config = TrainConfig(preset=preset, batch_size=8, objective=objective, image_size=448)
    found = bound(run_of(config), cluster_of([(BY_TYPE[P5], 1)]), SPEEDS[P5])
    assert found is not None
    flops = config.shape.sequence_length * flops_per_token(config.shape, None)  # which is rounded
    assert found.compute_seconds == pytest.approx(flops / SPEEDS[P5].flops / UTILISATION_PERCENT * 100)
