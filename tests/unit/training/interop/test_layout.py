from dataclasses import replace
from typing import Any

import pytest
import torch

from training.config.decoder_layout import config_of, hf_name, is_weight
from training.config.decoder_shape import PRESETS, Family, ModelShape, Rope, RopeKind
from training.interop import layout_of
from training.models.transformer import Transformer

_SMALL = ModelShape(layers=1, width=8, heads=2, kv_heads=1, hidden=12, vocabulary=32, sequence_length=16)


def test_every_parameter_has_the_name_that_llama_has_at_hugging_face() -> None:
    with torch.device("meta"):
        model = Transformer(_SMALL)
    assert {hf_name(name): tuple(one.shape) for name, one in model.named_parameters()} == {
        "model.embed_tokens.weight": (32, 8),
        "model.layers.0.input_layernorm.weight": (8,),
        "model.layers.0.self_attn.q_proj.weight": (8, 8),
        "model.layers.0.self_attn.k_proj.weight": (4, 8),
        "model.layers.0.self_attn.v_proj.weight": (4, 8),
        "model.layers.0.self_attn.o_proj.weight": (8, 8),
        "model.layers.0.post_attention_layernorm.weight": (8,),
        "model.layers.0.mlp.gate_proj.weight": (12, 8),
        "model.layers.0.mlp.up_proj.weight": (12, 8),
        "model.layers.0.mlp.down_proj.weight": (8, 12),
        "model.norm.weight": (8,),
        "lm_head.weight": (32, 8),
    }


def test_every_parameter_of_the_other_families_has_its_name_there() -> None:
    shape = replace(
        _SMALL, qkv_bias=True, output_bias=True, feed_forward_bias=True, head_norms=True, tied_head=True
    )
    with torch.device("meta"):
        plain = {hf_name(name) for name, _ in Transformer(_SMALL).named_parameters()}
        found = {hf_name(name) for name, _ in Transformer(shape).named_parameters()}
    assert plain - found == {"lm_head.weight"}
    assert found - plain == {
        "model.layers.0.self_attn.q_proj.bias",
        "model.layers.0.self_attn.k_proj.bias",
        "model.layers.0.self_attn.v_proj.bias",
        "model.layers.0.self_attn.o_proj.bias",
        "model.layers.0.self_attn.q_norm.weight",
        "model.layers.0.self_attn.k_norm.weight",
        "model.layers.0.mlp.gate_proj.bias",
        "model.layers.0.mlp.up_proj.bias",
        "model.layers.0.mlp.down_proj.bias",
    }


def test_the_config_is_that_of_llama_2() -> None:
    config = config_of(PRESETS["llama2-70b"], dtype="float32")
    assert config == {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 8192,
        "intermediate_size": 28672,
        "num_hidden_layers": 80,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "vocab_size": 32000,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "rope_theta": 10_000.0,
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": False,
        "max_position_embeddings": 4096,
        "torch_dtype": "float32",
    }


def test_models_that_compute_the_same_have_no_differences_whatever_they_are_called() -> None:
    ours = PRESETS["llama2-7b"]
    theirs = replace(ours, family=Family.MISTRAL, positions=131_072, sequence_length=8)
    assert layout_of(ours).differences(theirs, new_head=False) == []


@pytest.mark.parametrize(
    ("theirs", "told"),
    [
        pytest.param({"norm_epsilon": 1e-6}, "rms_norm_eps is 1e-06, the model has 1e-05", id="norms"),
        pytest.param({"heads": 64}, "num_attention_heads is 64, the model has 32", id="heads"),
        pytest.param(
            {"tied_head": True},
            "tie_word_embeddings is True, the model has False",
            id="one matrix for both ends",
        ),
        pytest.param(
            {"rope": Rope(theta=5e5, kind=RopeKind.LINEAR, factor=2.0)},
            "rope is theta 500000.0, kind linear, factor 2.0, the model has the default",
            id="positions",
        ),
        pytest.param({"window": 8, "windowed_layers": (1,)}, "window is 8, the model has 0", id="windows"),
    ],
)
def test_what_the_shapes_of_weights_do_not_show_is_compared(theirs: dict[str, Any], told: str) -> None:
    ours = PRESETS["llama2-7b"]
    found = layout_of(ours).differences(replace(ours, head_width=128, **theirs), new_head=False)
    assert found[0] == told


def test_a_table_that_follows_from_the_shape_is_no_weight() -> None:
    assert not is_weight("model.layers.0.self_attn.rotary_emb.inv_freq")
    assert is_weight("model.norm.weight")
