from pathlib import Path

import pytest

from training.config import TrainConfig, read_config
from training.config.choices import DebugLevel, Precision
from training.config.environment import debug_variables, directory_of
from training.config.reader import described
from training.errors import ConfigError


def test_without_arguments_every_option_has_its_default() -> None:
    config = read_config([], {})
    assert config == TrainConfig()
    assert config.checkpoint_dir == "/opt/ml/checkpoints"
    assert config.precision is Precision.AUTO


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["--batch_size", "4", "--lr", "0.0001"], id="as SageMaker passes hyperparameters"),
        pytest.param(["--batch-size", "4", "--lr", "1e-4"], id="as people type them"),
        pytest.param(["--batch-size=4", "--lr=1e-4"], id="with an equals sign"),
        pytest.param(["--batch_size", "1", "--lr", "1e-4", "--batch_size", "4"], id="the last one wins"),
    ],
)
def test_every_way_to_write_an_option_is_read(arguments: list[str]) -> None:
    assert read_config(arguments, {}) == TrainConfig(batch_size=4, lr=1e-4)


def test_dashes_in_a_value_stay() -> None:
    config = read_config(["--checkpoint-dir=/my-run/a-b", "--model-dir", "/m-n"], {})
    assert (config.checkpoint_dir, config.model_dir) == ("/my-run/a-b", Path("/m-n"))


def test_sagemakers_directories_are_the_defaults_and_arguments_win() -> None:
    env = {"SM_CHECKPOINT_DIR": "/sm/checkpoints", "SM_MODEL_DIR": "/sm/model"}
    config = read_config(["--model_dir", "/mine"], env)
    assert (config.checkpoint_dir, config.model_dir) == ("/sm/checkpoints", Path("/mine"))


def test_the_sdks_own_hyperparameters_are_ignored() -> None:
    arguments = ["--sagemaker_program", "train.py", "--sagemaker_region", '"us-east-1"']
    assert read_config(arguments, {}) == TrainConfig()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param(["--step", "9"], "unknown option 'step' (did you mean 'steps'?)", id="nearest name"),
        pytest.param(["--steps", "many"], "steps must be a whole number, not 'many'", id="not a number"),
        pytest.param(["--steps", "6.5"], "steps must be a whole number, not '6.5'", id="a fraction"),
        pytest.param(["--steps", "0"], "steps must be a finite number, 1 or more, not 0", id="too small"),
        pytest.param(["--lr", "nan"], "lr must be a finite number, 0 or more, not nan", id="not finite"),
        pytest.param(
            ["--precision", "fp8"],
            "precision must be one of auto, fp32, bf16, bf16_pure, float8, float8_rowwise, float8_emulated, "
            "float8_rowwise_emulated, not 'fp8'",
            id="precision",
        ),
        pytest.param(
            ["--preset", "huge"],
            "preset must be one of tiny, llama-1b, llama2-7b, llama2-13b, llama2-70b, vit-nano, vit-tiny, "
            "vit-small, vit-base, vit-large, vit-huge, vit-giant, vit-gigantic, vit-22b, not 'huge'",
            id="preset",
        ),
        pytest.param(["--steps"], "steps has no value", id="no value at the end"),
        pytest.param(["--seed", "--steps", "3"], "seed has no value", id="no value before another option"),
        pytest.param(["60"], "'60' belongs to no option", id="a value without an option"),
    ],
)
def test_what_is_wrong_is_told(arguments: list[str], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_config(arguments, {})
    assert caught.value.problems == (problem,)


def test_for_a_name_that_is_near_nothing_it_says_where_the_list_is() -> None:
    with pytest.raises(ConfigError) as caught:
        read_config(["--zzzz", "9"], {})
    assert "unknown option 'zzzz' (train.py --help lists them)" in caught.value.problems[0]


def test_all_that_is_wrong_is_told_at_once() -> None:
    arguments = ["--sted", "3", "--lr", "fast", "--preset", "huge", "--seed", "-1", "--log-every"]
    with pytest.raises(ConfigError) as caught:
        read_config(arguments, {})
    assert len(caught.value.problems) == 5


def test_a_long_value_does_not_push_the_other_mistakes_out_of_the_message() -> None:
    with pytest.raises(ConfigError) as caught:
        read_config(["--preset", "x" * 2500, "--" + "y" * 2500, "1", "--steps", "9" * 5000], {})
    assert [len(one) < 250 for one in caught.value.problems] == [True, True, True]
    assert "preset must be one of" in str(caught.value)


def test_help_names_every_option_with_its_default() -> None:
    lines = described(TrainConfig).splitlines()
    assert "--steps (60): steps of the whole job, over all attempts" in lines
    assert "--checkpoint_async (true): train on while a checkpoint is written" in lines
    names = [line.partition(" ")[0].removeprefix("--") for line in lines]
    assert names == list(TrainConfig(translations=("fsdp_x=1: y=1",)).options)
    assert not {"translations", "described"} & set(names)


def test_every_default_can_be_written_as_text_and_read_again() -> None:
    words = [word for line in described(TrainConfig).splitlines() for word in _default_of(line)]
    assert read_config(words, {}) == TrainConfig()


def _default_of(line: str) -> list[str]:
    """The option and its default as a command line has them; none for those without."""
    name, _, rest = line.partition(" (")
    default = rest.partition("): ")[0]
    return [f"{name}={default}"] if default else []


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param(
            ["--precision", "fp32", "--reduce_dtype", "bf16"],
            "reduce_dtype bf16 needs a precision other than fp32",
            id="nothing to reduce in bf16",
        ),
        pytest.param(
            ["--shard_group_size", "4"],
            "shard_group_size needs strategy hybrid_shard or hybrid_shard_zero2",
            id="groups without a hybrid",
        ),
        pytest.param(
            ["--cpu_offload", "true", "--strategy", "no_shard"],
            "cpu_offload needs a strategy that shards",
            id="whole copies on hosts",
        ),
        pytest.param(
            ["--cpu_offload", "maybe"], "cpu_offload must be true or false, not 'maybe'", id="truth"
        ),
    ],
)
def test_options_that_cannot_be_meant_together_are_refused(arguments: list[str], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_config(arguments, {})
    assert caught.value.problems == (problem,)


@pytest.mark.parametrize(("text", "meant"), [("true", "full"), ("False", "none"), ("selective", "selective")])
def test_activation_checkpointing_may_be_a_yes_or_no(text: str, meant: str) -> None:
    config = read_config(["--activation_checkpointing", text], {})
    assert config.activation_checkpointing == meant


def test_the_sequence_may_be_shorter_than_the_presets() -> None:
    config = TrainConfig(sequence_length=64, batch_size=4)
    assert (config.shape.sequence_length, config.tokens_per_step) == (64, 256)
    assert TrainConfig().shape.sequence_length == 128


def test_a_channel_is_where_the_environment_says() -> None:
    env = {"SM_CHANNEL_WEIGHTS": "/opt/ml/input/data/weights"}
    assert directory_of("channel:weights", env, option="init_from") == Path("/opt/ml/input/data/weights")


@pytest.mark.parametrize("variable", ["SM_CHANNEL_FIRST-WEIGHTS", "SM_CHANNEL_FIRST_WEIGHTS"])
def test_a_channel_with_a_hyphen_is_found_as_the_toolkit_and_as_the_launcher_name_it(variable: str) -> None:
    assert directory_of("channel:first-weights", {variable: "/data"}, option="init_from") == Path("/data")


def test_anything_else_is_a_directory() -> None:
    assert directory_of("/data/weights", {}, option="init_from") == Path("/data/weights")


@pytest.mark.parametrize(
    ("env", "there"),
    [({}, "no channels"), ({"SM_CHANNEL_TRAIN": "/a", "SM_CHANNEL_EVAL": "/b"}, "eval, train")],
)
def test_a_channel_the_job_does_not_have_is_named_with_those_it_has(env: dict[str, str], there: str) -> None:
    with pytest.raises(ConfigError) as refused:
        directory_of("channel:weights", env, option="init_from")
    assert refused.value.problems == (f"init_from names channel 'weights', but the job has {there}",)


def test_off_sets_nothing() -> None:
    assert debug_variables(DebugLevel.OFF, {}) == {}


def test_the_flight_recorder_lands_in_the_jobs_output() -> None:
    found = debug_variables(DebugLevel.INFO, {"SM_OUTPUT_DATA_DIR": "/out"})
    assert found["TORCH_DISTRIBUTED_DEBUG"] == "INFO"
    assert found["TORCH_SHOW_CPP_STACKTRACES"] == "1"
    assert (
        found["TORCH_FR_DUMP_TEMP_FILE"]
        == found["TORCH_NCCL_DEBUG_INFO_TEMP_FILE"]
        == "/out/flight-recorder-"
    )
    assert debug_variables(DebugLevel.INFO, {})["TORCH_FR_DUMP_TEMP_FILE"].startswith("/opt/ml/output/data/")


def test_what_the_job_sets_itself_is_left_alone() -> None:
    found = debug_variables(DebugLevel.DETAIL, {"TORCH_CPP_LOG_LEVEL": "WARNING"})
    assert found["TORCH_DISTRIBUTED_DEBUG"] == "DETAIL"
    assert "TORCH_CPP_LOG_LEVEL" not in found


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--eval_data", "channel:validation"), "eval_data needs eval_every"),
        (("--eval_every", "5", "--data", "channel:train"), "eval_every needs eval_data"),
        (("--eval_every", "5", "--eval_batches", "0"), "eval_batches 0 needs eval_data of shards"),
        (("--document_mask", "true"), "document_mask needs data of shards"),
    ],
)
def test_an_evaluation_and_its_data_belong_together(options: tuple[str, ...], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        read_config(options, {})


def test_a_pace_by_sample_makes_steps_of_fewer_ranks_longer() -> None:
    config = TrainConfig(batch_size=8, min_sample_seconds=0.5, min_step_seconds=0.75)
    assert [config.shortest_step(shares) for shares in (1, 4, 8)] == [4.0, 1.0, 0.75]
    assert TrainConfig().shortest_step(1) == 0.0
