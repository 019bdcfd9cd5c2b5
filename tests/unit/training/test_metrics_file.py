import json
from pathlib import Path

import pytest

from tests.unit.training.test_metrics import METRICS, ON_A_CPU
from training.errors import ConfigError
from training.metrics_file import MetricsFile


def test_a_later_attempt_goes_on_in_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "metrics.jsonl"
    for metrics in (ON_A_CPU, METRICS):
        file = MetricsFile(path)
        file.add(metrics)
        file.close()
    assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [1, 120]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"metrics_file .*/file/metrics.jsonl cannot be written: "):
        MetricsFile(tmp_path / "file" / "metrics.jsonl")
