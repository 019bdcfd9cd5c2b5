"""Layout of Hugging Face's decoders: the names of their weights, and the config.json beside them.

Both programs rotate the pairs (i, i + half) of a head, so the numbers are the same and only names differ.
Source: transformers, models/llama/modeling_llama.py and its like for Mistral, Qwen2 and Qwen3.
"""

import re

from training.config.decoder_shape import Family, Lora, ModelShape, Rope, RopeKind

CONFIG = "config.json"
CLASSES = {
    Family.LLAMA: "LlamaForCausalLM",
    Family.MISTRAL: "MistralForCausalLM",
    Family.QWEN2: "Qwen2ForCausalLM",
    Family.QWEN3: "Qwen3ForCausalLM",
}
EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"
LONGEST = "max_position_embeddings"
PROJECTIONS = {
    "q_proj": "attention.query",
    "k_proj": "attention.key",
    "v_proj": "attention.value",
    "o_proj": "attention.output",
    "gate_proj": "feed_forward.gate",
    "up_proj": "feed_forward.up",
    "down_proj": "feed_forward.output",
}
"""Matrices of a block: Hugging Face's name and the name in ``Transformer``."""
_PARTS = {"attention": "self_attn", "feed_forward": "mlp"}
_IN_BLOCK = {ours: f"{_PARTS[ours.partition('.')[0]]}.{theirs}" for theirs, ours in PROJECTIONS.items()} | {
    "attention_norm": "input_layernorm",
    "attention.query_norm": "self_attn.q_norm",
    "attention.key_norm": "self_attn.k_norm",
    "feed_forward_norm": "post_attention_layernorm",
}
_OUTSIDE = {
    "embedding.weight": EMBEDDING,
    "norm.weight": "model.norm.weight",
    "head.weight": HEAD,
}
_BLOCK = re.compile(r"blocks\.(\d+)\.(.+)\.(weight|bias)")
SAME = {
    "width": "hidden_size",
    "hidden": "intermediate_size",
    "layers": "num_hidden_layers",
    "heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "head_width": "head_dim",
    "vocabulary": "vocab_size",
    "norm_epsilon": "rms_norm_eps",
    "tied_head": "tie_word_embeddings",
}
"""Fields of a shape that a config.json has with the same meaning, and their names there."""
ADAPTERS, ADAPTER_CONFIG = "adapter_model.safetensors", "adapter_config.json"
_MATRICES = {"lora_a": "lora_A", "lora_b": "lora_B"}
_COMPUTED = ".rotary_emb.inv_freq"
"""Ending of a table's name that old checkpoints of Llama have; the table follows from the shape."""


def hf_name(name: str) -> str:
    """Return Hugging Face's name for a parameter of ``Transformer``."""
    if block := _BLOCK.fullmatch(name):
        return f"model.layers.{block[1]}.{_IN_BLOCK[block[2]]}.{block[3]}"
    return _OUTSIDE[name]


def peft_name(name: str) -> str:
    """Return PEFT's name for a parameter of an adapter."""
    module, _, matrix = name.rpartition(".")
    there = hf_name(f"{module}.weight").removesuffix(".weight")
    return f"base_model.model.{there}.{_MATRICES[matrix]}.weight"


def adapter_config(lora: Lora, *, base: str) -> dict[str, object]:
    """Return the adapter_config.json of PEFT; fields that it leaves out have PEFT's defaults.

    Args:
        lora: Rank, scale and targets of the adapters.
        base: Name or path of the model that they were trained beside.
    """
    return {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base,
        "r": lora.rank,
        "lora_alpha": lora.alpha,
        "lora_dropout": 0.0,
        "target_modules": list(lora.targets),
        "bias": "none",
        "inference_mode": True,
    }


def is_weight(name: str) -> bool:
    """Tell whether a tensor of a checkpoint is a trained weight."""
    return not name.endswith(_COMPUTED)


def config_of(shape: ModelShape, *, dtype: str) -> dict[str, object]:
    """Return the config.json with which transformers computes the same as this shape.

    Args:
        shape: Shape of the model.
        dtype: Type of the exported weights, e.g. bfloat16.
    """
    most = shape.positions if shape.rope.kind is RopeKind.DYNAMIC else 0
    return {
        "architectures": [CLASSES[shape.family]],
        "model_type": shape.family.value,
        **{theirs: getattr(shape, ours) for ours, theirs in SAME.items()},
        "hidden_act": "silu",
        **_rope_config(shape.rope),
        **_biases(shape),
        **_windows(shape),
        LONGEST: most or max(shape.positions, shape.sequence_length),
        "torch_dtype": dtype,
    }


def _rope_config(rope: Rope) -> dict[str, object]:
    scaling: dict[str, object] = {"rope_type": rope.kind.value, "factor": rope.factor}
    if rope.kind in {RopeKind.LLAMA3, RopeKind.YARN}:
        scaling[f"original_{LONGEST}"] = rope.original_positions
    if rope.kind is RopeKind.LLAMA3:
        scaling |= {"low_freq_factor": rope.low_frequency, "high_freq_factor": rope.high_frequency}
    if rope.kind is RopeKind.YARN:
        scaling |= {"beta_slow": rope.beta_slow, "beta_fast": rope.beta_fast, "truncate": rope.truncate}
        scaling |= {"attention_factor": rope.attention_factor}
    return {"rope_theta": rope.theta} | ({} if rope.kind is RopeKind.DEFAULT else {"rope_scaling": scaling})


def _biases(shape: ModelShape) -> dict[str, object]:
    """Return the fields for biases: Qwen2 always has those of queries, keys and values, and Mistral none."""
    match shape.family:
        case Family.LLAMA:
            return {"attention_bias": shape.qkv_bias, "mlp_bias": shape.feed_forward_bias}
        case Family.QWEN3:
            return {"attention_bias": shape.qkv_bias}
        case Family.MISTRAL | Family.QWEN2:
            return {}


def _windows(shape: ModelShape) -> dict[str, object]:
    match shape.family:
        case Family.LLAMA:
            return {}
        case Family.MISTRAL:
            return {"sliding_window": shape.window or None}
        case Family.QWEN2 | Family.QWEN3:
            kinds = [
                "sliding_attention" if layer in shape.windowed_layers else "full_attention"
                for layer in range(shape.layers)
            ]
            used = {"use_sliding_window": True, "sliding_window": shape.window}
            return (used if shape.window else {"use_sliding_window": False}) | {"layer_types": kinds}
