"""docs/training/s3.md and weights.md: their code is code, and what they ask for is what is needed."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.markdown import ROOT, blocks, text_of
from training.config import read_config
from training.config.decoder_layout import config_of
from training.config.decoder_shape import PRESETS
from training.preemptible.checkpoint.s3_shards import Place, S3RequestError, explained

_S3 = text_of("docs/training/s3.md")
_WEIGHTS = text_of("docs/training/weights.md")


def _hyperparameters(text: str) -> Iterator[dict[str, Any]]:
    for block in blocks(text, "python"):
        for node in ast.walk(ast.parse(block.text)):
            if isinstance(node, ast.keyword) and node.arg == "hyperparameters":
                yield ast.literal_eval(node.value)


@pytest.mark.parametrize("guide", [_S3, _WEIGHTS], ids=["s3", "weights"])
def test_the_hyperparameters_shown_are_options(guide: str, tmp_path: Path) -> None:
    (shown,) = _hyperparameters(guide)
    shape = PRESETS["llama2-7b"]
    (tmp_path / "config.json").write_text(json.dumps(config_of(shape, dtype="float32")))
    words = [word for name, value in shown.items() for word in (f"--{name}", str(value))]
    config = read_config(words, {"SM_CHANNEL_WEIGHTS": str(tmp_path)})
    assert config.shape.layers == shape.layers or "model_config" not in shown
    assert all(getattr(config, name) == value for name, value in shown.items())


def test_the_rights_shown_are_those_a_refusal_asks_for() -> None:
    policy, lifecycle = (json.loads(block.text) for block in blocks(_S3, "json"))
    bucket, objects = policy["Statement"]
    assert (bucket["Action"], bucket["Resource"]) == ("s3:ListBucket", "arn:aws:s3:::my-bucket")
    place = Place("my-bucket", "checkpoints/my-job")
    refused = explained(S3RequestError(place, "s3:PutObject", "", "AccessDenied", ""))
    assert f"s3:ListBucket on {bucket['Resource']} and" in refused
    assert f"{', '.join(objects['Action'])} on {objects['Resource']};" in refused
    assert lifecycle["Rules"][0]["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}


def test_the_version_of_the_connector_is_the_one_the_tests_run_with() -> None:
    (line,) = [block.text.strip() for block in blocks(_S3, "text")]
    assert line == "s3torchconnector[dcp]==1.5.0"
    assert "\ns3torchconnector==1.5.0 \\\n" in (ROOT / "requirements.lock").read_text().replace("[dcp]", "")
