"""A config.json of Hugging Face: what is read out of it, and all that is refused."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from training.config import read_config
from training.config.config_json import shape_of
from training.config.decoder_layout import config_of
from training.config.decoder_shape import PRESETS, Family, Rope, RopeKind
from training.errors import ConfigError

LLAMA_2: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "bos_token_id": 1,
    "eos_token_id": 2,
    "hidden_act": "silu",
    "hidden_size": 4096,
    "initializer_range": 0.02,
    "intermediate_size": 11008,
    "max_position_embeddings": 4096,
    "model_type": "llama",
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 32,
    "pretraining_tp": 1,
    "rms_norm_eps": 1e-05,
    "rope_scaling": None,
    "tie_word_embeddings": False,
    "torch_dtype": "float16",
    "transformers_version": "4.31.0.dev0",
    "use_cache": True,
    "vocab_size": 32000,
}
"""As files of transformers 4 say it."""
LLAMA_3_2: dict[str, Any] = LLAMA_2 | {
    "attention_bias": False,
    "attention_dropout": 0.0,
    "eos_token_id": [128001, 128008, 128009],
    "head_dim": 64,
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "max_position_embeddings": 131072,
    "mlp_bias": False,
    "num_hidden_layers": 16,
    "num_key_value_heads": 8,
    "rope_scaling": {
        "factor": 32.0,
        "high_freq_factor": 4.0,
        "low_freq_factor": 1.0,
        "original_max_position_embeddings": 8192,
        "rope_type": "llama3",
    },
    "rope_theta": 500000.0,
    "tie_word_embeddings": True,
    "vocab_size": 128256,
}
QWEN_2: dict[str, Any] = LLAMA_2 | {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "max_window_layers": 28,
    "sliding_window": 131072,
    "use_mrope": False,
    "use_sliding_window": False,
    "rope_theta": 1000000.0,
}
QWEN_3: dict[str, Any] = QWEN_2 | {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "attention_bias": False,
    "sliding_window": None,
}
MISTRAL: dict[str, Any] = LLAMA_2 | {
    "architectures": ["MistralForCausalLM"],
    "model_type": "mistral",
    "sliding_window": 4096,
    "max_position_embeddings": 32768,
}
_KINDS = "is not trained here; one of default, linear, dynamic, yarn, llama3 is"
_UNKNOWN = "not known here; remove what changes nothing of the model"
YARN = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}


def test_llama_2_is_the_preset_of_its_name() -> None:
    assert shape_of(LLAMA_2) == replace(PRESETS["llama2-7b"], positions=4096)


def test_llama_3_2_has_its_rope_a_tied_head_and_trains_on_4096_tokens_unless_told_otherwise() -> None:
    shape = shape_of(LLAMA_3_2)
    assert (shape.head_width, shape.kv_heads, shape.tied_head, shape.vocabulary) == (64, 8, True, 128_256)
    assert (shape.positions, shape.sequence_length) == (131_072, 4096)
    assert shape.rope == Rope(
        theta=500_000.0,
        kind=RopeKind.LLAMA3,
        factor=32.0,
        original_positions=8192,
        low_frequency=1.0,
        high_frequency=4.0,
    )


def test_qwen_2_has_biases_of_queries_keys_and_values_alone_and_no_window_unless_it_is_switched_on() -> None:
    shape = shape_of(QWEN_2)
    assert (shape.qkv_bias, shape.output_bias, shape.feed_forward_bias, shape.head_norms) == (True, 0, 0, 0)
    assert (shape.window, shape.windowed_layers) == (0, ())
    used = shape_of(QWEN_2 | {"use_sliding_window": True, "max_window_layers": 30})
    assert (used.window, used.windowed_layers) == (131_072, (30, 31))


def test_qwen_3_has_norms_of_heads_and_their_width_of_its_own() -> None:
    shape = shape_of(QWEN_3)
    assert (shape.head_norms, shape.head_width, shape.qkv_bias) == (True, 128, False)
    assert shape_of(QWEN_3 | {"head_dim": 96, "attention_bias": True}).output_bias


@pytest.mark.parametrize(
    ("said", "window"),
    [
        pytest.param({}, 4096, id="as it says"),
        pytest.param({"sliding_window": None}, 0, id="none"),
        pytest.param({"sliding_window": 8}, 8, id="a short one"),
    ],
)
def test_every_layer_of_mistral_is_windowed_or_none(said: dict[str, Any], window: int) -> None:
    shape = shape_of(MISTRAL | said)
    assert shape.window == window
    assert shape.windowed_layers == (tuple(range(32)) if window else ())


@pytest.mark.parametrize(
    "said",
    [
        pytest.param({"rope_theta": 1e6, "rope_scaling": YARN}, id="transformers 4"),
        pytest.param(
            {"rope_theta": 1e6, "rope_scaling": {**YARN, "rope_type": "yarn"}}, id="both words for it"
        ),
        pytest.param(
            {"rope_parameters": {**YARN, "rope_type": "yarn", "rope_theta": 1e6}, "rope_scaling": None},
            id="transformers 5",
        ),
    ],
)
def test_positions_are_read_in_the_spellings_of_transformers_4_and_5(said: dict[str, Any]) -> None:
    rope = shape_of(QWEN_2 | said).rope
    assert (rope.kind, rope.theta, rope.factor, rope.original_positions) == (RopeKind.YARN, 1e6, 4.0, 32_768)
    assert rope.attention_factor == pytest.approx(1.1386294)


@pytest.mark.parametrize(
    "config", [LLAMA_2, LLAMA_3_2, QWEN_2, QWEN_3, MISTRAL, QWEN_2 | {"rope_scaling": YARN}]
)
def test_what_is_written_reads_as_the_same_shape(config: dict[str, Any]) -> None:
    shape = shape_of(config)
    assert shape_of(json.loads(json.dumps(config_of(shape, dtype="bfloat16")))) == shape


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        pytest.param({"num_hidden_layers": None}, "num_hidden_layers is missing", id="missing"),
        pytest.param({"vocab_size": 0}, "vocab_size must be a whole number from 1", id="too small"),
        pytest.param({"hidden_size": 4096.5}, "hidden_size must be a whole number from 1", id="a fraction"),
        pytest.param({"hidden_size": True}, "hidden_size must be a whole number", id="no number"),
        pytest.param(
            {"num_hidden_layers": 10**9},
            "num_hidden_layers must be a whole number from 1 to 10000",
            id="too many",
        ),
        pytest.param({"rms_norm_eps": 10**400}, "rms_norm_eps must be a number above 0", id="too large"),
        pytest.param(
            {"rms_norm_eps": "small"}, "rms_norm_eps must be a number above 0, not 'small'", id="a word"
        ),
        pytest.param(
            {"num_key_value_heads": 5},
            "num_attention_heads 32 does not divide by num_key_value_heads 5",
            id="groups of queries",
        ),
        pytest.param(
            {"num_attention_heads": 36},
            "hidden_size 4096 does not divide by num_attention_heads 36",
            id="width of heads",
        ),
        pytest.param({"head_dim": 7}, "head_dim must be even", id="odd heads"),
        pytest.param(
            {"tie_word_embeddings": "no"}, "tie_word_embeddings must be true or false, not 'no'", id="truth"
        ),
        pytest.param({"hidden_act": "gelu"}, "hidden_act must be 'silu', not 'gelu'", id="activation"),
        pytest.param({"attention_dropout": 0.1}, "attention_dropout must be 0, not 0.1", id="dropout"),
        pytest.param(
            {"quantization_config": {"bits": 4}}, "quantization_config is of quantised weights", id="bits"
        ),
        pytest.param(
            {"architectures": ["LlamaForSequenceClassification"]}, "architectures must be", id="no decoder"
        ),
        pytest.param({"logit_scale": 0.5}, "logit_scale 0.5: not known here", id="a field of another model"),
        pytest.param(
            {"sliding_window": 512}, "sliding_window 512: not known here", id="a window that Llama has not"
        ),
        pytest.param({"rope_scaling": {"factor": 2.0}}, "rope_scaling.rope_type is missing", id="no kind"),
        pytest.param({"rope_scaling": [2.0]}, "rope_scaling must be an object", id="no object"),
        pytest.param(
            {"rope_scaling": {"type": "longrope", "short_factor": [1], "long_factor": [2]}},
            f"rope_scaling.rope_type 'longrope' {_KINDS}",
            id="unknown kind",
        ),
        pytest.param(
            {"rope_scaling": {"type": "linear", "factor": 0.5}},
            "rope_scaling.factor must be 1 or more, not 0.5",
            id="shrunk",
        ),
        pytest.param(
            {
                "rope_scaling": {
                    "type": "llama3",
                    "factor": 8.0,
                    "low_freq_factor": 4.0,
                    "high_freq_factor": 1.0,
                }
            },
            "rope_scaling.high_freq_factor must be more than low_freq_factor 4.0, not 1.0",
            id="order",
        ),
        pytest.param(
            {"rope_parameters": {"rope_type": "default", "mrope_section": [2, 3]}},
            "rope_parameters.mrope_section [2, 3]: not known here",
            id="positions of images",
        ),
        pytest.param(
            {"rope_parameters": {"full_attention": {"rope_type": "default"}}},
            "rope_parameters.full_attention",
            id="positions by kind of layer",
        ),
        pytest.param(
            {"partial_rotary_factor": 0.5}, "partial_rotary_factor must be 1, not 0.5", id="half a head"
        ),
        pytest.param({"rope_theta": -1}, "rope_theta must be a number above 1, not -1", id="theta"),
    ],
)
def test_what_cannot_be_trained_is_refused_by_its_field(said: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        shape_of(LLAMA_2 | said)
    assert any(one.startswith(problem) for one in refused.value.problems), refused.value.problems


def test_layers_are_windowed_only_where_windows_are_switched_on() -> None:
    kinds = {"layer_types": ["sliding_attention"] * 32}
    assert shape_of(QWEN_3 | kinds | {"use_sliding_window": True, "sliding_window": 9}).window == 9
    with pytest.raises(ConfigError, match="layer_types has sliding_attention, but"):
        shape_of(QWEN_3 | kinds)
    with pytest.raises(ConfigError, match="layer_types must name each of 32 layers"):
        shape_of(QWEN_3 | {"layer_types": ["full_attention"]})


def _refused(tmp_path: Path, config: object, *more: str) -> ConfigError:
    (tmp_path / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))
    with pytest.raises(ConfigError) as refused:
        read_config([f"--model_config={tmp_path}", *more], {})
    return refused.value


def test_mistakes_of_the_file_and_of_the_options_are_one_refusal(tmp_path: Path) -> None:
    mixtral = MISTRAL | {
        "model_type": "mixtral",
        "architectures": ["MixtralForCausalLM"],
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
        "rope_scaling": {"rope_type": "su", "factor": 4.0},
        "sliding_window": None,
        "output_router_logits": False,
    }
    assert _refused(tmp_path, mixtral, "--steps=0").problems == (
        "steps must be a finite number, 1 or more, not 0",
        "config.json: model_type 'mixtral' is not trained here; one of llama, mistral, qwen2, qwen3, vit is",
        f"config.json: rope_scaling.rope_type 'su' {_KINDS}",
        f"config.json: num_experts_per_tok 2, num_local_experts 8: {_UNKNOWN}",
    )


@pytest.mark.parametrize(
    ("text", "problem"), [("{", "is not JSON"), ("[1]", "is not the config.json of a model")]
)
def test_a_file_that_is_no_config_is_refused_by_its_name(tmp_path: Path, text: str, problem: str) -> None:
    assert f"model_config {tmp_path / 'config.json'} {problem}" in str(_refused(tmp_path, text))


def test_a_file_that_is_not_there_is_refused_by_its_name() -> None:
    with pytest.raises(ConfigError, match="model_config /nowhere cannot be read: No such file"):
        read_config(["--model_config=/nowhere"], {})


def test_a_channel_may_hold_the_config_and_the_length_may_be_chosen(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(QWEN_3))
    arguments = ["--model_config=channel:weights", "--sequence_length=8192"]
    config = read_config(arguments, {"SM_CHANNEL_WEIGHTS": str(tmp_path)})
    assert (config.shape.family, config.shape.sequence_length) == (Family.QWEN3, 8192)
    other = read_config([f"--model_config={tmp_path / 'config.json'}"], {})
    assert config.model_name == other.model_name == f"qwen3 {other.shape.fingerprint}"


def test_a_preset_beside_a_config_is_a_contradiction(tmp_path: Path) -> None:
    refused = _refused(tmp_path, QWEN_3, "--preset=tiny")
    assert refused.problems == ("model_config and preset are two models: give one",)
