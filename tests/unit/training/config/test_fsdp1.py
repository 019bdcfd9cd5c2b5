from pathlib import Path

import pytest

from training.config import read_config
from training.config.choices import Precision, ReduceDtype, Strategy
from training.config.reader import translated
from training.errors import ConfigError


@pytest.mark.parametrize(
    ("texts", "ours"),
    [
        pytest.param({"sharding_strategy": "FULL_SHARD"}, {"strategy": "full_shard"}, id="FSDP1's word"),
        pytest.param(
            {"sharding_strategy": "ShardingStrategy._HYBRID_SHARD_ZERO2"},
            {"strategy": "hybrid_shard_zero2"},
            id="as Python writes it",
        ),
        pytest.param({"fsdp_sharding_strategy": "3"}, {"strategy": "no_shard"}, id="Accelerate's number"),
        pytest.param({"strategy": "SHARD_GRAD_OP"}, {"strategy": "shard_grad_op"}, id="our name, its word"),
        pytest.param({"forward_prefetch": "True"}, {"prefetch_blocks": "1"}, id="forward_prefetch"),
        pytest.param({"forward_prefetch": "0"}, {"prefetch_blocks": "0"}, id="no forward_prefetch"),
        pytest.param({"fsdp_offload_params": "true"}, {"cpu_offload": "true"}, id="offload_params"),
        pytest.param({"mixed_precision": "no"}, {"precision": "fp32"}, id="no mixed precision"),
        pytest.param({"param_dtype": "torch.bfloat16"}, {"precision": "bf16"}, id="param_dtype"),
        pytest.param({"reduce_dtype": "torch.float32"}, {"reduce_dtype": "fp32"}, id="reduce_dtype"),
        pytest.param(
            {"fsdp_activation_checkpointing": "true"},
            {"activation_checkpointing": "true"},
            id="its prefix",
        ),
    ],
)
def test_options_of_fsdp1_are_turned_into_ours_and_said(texts: dict[str, str], ours: dict[str, str]) -> None:
    found, said = translated(texts)
    assert found == ours
    ((old, old_text), (new, new_text)) = (*texts.items(), *ours.items())
    assert said == [f"{old}={old_text}: {new}={new_text}"]


@pytest.mark.parametrize(
    "name",
    [
        "auto_wrap_policy",
        "transformer_layer_cls_to_wrap",
        "min_num_params",
        "backward_prefetch",
        "limit_all_gathers",
        "use_orig_params",
        "flatten_parameters",
        "sync_module_states",
        "cpu_ram_efficient_loading",
        "param_init_fn",
        "device_id",
        "buffer_dtype",
        "cast_forward_inputs",
        "cast_root_forward_inputs",
        "keep_low_precision_grads",
        "state_dict_type",
    ],
)
def test_what_fsdp2_has_built_in_is_said_and_changes_nothing(name: str) -> None:
    for written in (name, f"fsdp_{name}"):
        ours, (line,) = translated({written: "x", "steps": "3"})
        assert ours == {"steps": "3"}
        assert line.startswith(f"{written}=x: ")


def test_our_own_options_pass_without_a_word() -> None:
    texts = {"strategy": "full_shard", "reduce_dtype": "bf16", "steps": "3", "cpu_offload": "true"}
    assert translated(texts) == (texts, [])


def test_two_names_for_one_option_must_agree() -> None:
    agreeing = {"strategy": "no_shard", "sharding_strategy": "NO_SHARD"}
    assert translated(agreeing)[0] == {"strategy": "no_shard"}
    with pytest.raises(ConfigError, match="sharding_strategy=FULL_SHARD contradicts strategy=no_shard"):
        translated({"strategy": "no_shard", "sharding_strategy": "FULL_SHARD"})


def test_a_word_that_is_none_of_fsdp1s_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"strategy must be one of full_shard, .* not 'sharded'"):
        read_config(["--sharding_strategy", "sharded"], {})
    with pytest.raises(
        ConfigError, match=r"precision must be one of auto, fp32, bf16, bf16_pure, float8, .*, not 'fp16'"
    ):
        read_config(["--mixed_precision", "fp16"], {})


@pytest.mark.parametrize(
    "option", ["--mixed_precision=fp16", "--param_dtype=torch.float16", "--reduce_dtype=half"]
)
def test_fp16_is_refused_with_the_page_that_shows_why(option: str) -> None:
    with pytest.raises(ConfigError, match=r"bf16 does not; docs/training/precision\.md#why-not-fp16"):
        read_config([option], {})


def test_an_encoder_with_a_decoder_is_refused_with_the_way_that_it_has(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "t5", "d_model": 512, "num_layers": 6}')
    with pytest.raises(ConfigError) as caught:
        read_config([f"--model_config={tmp_path}"], {})
    (problem,) = caught.value.problems
    assert problem.startswith(
        "config.json: model_type 't5' is an encoder with a decoder, which is not trained here: "
    )
    assert problem.endswith("docs/training/scripts.md")
    with pytest.raises(
        ConfigError, match=r"not 't5-base', which is an encoder with a decoder, .*scripts\.md"
    ):
        read_config(["--preset=t5-base"], {})


def test_a_whole_fsdp1_command_line_trains_as_it_says() -> None:
    line = (
        "--sharding_strategy HYBRID_SHARD --mixed_precision bf16 --reduce_dtype torch.bfloat16 "
        "--backward_prefetch BACKWARD_PRE --forward_prefetch true --limit_all_gathers true "
        "--use_orig_params true --sync_module_states true --activation_checkpointing true"
    )
    config = read_config(line.split(), {})
    assert (config.strategy, config.precision) == (Strategy.HYBRID_SHARD, Precision.BF16)
    assert (config.reduce_dtype, config.prefetch_blocks) == (ReduceDtype.BF16, 1)
    assert len(config.translations) == 8
