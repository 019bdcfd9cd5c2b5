"""The name of a model in checkpoints: it outlives new fields and knows every difference."""

from dataclasses import replace

import pytest

from training.config.decoder_shape import PRESETS, Family, Rope, RopeKind

_SHAPE = replace(PRESETS["tiny"], positions=4096)


def test_a_fingerprint_stays_what_it_was() -> None:
    # Checkpoints have it: a change would make each of them another model's.
    assert _SHAPE.fingerprint == "b79921ad2c6f"
    assert replace(_SHAPE, sequence_length=64).fingerprint == _SHAPE.fingerprint


@pytest.mark.parametrize(
    "changed",
    [
        {"family": Family.QWEN3},
        {"rope": Rope(theta=5e5)},
        {"rope": Rope(kind=RopeKind.LINEAR, factor=2.0)},
        {"norm_epsilon": 1e-6},
        {"tied_head": True},
        {"window": 4, "windowed_layers": (1,)},
        {"head_width": 48},
        {"layers": 5},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_fingerprint_differs_where_the_model_does(changed: dict[str, object]) -> None:
    assert replace(_SHAPE, **changed).fingerprint != _SHAPE.fingerprint  # type: ignore[arg-type]
