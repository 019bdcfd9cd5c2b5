"""`python -m tools.training.plan`: the plane's arithmetic with the program's own options."""

import json
from pathlib import Path

import pytest
from trainmaster.core.memory import training_runs

from tools.training import plan
from training.config import TrainConfig, read_config


def test_it_fits_and_the_numbers_are_json(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = "--preset llama2-70b --instances ml.p5.48xlarge=16 --batch-size=128 --json"
    assert plan.main([*arguments.split(), "--activation_checkpointing", "true"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["world_size"], found["fits"]) == (128, True)
    assert found["bytes_per_rank"]["params"] == 2_155_520_256


def test_it_does_not_fit_and_people_read_why(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = "--preset llama2-70b --instances=ml.p5.48xlarge=16 --batch_size 128"
    assert plan.main(arguments.split()) == 1
    assert "Does not fit: 80.4 GiB more are needed on each rank." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--preset tiny", "error: instances: name at least one, as in ml.p5.48xlarge=16\n"),
        (
            "--presett tiny --instances ml.g5.xlarge=1",
            "error: hyperparameters: unknown option 'presett' (did you mean 'preset'?)\n",
        ),
        ("--preset tiny --instances", "error: instances: name at least one, as in ml.p5.48xlarge=16\n"),
    ],
)
def test_wrong_usage_is_one_message(arguments: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan.main(arguments.split()) == 2
    assert capsys.readouterr().err == message


def test_options_that_say_nothing_of_memory_are_taken(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = (
        "--instances ml.g5.xlarge=1 --preset tiny --lr 0.1 --sharding_strategy NO_SHARD --sequence_length 64"
    )
    assert plan.main(arguments.split()) == 0
    assert "no_shard over 1 of 1 ranks" in capsys.readouterr().out


def test_adapters_beside_a_frozen_70b_fit_where_the_model_does_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = "--preset llama2-70b --instances ml.p4d.24xlarge=2 --batch_size 16 --init_from=x --json"
    arguments = text.split()
    assert plan.main([*arguments, "--activation_checkpointing=full"]) == 1
    capsys.readouterr()
    assert plan.main([*arguments, "--activation_checkpointing=full", "--lora_rank=16"]) == 0
    found = json.loads(capsys.readouterr().out)
    adapters = 80 * 16 * (2 * (8192 + 8192) + 2 * (1024 + 8192) + 3 * (28_672 + 8192))
    assert found["checkpoint_bytes"] == 12 * adapters
    frozen = 68_976_648_192 * 2 // 16  # bytes, on each of 16 ranks
    assert found["bytes_per_rank"]["params"] == pytest.approx(frozen + 4 * adapters / 16, rel=1e-3)


def test_the_shape_may_come_from_a_config_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = {"model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864, "num_attention_heads": 14}
    told |= {"num_hidden_layers": 24, "num_key_value_heads": 2, "vocab_size": 151_936}
    (tmp_path / "config.json").write_text(json.dumps({**told, "tie_word_embeddings": True}))
    assert plan.main(["--model_config", str(tmp_path), "--instances=ml.g5.xlarge=1", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["params"] == 494_032_768  # of Qwen2-0.5B


def test_a_vision_transformer_is_planned_as_a_decoder_is(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = "--preset vit-large --instances ml.p5.48xlarge=2 --batch_size 4096 --tensor_parallel 4"
    assert plan.main(arguments.split()) == 0
    told = capsys.readouterr().out
    assert "vit-large: 0.30B parameters on 2x ml.p5.48xlarge" in told
    assert "4096 images of 197 tokens a step" in told
    assert "* full_shard tp 4 " in told
    assert "  hybrid_shard " in told
    assert plan.main([*["--preset", "vit-huge", "--instances", "ml.g5.xlarge=1", "--batch_size", "512"]]) == 1
    assert "gradient_accumulation_steps" in capsys.readouterr().out


def test_matrices_that_the_program_cannot_divide_are_refused_by_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = "--preset vit-small --instances ml.p5.48xlarge=1 --batch_size 64 --tensor_parallel 4"
    plan.main(arguments.split())
    assert "The program refuses tensor_parallel 4: it does not divide heads 6." in capsys.readouterr().out


def test_help_names_the_options_that_matter(capsys: pytest.CaptureFixture[str]) -> None:
    assert plan.main(["--help"]) == 0
    assert "--activation_checkpointing" in capsys.readouterr().out


def test_the_program_and_the_plane_read_the_same_run_out_of_the_same_options() -> None:
    given = {
        "preset": "llama2-13b",
        "sequence_length": "2048",
        "batch_size": "64",
        "gradient_accumulation_steps": "2",
        "precision": "bf16_pure",
        "reduce_dtype": "bf16",
        "strategy": "hybrid_shard",
        "shard_group_size": "4",
        "activation_checkpointing": "selective",
        "prefetch_blocks": "2",
        "cpu_offload": "true",
        "init_from": "channel:weights",
        "lora_rank": "8",
        "lora_targets": "v_proj,q_proj",
    }
    config = read_config([f"--{name}={text}" for name, text in given.items()], {})
    assert plan.run_of(config) == training_runs.run_of(given)
    default = training_runs.run_of({"preset": "tiny"})
    assert plan.run_of(TrainConfig()) == default


def test_the_program_and_the_plane_read_the_same_images_out_of_the_same_options() -> None:
    given = {
        "preset": "vit-22b",
        "image_size": "448",
        "objective": "masked",
        "classes": "7",
        "export": "false",
    }
    config = read_config([f"--{name}={text}" for name, text in given.items()], {})
    assert plan.run_of(config) == training_runs.run_of(given)
    assert training_runs.run_of({"preset": "vit-tiny"}) == plan.run_of(TrainConfig(preset="vit-tiny"))


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"preset": "vit-tiny", "image_size": "100"}, id="patches do not come out even"),
        pytest.param({"preset": "vit-tiny", "sequence_length": "100"}, id="an option of texts"),
        pytest.param({"preset": "tiny", "classes": "10"}, id="an option of images"),
        pytest.param({"preset": "vit-tiny", "objective": "guess"}, id="no objective"),
    ],
)
def test_images_that_the_program_refuses_are_not_judged(given: dict[str, str]) -> None:
    assert training_runs.run_of(given) is None


def test_the_plane_reads_the_defaults_of_the_program() -> None:
    run, config = training_runs.run_of({"preset": "tiny"}), TrainConfig()
    assert run is not None
    names = ("batch_size", "precision", "reduce_dtype", "strategy", "shard_group_size", "prefetch_blocks")
    assert {name: getattr(run, name) for name in names} == {name: getattr(config, name) for name in names}
