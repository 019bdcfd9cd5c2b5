"""The world that ``local up --world`` names."""

import re
from pathlib import Path

import pytest

from local.deployment.deployment_errors import DeploymentError
from local.world_file import read_world
from local.worlds import HARSH, KIND, changed
from tests.markdown import ROOT


def test_a_world_has_a_name_or_a_file_of_values_over_the_kind_one(tmp_path: Path) -> None:
    file = tmp_path / "world.yaml"
    file.write_text("quotas: {ml.m5.xlarge: 4}\nlatency_seconds: {p50: 0.1, p99: 1}\n")
    assert read_world("kind") == KIND
    assert read_world("harsh") == HARSH
    assert read_world(str(file)) == changed(
        KIND, {"quotas": {"ml.m5.xlarge": 4}, "latency_seconds": {"p50": 0.1, "p99": 1}}
    )


def test_the_example_of_the_documents_is_a_world() -> None:
    world = read_world(str(ROOT / "docs/examples/worlds/my-account.yaml"))
    assert world.quotas["ml.p5.48xlarge"] == {"on-demand": 4, "spot": 0}


def test_an_empty_file_and_json_are_worlds_too(tmp_path: Path) -> None:
    empty, json = tmp_path / "empty", tmp_path / "world.json"
    empty.write_text("")
    json.write_text('{"pending_end": "mixed"}')
    assert read_world(str(empty)) == KIND
    assert read_world(str(json)) == changed(KIND, {"pending_end": "mixed"})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("rate: 1", "rate: is no value of a world; there are quotas, ", id="unknown key"),
        pytest.param("1: 2", "1: is no value of a world", id="a number for a key"),
        pytest.param("warm_pool_quota: many", "warm_pool_quota: must be a whole number", id="wrong value"),
        pytest.param("- quotas", "must be a map of keys, not list", id="a list"),
        pytest.param("quotas: {", "while parsing", id="not YAML"),
        pytest.param(None, "neither a file nor one of kind, harsh", id="no file"),
    ],
)
def test_a_file_that_is_no_world_is_refused_by_its_name(tmp_path: Path, text: str | None, says: str) -> None:
    file = tmp_path / "harsh.yaml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(DeploymentError, match=re.escape(says)) as refused:
        read_world(str(file))
    assert str(refused.value).startswith(f"world {file}: ")
