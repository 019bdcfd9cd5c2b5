"""What a pass knows of a job."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.builders import NOON, waiting


@pytest.mark.parametrize(
    ("fields", "until_ms"),
    [
        pytest.param({"not_before": NOON}, 1_793_620_800_000, id="a back-off ends at its instant"),
        pytest.param(
            {"not_before": datetime(2026, 1, 1, 0, 0, 0, 1_999, tzinfo=UTC)},
            1_767_225_600_001,
            id="milliseconds are exact and cut",
        ),
        pytest.param({}, 253_370_764_800_000, id="a held job stands behind every instant"),
    ],
)
def test_where_a_parked_job_stands(fields: dict[str, Any], until_ms: int) -> None:
    assert waiting("a", **fields).parked_until_ms == until_ms
