from dataclasses import replace

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from training.config.decoder_shape import PRESETS, ModelShape
from training.models.init import initialise
from training.models.transformer import Transformer, flops_per_token, rotary_angles, rotate

_SHAPE = ModelShape(layers=2, width=32, heads=4, kv_heads=2, hidden=64, vocabulary=50, sequence_length=16)


def _model() -> Transformer:
    model = Transformer(_SHAPE)
    initialise(model, seed=1, layers=_SHAPE.layers)
    return model


@pytest.mark.parametrize(
    ("preset", "parameters"),
    [
        ("tiny", 803_968),
        ("llama-1b", 1_261_529_088),
        ("llama2-7b", 6_738_415_616),
        ("llama2-13b", 13_015_864_320),
        ("llama2-70b", 68_976_648_192),
    ],
)
def test_presets_have_the_sizes_of_llama_2(preset: str, parameters: int) -> None:
    with torch.device("meta"):
        model = Transformer(PRESETS[preset])
    assert sum(one.numel() for one in model.parameters()) == parameters


def test_the_largest_parameter_of_70b_is_a_temporary_of_a_gibibyte() -> None:
    with torch.device("meta"):
        model = Transformer(PRESETS["llama2-70b"])
    assert max(one.numel() for one in model.parameters()) * 4 == 1_048_576_000


@pytest.mark.parametrize(
    ("preset", "flops"),
    [
        pytest.param(
            "llama-1b", 9_389_998_080, id="1b at 4096: 47.4k tokens a second are 45 % of 989 TFLOPs"
        ),
        pytest.param("llama2-7b", 46_084_915_200, id="7b at 4096"),
        pytest.param("tiny", 5_406_720, id="tiny at 128"),
    ],
)
def test_operations_of_a_token(preset: str, flops: int) -> None:
    assert flops_per_token(PRESETS[preset]) == flops


def test_operations_of_a_token_are_those_that_torch_counts() -> None:
    counter = FlopCounterMode(display=False)
    with counter, sdpa_kernel(SDPBackend.MATH):
        _model()(torch.zeros(3, 16, dtype=torch.long)).sum().backward()
    assert counter.get_total_flops() == 3 * 16 * flops_per_token(_SHAPE)


@pytest.mark.parametrize(
    "shape",
    [
        pytest.param(replace(_SHAPE, tied_head=True), id="a head that is the embedding"),
        pytest.param(replace(_SHAPE, head_width=12, head_norms=True), id="wider heads with norms"),
        pytest.param(replace(_SHAPE, qkv_bias=True, output_bias=True, feed_forward_bias=True), id="biases"),
    ],
)
def test_operations_of_the_other_families_are_those_that_torch_counts(shape: ModelShape) -> None:
    counter = FlopCounterMode(display=False)
    with counter, sdpa_kernel(SDPBackend.MATH):
        Transformer(shape)(torch.zeros(3, 16, dtype=torch.long)).sum().backward()
    assert counter.get_total_flops() == 3 * 16 * flops_per_token(shape)


def test_a_window_saves_operations_of_the_layers_that_have_it() -> None:
    windowed = replace(_SHAPE, window=4, windowed_layers=(1,))
    saved = 12 * 4 * 8 * (16 - 4)  # of one layer: heads, their width, tokens out of sight
    assert flops_per_token(_SHAPE) - flops_per_token(windowed) == saved
    assert flops_per_token(replace(windowed, window=99)) == flops_per_token(_SHAPE)


def test_a_token_of_a_windowed_layer_sees_itself_and_those_just_before_it() -> None:
    shape = replace(_SHAPE, layers=1, window=3, windowed_layers=(0,))
    model = Transformer(shape)
    initialise(model, seed=1, layers=1)
    tokens = torch.arange(16)[None]
    changed = tokens.clone()
    changed[0, 5] = 40
    differs = (model(tokens) != model(changed)).any(dim=-1)[0]
    assert differs.nonzero().flatten().tolist() == [5, 6, 7]


def test_a_window_stays_inside_a_document() -> None:
    shape = replace(_SHAPE, layers=1, window=3, windowed_layers=(0,))
    model = Transformer(shape)
    initialise(model, seed=1, layers=1)
    tokens = torch.arange(16)[None]
    changed = tokens.clone()
    changed[0, 5] = 40
    documents = torch.tensor([[0] * 7 + [1] * 9])
    differs = (model(tokens, documents) != model(changed, documents)).any(dim=-1)[0]
    assert differs.nonzero().flatten().tolist() == [5, 6]


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
    cosines, sines = rotary_angles(replace(_SHAPE, head_width=4), 8, torch.device("cpu"))
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
