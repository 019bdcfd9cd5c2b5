"""The names and the config.json of Hugging Face's Llama, in which weights leave and enter this program.

Both sides turn the pairs (i, i + half) of a head, so the numbers are the same and only names differ.
Source: transformers, models/llama/modeling_llama.py and configuration_llama.py.
"""

import re
from collections.abc import Mapping

from training.models.llama import NORM_EPSILON, ROPE_BASE
from training.presets import ModelShape

_OUTSIDE = {
    "embedding.weight": "model.embed_tokens.weight",
    "norm.weight": "model.norm.weight",
    "head.weight": "lm_head.weight",
}
_IN_BLOCK = {
    "attention_norm": "input_layernorm",
    "attention.query": "self_attn.q_proj",
    "attention.key": "self_attn.k_proj",
    "attention.value": "self_attn.v_proj",
    "attention.output": "self_attn.o_proj",
    "feed_forward_norm": "post_attention_layernorm",
    "feed_forward.gate": "mlp.gate_proj",
    "feed_forward.up": "mlp.up_proj",
    "feed_forward.output": "mlp.down_proj",
}
_BLOCK = re.compile(r"blocks\.(\d+)\.(.+)\.weight")
_COMPUTED = ".rotary_emb.inv_freq"
"""Old checkpoints of Llama have this table beside the weights; it follows from the shape."""


def hf_name(name: str) -> str:
    """Of a parameter of ``Transformer``."""
    if found := _BLOCK.fullmatch(name):
        return f"model.layers.{found[1]}.{_IN_BLOCK[found[2]]}.weight"
    return _OUTSIDE[name]


def is_weight(name: str) -> bool:
    """Whether a tensor of a Llama checkpoint is trained."""
    return not name.endswith(_COMPUTED)


def hf_config(shape: ModelShape, *, dtype: str) -> dict[str, object]:
    """The config.json that makes ``LlamaForCausalLM`` compute what ``Transformer`` computes."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        **_computed_by(shape),
        "max_position_embeddings": shape.sequence_length,
        "torch_dtype": dtype,
    }


def differences(shape: ModelShape, config: Mapping[str, object]) -> list[str]:
    """What a config.json says that ``Transformer`` computes otherwise; the weights' shapes do not show it.

    What it does not say is as transformers' LlamaConfig has it, which is as here.
    """
    said = {**_rope(config), **config}
    ours = {**_computed_by(shape), "rope_scaling": None}
    return [
        f"{key} is {said[key]}, the preset has {value}"
        for key, value in ours.items()
        if key in said and said[key] != value
    ]


def _rope(config: Mapping[str, object]) -> dict[str, object]:
    """Transformers 5 keeps what concerns rotary positions in a mapping of its own."""
    inner = config.get("rope_parameters")
    if not isinstance(inner, Mapping):
        return {}
    scaled = inner.get("rope_type", "default") != "default"
    told = {"rope_scaling": inner["rope_type"]} if scaled else {}
    return {**told, **({"rope_theta": inner["rope_theta"]} if "rope_theta" in inner else {})}


def _computed_by(shape: ModelShape) -> dict[str, object]:
    return {
        "hidden_size": shape.width,
        "intermediate_size": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_width,
        "vocab_size": shape.vocabulary,
        "hidden_act": "silu",
        "rms_norm_eps": NORM_EPSILON,
        "rope_theta": ROPE_BASE,
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": False,
    }
