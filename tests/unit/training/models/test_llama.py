import torch

from training.models.init import initialise
from training.models.llama import Transformer, rotary_angles, rotate
from training.presets import PRESETS, ModelShape

_SHAPE = ModelShape(layers=2, width=32, heads=4, kv_heads=2, hidden=64, vocabulary=50, sequence_length=16)


def _model() -> Transformer:
    model = Transformer(_SHAPE)
    initialise(model, seed=1, layers=_SHAPE.layers)
    return model


def test_tiny_has_about_the_size_that_a_laptop_core_trains_in_seconds() -> None:
    with torch.device("meta"):
        model = Transformer(PRESETS["tiny"])
    assert sum(one.numel() for one in model.parameters()) == 803_968


def test_a_token_does_not_see_those_after_it() -> None:
    tokens = torch.randint(50, (1, 16), generator=torch.Generator().manual_seed(0))
    changed = tokens.clone()
    changed[0, 10:] = (changed[0, 10:] + 1) % 50
    model = _model()
    before, after = model(tokens), model(changed)
    assert torch.equal(before[0, :10], after[0, :10])
    assert not torch.equal(before[0, 10:], after[0, 10:])


def test_a_token_sees_the_order_of_those_before_it() -> None:
    model = _model()
    assert not torch.allclose(model(torch.tensor([[1, 2, 3]]))[0, 2], model(torch.tensor([[2, 1, 3]]))[0, 2])


def test_rotation_keeps_lengths_and_depends_on_the_distance_alone() -> None:
    cosines, sines = rotary_angles(8, 4, torch.device("cpu"))
    query, key = (torch.randn(4, generator=torch.Generator().manual_seed(n)).expand(8, 4) for n in (1, 2))
    turned_query, turned_key = rotate(query, cosines, sines), rotate(key, cosines, sines)
    assert torch.allclose(turned_query.norm(dim=-1), query.norm(dim=-1))
    assert torch.allclose(turned_query[5] @ turned_key[3], turned_query[7] @ turned_key[5], atol=1e-5)


def test_queries_share_keys_and_values() -> None:
    weights = _model().state_dict()
    key, value = (weights[f"blocks.0.attention.{name}.weight"] for name in ("key", "value"))
    assert weights["blocks.0.attention.query.weight"].shape == (32, 32)
    assert key.shape == value.shape == (16, 32)


def test_weights_follow_from_seed_and_name_alone() -> None:
    one, other = _model().state_dict(), _model().state_dict()
    assert all(torch.equal(one[name], other[name]) for name in one)
    query, key = one["blocks.0.attention.query.weight"], one["blocks.1.attention.query.weight"]
    assert not torch.equal(query, key)


def test_what_adds_to_the_residual_stream_starts_smaller() -> None:
    weights = _model().state_dict()
    assert weights["blocks.0.attention.output.weight"].std() < 0.012
    assert weights["blocks.0.attention.query.weight"].std() > 0.018
    assert weights["norm.weight"].unique().tolist() == [1.0]
