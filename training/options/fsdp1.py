"""The options of FSDP1 scripts: taken, turned into ours, and said. Nothing is dropped without a word.

The names are those of FSDP1's constructor and of Accelerate, which puts `fsdp_` before them. FSDP2 has most
of them built in. Sources: PyTorch documentation, FullyShardedDataParallel and fully_shard; Accelerate
documentation, FSDP1 vs FSDP2.
"""

from collections.abc import Mapping

from training.errors import ConfigError

_STRATEGIES = {
    "full_shard": "full_shard",
    "shard_grad_op": "shard_grad_op",
    "hybrid_shard": "hybrid_shard",
    "_hybrid_shard_zero2": "hybrid_shard_zero2",
    "hybrid_shard_zero2": "hybrid_shard_zero2",
    "no_shard": "no_shard",
    # Accelerate also takes the numbers.
    "1": "full_shard",
    "2": "shard_grad_op",
    "3": "no_shard",
    "4": "hybrid_shard",
    "5": "hybrid_shard_zero2",
}
_PRECISIONS = {"bf16": "bf16", "bfloat16": "bf16", "fp32": "fp32", "float32": "fp32", "no": "fp32"}
_TRUTHS = {"true": "true", "1": "true", "false": "false", "0": "false"}
_TURNED: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "strategy": ("strategy", _STRATEGIES),
    "sharding_strategy": ("strategy", _STRATEGIES),
    "forward_prefetch": ("prefetch_blocks", {"true": "1", "1": "1", "false": "0", "0": "0"}),
    "offload_params": ("cpu_offload", _TRUTHS),
    "mixed_precision": ("precision", _PRECISIONS),
    "param_dtype": ("precision", _PRECISIONS),
    "reduce_dtype": ("reduce_dtype", _PRECISIONS),
}
"""What an option is called here, and its words; others are handed on, and refused with those there are."""
_UNITS = "each block is gathered by itself, and so are the embedding, and the last norm with the head"
_BUILT_IN = {
    "auto_wrap_policy": _UNITS,
    "transformer_layer_cls_to_wrap": _UNITS,
    "min_num_params": _UNITS,
    "limit_all_gathers": "FSDP2 limits the memory of gathered weights by itself",
    "use_orig_params": "FSDP2 always keeps the original parameters",
    "flatten_parameters": "FSDP2 shards each parameter by itself",
    "sync_module_states": "first weights follow from the seed, so all ranks have the same",
    "cpu_ram_efficient_loading": "each rank reads only its own part of the weights",
    "param_init_fn": "models are made on the meta device and initialised after sharding",
    "device_id": "a rank has the device of its local rank",
    "backward_prefetch": "FSDP2 always gathers the next block before it is needed; "
    "prefetch_blocks sets how many",
    "buffer_dtype": "the model has no buffers; rotary tables are fp32",
    "cast_forward_inputs": "inputs are tokens",
    "cast_root_forward_inputs": "inputs are tokens",
    "keep_low_precision_grads": "sharded gradients have the precision of the weights; "
    "with precision=bf16_pure that is bf16",
    "state_dict_type": "checkpoints are sharded and fit any number of ranks; "
    "export leaves the whole weights at the end",
}


def translated(texts: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The options in our words, and a line for each that was turned or needs none.

    Raises:
        ConfigError: Two options say different things about one.
    """
    ours: dict[str, str] = {}
    said: list[str] = []
    for name, text in texts.items():
        plain = name.removeprefix("fsdp_")
        if plain in _BUILT_IN:
            said.append(f"{name}={text}: {_BUILT_IN[plain]}")
            continue
        new_name, new_text = _turned(plain, text)
        if ours.setdefault(new_name, new_text) != new_text:
            raise ConfigError([f"{name}={text} contradicts {new_name}={ours[new_name]}"])
        if (new_name, new_text) != (name, text):
            said.append(f"{name}={text}: {new_name}={new_text}")
    return ours, said


def _turned(name: str, text: str) -> tuple[str, str]:
    if name not in _TURNED:
        return name, text
    new_name, words = _TURNED[name]
    # Scripts write torch.bfloat16 and ShardingStrategy.FULL_SHARD too.
    return new_name, words.get(text.lower().rpartition(".")[2], text)
