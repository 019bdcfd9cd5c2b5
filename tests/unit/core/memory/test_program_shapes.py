"""The layer's copy of the training program's shapes and words: generated, and never behind."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from trainmaster.core.memory import program_shapes
from trainmaster.core.memory.program_shapes import Pooling
from trainmaster.core.memory.vision_shapes import EVERY_PRESET, VisionShape

from training.config import choices, decoder_shape, vision_shape

LAYER = Path(__file__).parents[4] / "layers" / "trainmaster"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", LAYER / "generate_program_shapes.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_copy_is_what_the_training_program_has_now(generator: ModuleType) -> None:
    assert generator.generate() == generator.TARGET.read_text(encoding="utf-8"), "run make reference"


def test_a_member_goes_with_its_note_and_its_decorators(generator: ModuleType) -> None:
    for kind, names in generator.LEFT_OUT.items():
        assert not [name for name in names if hasattr(getattr(program_shapes, kind), name)]
    text = generator.generate()
    for note in ("SwiGLU", "Digest of the model", "Scale of each colour"):
        assert note not in text


def test_a_name_that_the_program_does_not_have_any_more_is_an_error(
    generator: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generator, "LEFT_OUT", {"ModelShape": frozenset({"retired"})})
    with pytest.raises(KeyError, match="retired"):
        generator.generate()


def test_the_copy_has_every_preset_and_word_of_the_program() -> None:
    presets: dict[str, vision_shape.Shape] = {**decoder_shape.PRESETS, **vision_shape.VISION_PRESETS}
    assert list(EVERY_PRESET) == list(presets)
    for words in ("Precision", "Objective", "OptimizerName", "ReduceDtype", "Strategy"):
        assert list(getattr(program_shapes, words)) == list(getattr(choices, words))
    for name, shape in presets.items():
        assert EVERY_PRESET[name].sequence_length == shape.sequence_length


def test_a_shape_of_the_program_becomes_one_of_the_layer_whatever_share_is_hidden() -> None:
    shape = vision_shape.VisionShape(
        layers=2, width=64, heads=2, hidden=128, patch=8, pooling=vision_shape.Pooling.MEAN, masked=0.5
    )
    planned = VisionShape.of(shape)
    assert planned.pooling is Pooling.MEAN
    assert planned.is_masked
    assert planned.sequence_length == shape.sequence_length == planned.patches
    assert planned.outputs == shape.outputs
