"""Adapters beside a small model: what is trained, what stays, and what they add up to."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from training.config import TrainConfig, read_config
from training.config.choices import Precision
from training.config.decoder_layout import PROJECTIONS, adapter_config, peft_name
from training.config.decoder_shape import Lora, ModelShape
from training.errors import ConfigError
from training.models.init import initialise
from training.models.lora import (
    adapt,
    adapted_layers,
    base_parameters,
    initialise_adapters,
    merged,
    trained_part,
)
from training.models.transformer import Transformer, flops_per_token

_SHAPE = ModelShape(layers=2, width=32, heads=4, kv_heads=2, hidden=64, vocabulary=50, sequence_length=16)
_CONFIG = TrainConfig(init_from="somewhere", lora_rank=3, precision=Precision.FP32)
_TOKENS = torch.arange(32).reshape(2, 16)


def _adapted(config: TrainConfig = _CONFIG) -> Transformer:
    model = Transformer(_SHAPE)
    initialise(model, seed=1, layers=2)
    adapt(model, config)
    initialise_adapters(model, seed=1, layers=2)
    return model


def _with_noise(model: nn.Module) -> None:
    source = torch.Generator().manual_seed(5)
    for _, layer in adapted_layers(model):
        layer.lora_b.data.normal_(0, 0.1, generator=source)


def test_fresh_adapters_change_nothing_and_are_all_that_is_trained() -> None:
    plain = Transformer(_SHAPE)
    initialise(plain, seed=1, layers=2)
    model = _adapted()
    assert torch.equal(model(_TOKENS), plain(_TOKENS))
    trained = {name for name, one in model.named_parameters() if one.requires_grad}
    assert trained == dict(trained_part(model).named_parameters()).keys()
    assert len(trained) == 2 * 2 * len(PROJECTIONS)
    assert base_parameters(model).keys() == dict(plain.named_parameters()).keys()


def test_a_step_changes_adapters_alone() -> None:
    model = _adapted()
    before = {name: one.clone() for name, one in model.named_parameters()}
    optimizer = torch.optim.AdamW(trained_part(model).parameters(), lr=0.1, weight_decay=0.0)
    model(_TOKENS).logsumexp(-1).mean().backward()
    optimizer.step()
    changed = {name for name, one in model.named_parameters() if not torch.equal(one, before[name])}
    assert changed == {
        f"{name}.lora_b" for name, _ in adapted_layers(model)
    }  # of A the gradient is zero still


def test_a_is_drawn_as_the_weights_of_a_new_layer_and_is_the_same_for_a_seed() -> None:
    one, other = (dict(_adapted().named_parameters()) for _ in range(2))
    name = "blocks.0.feed_forward.output.lora_a"
    assert torch.equal(one[name], other[name])
    wide = Transformer(replace(_SHAPE, hidden=4096))
    adapt(wide, replace(_CONFIG, lora_rank=16))
    initialise_adapters(wide, seed=1, layers=2)
    spread = dict(wide.named_parameters())[name].std().item()
    assert spread == pytest.approx((3 * 4096) ** -0.5, rel=0.02)


def test_merged_matrices_compute_what_both_compute() -> None:
    model = _adapted()
    _with_noise(model)
    plain = Transformer(_SHAPE)
    weights = dict(base_parameters(model))
    for name, layer in adapted_layers(model):
        weights[f"{name}.weight"] = nn.Parameter(
            merged(layer.weight, layer.lora_a, layer.lora_b, scale=layer.scale)
        )
    plain.load_state_dict(weights)
    with torch.no_grad():
        assert (plain(_TOKENS) - model(_TOKENS)).abs().max() < 1e-6


def test_only_the_targets_have_adapters() -> None:
    model = _adapted(replace(_CONFIG, lora_targets="v_proj,down_proj"))
    names = {name.partition(".")[2].partition(".")[2] for name, _ in adapted_layers(model)}
    assert names == {"attention.value", "feed_forward.output"}


@pytest.mark.parametrize(
    ("precision", "frozen"), [(Precision.BF16, torch.bfloat16), (Precision.FP32, torch.float32)]
)
def test_what_is_frozen_is_kept_as_it_is_computed_with(precision: Precision, frozen: torch.dtype) -> None:
    model = _adapted(replace(_CONFIG, precision=precision))
    assert {one.dtype for one in base_parameters(model).values()} == {frozen}
    assert {one.dtype for one in trained_part(model).parameters()} == {torch.float32}


def test_without_adapters_the_model_is_what_is_trained() -> None:
    model = Transformer(_SHAPE)
    assert trained_part(model) is model


def test_a_head_that_is_the_embedding_is_held_once() -> None:
    model = Transformer(replace(_SHAPE, tied_head=True))
    found = trained_part(model)
    assert found.state_dict().keys() == model.state_dict().keys() - {"head.weight"}
    assert dict(found.named_parameters())["embedding.weight"] is model.head.weight


def _without(tensor: Tensor) -> int:
    """Operations of a token that the first block saves: its input needs no gradient."""
    return 2 * tensor.numel()


def test_operations_of_a_token_are_those_that_torch_counts() -> None:
    model, counter = _adapted(), FlopCounterMode(display=False)
    with counter, sdpa_kernel(SDPBackend.MATH):
        model(_TOKENS).sum().backward()
    layers = dict(adapted_layers(model))
    first = [layers[f"blocks.0.attention.{name}"] for name in ("query", "key", "value")]
    saved = sum(_without(one.weight) + _without(one.lora_a) for one in first)
    assert counter.get_total_flops() == 32 * (flops_per_token(_SHAPE, _CONFIG.lora) - saved)


def test_an_adapter_has_the_names_and_the_config_that_peft_has() -> None:
    assert peft_name("blocks.3.attention.query.lora_a") == (
        "base_model.model.model.layers.3.self_attn.q_proj.lora_A.weight"
    )
    config = adapter_config(Lora(rank=4, alpha=8.0, targets=("q_proj",)), base="channel:weights")
    assert (config["r"], config["lora_alpha"], config["target_modules"]) == (4, 8.0, ["q_proj"])


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param(["--lora_rank=8"], "lora_rank needs init_from", id="beside nothing"),
        pytest.param(
            ["--lora_rank=8", "--init_from=x", "--lora_targets=q_proj,head"],
            "lora_targets must be all or some of q_proj, .*, down_proj, not 'head'",
            id="no such matrix",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(arguments: list[str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        read_config(arguments, {})


def test_alpha_is_twice_the_rank_unless_it_is_given() -> None:
    config = read_config(["--lora_rank=8", "--init_from=x", "--lora_targets=o_proj,q_proj"], {})
    assert config.lora == Lora(rank=8, alpha=16.0, targets=("q_proj", "o_proj"))
    assert str(config.lora) == "rank 8, alpha 16, on q_proj, o_proj"
