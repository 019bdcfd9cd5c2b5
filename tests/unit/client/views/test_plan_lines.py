"""Training plans in the lines of ``trainmaster pools``."""

from typing import Any

from trainmaster_client.cli.pools import pool_lines
from trainmaster_client.views.pool_rows import pool_rows

from tests.builders import NOON

PLAN: dict[str, Any] = {
    "arn": "arn:aws:sagemaker:us-east-1:111122223333:training-plan/spring",
    "status": "Active",
    "instance_type": "ml.p5.48xlarge",
    "instances": 2,
    "used": 1,
    "window": {
        "from": "2026-11-02T10:00:00.000Z",
        "to": "2026-11-02T18:00:00.000Z",
        "closes": "2026-11-02T17:20:00.000Z",
    },
    "next": {
        "from": "2026-11-03T10:00:00.000Z",
        "to": "2026-11-03T12:00:00.000Z",
        "closes": "2026-11-03T11:20:00.000Z",
    },
    "trouble": None,
}


def lines(plan: dict[str, Any]) -> list[str]:
    return list(pool_lines(pool_rows([{"name": "p5", "plans": [plan]}], now=NOON)))[1:]


def test_a_plan_says_its_instances_and_windows() -> None:
    (line,) = lines(PLAN)
    assert line.split(", ") == [
        "  plan spring: 2x ml.p5.48xlarge",
        "1 used",
        "active",
        "closes 2026-11-02 17:20 UTC",
        "ends 2026-11-02 18:00 UTC",
        "next window 2026-11-03 10:00 to 2026-11-03 12:00 UTC",
    ]


def test_a_plan_that_cannot_be_described_says_so() -> None:
    over = PLAN | {"window": None, "next": None, "trouble": "AccessDeniedException"}
    assert lines(over) == [
        (
            "  plan spring: 2x ml.p5.48xlarge, 1 used, active, no window to come, not described since:"
            " AccessDeniedException"
        )
    ]
    assert lines(PLAN | {"instance_type": None}) == ["  plan spring: not described by SageMaker yet"]
