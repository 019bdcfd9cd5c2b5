"""Models of the family come from transformers' files, leave as such, and compute the same on both sides."""

import json
import random
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.integration.training.attempts import Job
from training.config import read_config
from training.config.config_json import read_shape
from training.interop.exporting import export_weights
from training.interop.importing import load_weights
from training.models.transformer import Transformer

pytestmark = pytest.mark.thorough  # transformers takes seconds to import

_SMALL = {
    "hidden_size": 32,
    "intermediate_size": 40,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 61,
    "max_position_embeddings": 32,
}
_LLAMA_3 = {
    "rope_type": "llama3",
    "rope_theta": 5e5,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
}
_YARN = {"rope_type": "yarn", "rope_theta": 1e6, "factor": 4.0, "original_max_position_embeddings": 16}
_WINDOWED = {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1}
_MODELS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "llama 2": ("llama", {"rms_norm_eps": 1e-5}),
    "llama 3.2, tied": (
        "llama",
        {
            "rope_parameters": {**_LLAMA_3, "original_max_position_embeddings": 16},
            "tie_word_embeddings": True,
        },
    ),
    "llama with every bias": ("llama", {"attention_bias": True, "mlp_bias": True}),
    "llama with heads of a width of their own": ("llama", {"head_dim": 12}),
    "llama, linear": (
        "llama",
        {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 2.0}},
    ),
    "llama, dynamic": (
        "llama",
        {"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}},
    ),
    "mistral": ("mistral", {"sliding_window": 6}),
    "mistral without a window": ("mistral", {"sliding_window": None, "head_dim": 10}),
    "qwen 2": ("qwen2", {}),
    "qwen 2, yarn and windows": ("qwen2", {"rope_parameters": _YARN, **_WINDOWED}),
    "qwen 3": ("qwen3", {"head_dim": 16, "tie_word_embeddings": True}),
    "qwen 3 with biases and windows": ("qwen3", {"head_dim": 16, "attention_bias": True, **_WINDOWED}),
}
_SEED, _MORE = 19, 24


def _random_models() -> Iterator[tuple[str, Mapping[str, Any]]]:
    chance = random.Random(_SEED)
    ropes = [
        {"rope_type": "default", "rope_theta": 5e5},
        {**_LLAMA_3, "original_max_position_embeddings": 8},
        _YARN,
        {**_YARN, "truncate": False, "mscale": 0.7, "mscale_all_dim": 1.1},
        {"rope_type": "linear", "rope_theta": 1e4, "factor": 3.0},
        {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 4.0},
    ]
    for number in range(_MORE):
        family = ("llama", "mistral", "qwen2", "qwen3")[number % 4]
        shared, groups, width = chance.choice([1, 2, 3]), chance.choice([1, 2, 4]), chance.choice([4, 8, 10])
        said: dict[str, Any] = {
            "num_key_value_heads": shared,
            "num_attention_heads": shared * groups,
            "hidden_size": shared * groups * width,
            "num_hidden_layers": chance.choice([1, 2, 4]),
            "rms_norm_eps": chance.choice([1e-6, 1e-5]),
            "tie_word_embeddings": chance.random() < 0.5,
            "rope_parameters": dict(chance.choice(ropes)),
        }
        if family != "qwen2":
            said["head_dim"] = chance.choice([width, 2 * width])
        if family in {"llama", "qwen3"}:
            said["attention_bias"] = chance.random() < 0.5
        if family == "mistral":
            said["sliding_window"] = chance.choice([None, 1, 7, 100])
        if family.startswith("qwen"):
            said |= {"use_sliding_window": chance.random() < 0.5, "sliding_window": 3}
            said["max_window_layers"] = chance.choice([0, 1, 2])
        yield family, said


def _theirs(family: str, said: Mapping[str, Any]) -> Any:
    """With weights, norms and biases that are all at random."""
    from transformers import AutoConfig, AutoModelForCausalLM  # noqa: PLC0415  takes seconds

    config = AutoConfig.for_model(family, **{**_SMALL, **said})
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    source = torch.Generator().manual_seed(_SEED)
    with torch.no_grad():
        for one in model.parameters():
            noise = torch.randn(one.shape, generator=source)
            one.copy_(0.1 * noise if one.ndim > 1 else one + 0.2 * noise)
    return model


def _logits(model: Any, tokens: Tensor) -> Tensor:
    with torch.no_grad():
        found = model(tokens)
    logits: Tensor = found if isinstance(found, Tensor) else found.logits
    return logits


def _check(family: str, said: Mapping[str, Any], place: Path, *, length: int) -> None:
    from transformers import AutoModelForCausalLM  # noqa: PLC0415  takes seconds

    theirs = _theirs(family, said)
    theirs.save_pretrained(place / "theirs", max_shard_size="20KB")
    tokens = torch.randint(61, (2, length), generator=torch.Generator().manual_seed(_SEED))
    wanted = _logits(theirs, tokens)

    config = read_config([f"--model_config={place / 'theirs'}"], {})
    ours = Transformer(config.text_shape)
    load_weights(ours, str(place / "theirs"), {})
    assert (_logits(ours, tokens) - wanted).abs().max() <= 1e-5

    export_weights(ours, place / "ours", config.shape, file_bytes=20_000)
    back = AutoModelForCausalLM.from_pretrained(place / "ours", attn_implementation="eager")
    assert type(back) is type(theirs)
    assert (_logits(back, tokens) - wanted).abs().max() <= 1e-5
    assert back.state_dict().keys() == theirs.state_dict().keys()
    assert all(torch.equal(one, back.state_dict()[name]) for name, one in theirs.state_dict().items())
    assert read_shape(place / "ours", option="model_config") == config.shape


@pytest.mark.parametrize("name", _MODELS)
def test_a_model_computes_here_and_there_the_same(name: str, tmp_path: Path) -> None:
    family, said = _MODELS[name]
    for length in (7, 32):
        _check(family, said, tmp_path / str(length), length=length)


@pytest.mark.parametrize("number", range(_MORE), ids=lambda number: f"seed {_SEED}, model {number}")
def test_so_do_models_whose_fields_are_drawn_at_random(number: int, tmp_path: Path) -> None:
    family, said = list(_random_models())[number]
    _check(family, said, tmp_path, length=48)


def test_a_model_of_a_config_json_resumes_to_the_last_bit_and_is_left_as_it_came(tmp_path: Path) -> None:
    family, said = _MODELS["qwen 3 with biases and windows"]
    _theirs(family, {**said, "tie_word_embeddings": True, "vocab_size": 256}).save_pretrained(
        tmp_path / "base"
    )
    base = f"--model_config={tmp_path / 'base'} --init_from={tmp_path / 'base'}"
    saved = "--checkpoint_every=2 --checkpoint_async=false"
    told = f"{base} {saved} --precision=fp32 --steps=7 --batch_size=4 --seed=1".split()
    whole, job = Job.under(tmp_path / "whole", *told), Job.under(tmp_path / "job", *told)
    wanted = whole.run()
    assert wanted.exit_code == 0, wanted.errors
    killed = job.run_until(5, signal.SIGKILL, "--min_step_seconds=0.2")
    resumed = job.run()
    assert resumed.exit_code == 0, resumed.errors
    assert min(resumed.losses) in {5, 7}  # the signal may come late
    assert (killed.losses | resumed.losses).items() <= wanted.losses.items()
    left = [(one.root / "model/model.safetensors").read_bytes() for one in (whole, job)]
    assert left[0] == left[1]
    ours = read_shape(job.root / "model", option="model_config")
    assert ours == read_shape(tmp_path / "base", option="model_config")


def test_many_files_have_an_index_that_transformers_follows(tmp_path: Path) -> None:
    _check("qwen2", {}, tmp_path, length=8)
    index = json.loads((tmp_path / "ours/model.safetensors.index.json").read_bytes())
    assert len(set(index["weight_map"].values())) > 1
    assert "lm_head.weight" in index["weight_map"]


def test_the_spelling_of_transformers_4_is_the_same_model(tmp_path: Path) -> None:
    from transformers import AutoConfig  # noqa: PLC0415  takes seconds

    theirs = _theirs("llama", _MODELS["llama 3.2, tied"][1])
    theirs.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_bytes())
    told = config.pop("rope_parameters")
    older = config | {"rope_theta": told.pop("rope_theta"), "rope_scaling": told}
    newer = read_shape(tmp_path, option="model_config")
    (tmp_path / "config.json").write_text(json.dumps(older))
    assert read_shape(tmp_path, option="model_config") == newer
    assert AutoConfig.from_pretrained(tmp_path).rope_parameters == theirs.config.rope_parameters
