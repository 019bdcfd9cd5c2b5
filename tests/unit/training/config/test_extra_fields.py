"""Fields that tools leave in a config.json: noted where nothing reads them, refused where they count."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.training.config.test_config_json import LLAMA_3_2, QWEN_2
from training.config import read_config
from training.config.config_json import read_shape, shape_of
from training.errors import ConfigError

SMOLLM = {"is_llama_config": True, "rope_interleaved": False}
JAVASCRIPT = {"transformers.js_config": {"kv_cache_dtype": {"fp16": "float16", "q4f16": "float16"}}}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 512}
"""Of SmolLM2's files, of TRL's, and of DeepSeek's."""


def _written(folder: Path, more: dict[str, Any]) -> Path:
    (folder / "config.json").write_text(json.dumps(LLAMA_3_2 | more))
    return folder


@pytest.mark.parametrize(
    ("more", "noted"),
    [
        pytest.param({}, "", id="plain"),
        pytest.param(SMOLLM, "is_llama_config true", id="SmolLM2"),
        pytest.param(
            SMOLLM | JAVASCRIPT, "is_llama_config true, transformers.js_config {", id="transformers.js"
        ),
        pytest.param({"neftune_noise_alpha": 5, "use_cache": False}, "neftune_noise_alpha 5", id="TRL"),
        pytest.param(
            {"rope_scaling": {**YARN, "attn_factor": 0.88}}, "rope_scaling.attn_factor 0.88", id="attn_factor"
        ),
        pytest.param({"_attn_implementation_autoset": True}, "_attn_implementation_autoset true", id="4.46"),
        pytest.param({"unsloth_version": "1", "unsloth_new": 1}, "unsloth_new 1", id="unsloth"),
        pytest.param({"max_seq_length": 2048, "padding_side": "right"}, "max_seq_length 2048", id="lengths"),
        pytest.param({"do_sample": True, "temperature": 0.6, "top_p": 0.9}, "", id="how texts are generated"),
        pytest.param({"pruned_heads": {}, "add_cross_attention": False}, "", id="what is off"),
    ],
)
def test_S10_fields_that_change_nothing_are_read_with_a_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: dict[str, Any], noted: str
) -> None:
    plain = LLAMA_3_2 | ({"rope_scaling": YARN} if "rope_scaling" in more else {})
    folder = _written(tmp_path, more)
    assert read_shape(folder, option="model_config") == shape_of(plain)
    said = capsys.readouterr().err
    if noted:
        assert said.startswith(f"note: {folder / 'config.json'}: not read, as in transformers: {noted}")
    assert (said == "") is (noted == "")


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"rope_interleaved": True}, "rope_interleaved true: not known here"),
        ({"attn_factor": 0.88}, "attn_factor 0.88: not known here"),
        ({"no_rope_layers": [1, 0]}, "no_rope_layers [1, 0]: not known here"),
        ({"resid_pdrop": 0.1}, "resid_pdrop 0.1: not known here"),
        ({"num_local_experts": 8}, "num_local_experts 8: not known here"),
        ({"attention_multiplier": 0.5}, "attention_multiplier 0.5: not known here"),
        ({"pruned_heads": {"0": [1]}}, 'pruned_heads {"0": [1]}: not known here'),
        ({"quantization": {"bits": 4}}, "quantization is of quantised weights"),
        ({"rope_scaling": {**YARN, "mrope_section": [1]}}, "rope_scaling.mrope_section [1]: not known here"),
    ],
)
def test_C38_a_field_that_would_change_results_stays_refused(
    tmp_path: Path, more: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        read_shape(_written(tmp_path, SMOLLM | more), option="model_config")
    assert [
        one.partition("; ")[0].removeprefix("config.json: ")[: len(problem)] for one in refused.value.problems
    ] == [problem]


def test_C38_one_rank_notes_it_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for rank in ("0", "1", "2"):
        monkeypatch.setenv("RANK", rank)
        (folder := tmp_path / rank).mkdir()
        (folder / "config.json").write_text(json.dumps(QWEN_2 | SMOLLM))
        for _ in range(2):
            read_config([f"--model_config={folder}"], {})
    assert capsys.readouterr().err.count("is_llama_config") == 1
