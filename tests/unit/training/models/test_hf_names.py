import pytest
import torch

from training.models.hf_names import differences, hf_config, hf_name, is_weight
from training.models.llama import Transformer
from training.presets import PRESETS, ModelShape

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


def test_the_config_is_that_of_llama_2() -> None:
    config = hf_config(PRESETS["llama2-70b"], dtype="float32")
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
    assert differences(PRESETS["llama2-70b"], config) == []


@pytest.mark.parametrize(
    ("said", "told"),
    [
        pytest.param({}, [], id="what is not said is as usual"),
        pytest.param({"rope_scaling": None, "bos_token_id": 1}, [], id="what does not matter"),
        pytest.param({"rms_norm_eps": 1e-6}, ["rms_norm_eps is 1e-06, the preset has 1e-05"], id="norms"),
        pytest.param({"tie_word_embeddings": True}, ["tie_word_embeddings is True, the preset has False"],
                     id="one matrix for both ends"),
        pytest.param({"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}, [],
                     id="positions as transformers 5 writes them"),
        pytest.param(
            {"rope_parameters": {"rope_type": "llama3", "rope_theta": 500000.0}},
            ["rope_theta is 500000.0, the preset has 10000.0", "rope_scaling is llama3, the preset has None"],
            id="positions of Llama 3",
        ),
    ],
)  # fmt: skip
def test_what_the_shapes_of_weights_do_not_show_is_compared(said: dict[str, object], told: list[str]) -> None:
    assert differences(PRESETS["llama2-7b"], said) == told


def test_a_table_that_follows_from_the_shape_is_no_weight() -> None:
    assert not is_weight("model.layers.0.self_attn.rotary_emb.inv_freq")
    assert is_weight("model.norm.weight")
