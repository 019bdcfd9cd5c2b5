from pathlib import Path

import pytest

from training.channels import directory_of
from training.errors import ConfigError


def test_a_channel_is_where_the_environment_says() -> None:
    env = {"SM_CHANNEL_WEIGHTS": "/opt/ml/input/data/weights"}
    assert directory_of("channel:weights", env, option="init_from") == Path("/opt/ml/input/data/weights")


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
