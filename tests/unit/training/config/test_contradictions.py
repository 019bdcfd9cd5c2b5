import pytest

from training.config import TrainConfig, read_config
from training.config.contradictions import TORCH_FLOOR, unsupported


def _config(*arguments: str) -> TrainConfig:
    return read_config(arguments, {})


@pytest.mark.parametrize(
    "found", ["2.13.0", "2.13.0+cpu", "2.14.0a0+git1234", "3.0.1", "2.9.1+cu128", "2.10.0"]
)
def test_M8_a_torch_that_is_new_enough_is_taken(found: str) -> None:
    assert unsupported(_config(), found) == []


@pytest.mark.parametrize("found", ["2.8.0", "2.8.0+cu128", "1.13.1", "2.0"])
def test_M8_an_older_one_is_refused_with_what_is_found_and_what_is_needed(found: str) -> None:
    floor = ".".join(map(str, TORCH_FLOOR))
    assert unsupported(_config("--strategy=no_shard"), found) == [
        f"torch {found} is installed, and the program needs {floor} or newer"
    ]


def test_M8_without_torch_it_says_so() -> None:
    assert unsupported(_config(), "") == ["torch is not installed, and the program needs 2.9 or newer"]


@pytest.mark.parametrize(
    ("found", "arguments", "problem"),
    [
        pytest.param(
            "2.10.0",
            ["--strategy=no_shard"],
            "strategy no_shard needs torch 2.11 or newer, and 2.10.0 is installed; "
            "or set strategy shard_grad_op",
            id="no_shard",
        ),
        pytest.param(
            "2.12.0+cpu",
            [],
            "checkpoint_async true needs torch 2.13 or newer, and 2.12.0+cpu is installed; "
            "or set checkpoint_async false",
            id="checkpoints beside the training",
        ),
    ],
)
def test_M8_an_option_that_this_torch_lacks_is_named_with_a_way_out(
    found: str, arguments: list[str], problem: str
) -> None:
    assert unsupported(_config(*arguments), found) == [problem]


@pytest.mark.parametrize("found", ["2.11.0", "2.12.1"])
def test_M8_with_the_way_out_it_is_taken(found: str) -> None:
    assert unsupported(_config("--strategy=no_shard", "--checkpoint_async=false"), found) == []
