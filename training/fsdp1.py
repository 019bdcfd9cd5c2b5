"""The options of FSDP1 scripts: taken, turned into ours, and said. Nothing is dropped without a word.

FSDP2 has most of them built in (PyTorch documentation, torch.distributed.fsdp.fully_shard).
"""

from collections.abc import Mapping

_STRATEGIES = {
    "FULL_SHARD": "full_shard",
    "SHARD_GRAD_OP": "shard_grad_op",
    "HYBRID_SHARD": "hybrid_shard",
    "_HYBRID_SHARD_ZERO2": "hybrid_shard_zero2",
    "HYBRID_SHARD_ZERO2": "hybrid_shard_zero2",
    "NO_SHARD": "no_shard",
}
_BUILT_IN = {
    "limit_all_gathers": "FSDP2 limits the memory of gathered weights by itself",
    "use_orig_params": "FSDP2 always keeps the original parameters",
    "sync_module_states": "first weights follow from the seed, so all ranks have the same",
    "backward_prefetch": "FSDP2 always gathers the next block before it is needed; "
    "prefetch_blocks sets how many",
    "param_init_fn": "models are made on the meta device and initialised after sharding",
    "flatten_parameters": "FSDP2 shards each parameter by itself",
}


def translated(texts: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The options in our words, and a line for each that was turned or needs none."""
    ours: dict[str, str] = {}
    said: list[str] = []
    for name, text in texts.items():
        if name in _BUILT_IN:
            said.append(f"{name}={text}: {_BUILT_IN[name]}")
        elif name in {"sharding_strategy", "strategy"} and text.upper() in _STRATEGIES:
            ours["strategy"] = _STRATEGIES[text.upper()]
            if (name, text) != ("strategy", ours["strategy"]):
                said.append(f"{name}={text}: strategy={ours['strategy']}")
        elif name == "sharding_strategy":
            ours["strategy"] = text  # refused with the names there are
        elif name == "forward_prefetch" and text.lower() in {"true", "false"}:
            ours["prefetch_blocks"] = "1" if text.lower() == "true" else "0"
            said.append(f"{name}={text}: prefetch_blocks={ours['prefetch_blocks']}")
        else:
            ours[name] = text
    return ours, said
