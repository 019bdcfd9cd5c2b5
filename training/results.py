"""What a finished job leaves in its model directory, which SageMaker packs as model.tar.gz."""

import json
from collections.abc import Mapping
from pathlib import Path


def write_metrics(directory: Path, metrics: Mapping[str, object]) -> None:
    (directory / "metrics.json").write_text(json.dumps(metrics, indent=1) + "\n")
