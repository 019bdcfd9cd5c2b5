"""The line of a pool above the queue."""

from datetime import UTC, datetime
from typing import Any

import pytest
from rich.cells import cell_len
from trainmaster_client.cli.queue_table import summary_lines
from trainmaster_client.views.queue_model import QueueAnswers, queue_model

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def pool(name: str = "p5", **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "capacity": {"ml.p5.48xlarge": 4},
        "used": {"on-demand": {"ml.p5.48xlarge": 2}, "spot": {}},
        "free": {"on-demand": {"ml.p5.48xlarge": 1}},
        "warm": {"on-demand": {"ml.p5.48xlarge": 1}},
        "waiting": 3,
        **more,
    }


def lines_of(pools: list[dict[str, Any]], jobs: list[dict[str, Any]], width: int) -> list[str]:
    answers = QueueAnswers(document={"jobs": jobs}, pools=pools)
    return [line.plain for line in summary_lines(queue_model(answers, now=NOON), width)]


def running(ends_by: str | None, instances: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "name": "a",
        "pool": "p5",
        "state": "running",
        "instances": {"ml.p5.48xlarge": instances},
        "ends_by": ends_by,
        **more,
    }


ENDS = [running("2026-11-21T13:30:00Z"), running("2026-11-21T12:40:00Z")]


def test_what_is_used_free_and_warm_who_waits_and_the_next_certain_end() -> None:
    assert lines_of([pool()], ENDS, width=80) == [
        "p5: 2/4 used, 1 free, 1 warm, 3 waiting, next certain end in 40m"
    ]


@pytest.mark.parametrize(
    "jobs",
    [
        pytest.param(ENDS[:1], id="one that uses instances is not shown"),
        pytest.param([running(None), running(None)], id="none is certain"),
        pytest.param([], id="no job"),
    ],
)
def test_no_end_is_claimed_that_is_not_known(jobs: list[dict[str, Any]]) -> None:
    assert lines_of([pool()], jobs, width=80) == ["p5: 2/4 used, 1 free, 1 warm, 3 waiting"]


def test_an_end_that_is_past_is_due() -> None:
    late = [running("2026-11-21T11:59:00Z", 2)]
    assert lines_of([pool()], late, width=80)[0].endswith("next certain end due")


def test_spot_is_counted_apart_and_alone_where_there_is_nothing_else() -> None:
    spot = {"spot_capacity": {"ml.g5.xlarge": 8}, "used": {"on-demand": {}, "spot": {"ml.g5.xlarge": 3}}}
    both, alone = pool("both", **spot), pool("alone", **spot, capacity={})
    assert lines_of([both, alone], [], width=80) == [
        "both: 0/4 used, 1 free, 1 warm, spot 3/8 used, 3 waiting",
        "alone: spot 3/8 used, 3 waiting",
    ]


@pytest.mark.parametrize("width", [40, 60, 70, 80])
@pytest.mark.parametrize("name", ["research-shared-of-all-teams-and-guests-in-the-first-region", "訓練" * 20])
def test_a_line_fits(name: str, width: int) -> None:
    (line,) = lines_of([pool(name)], [running("2026-11-21T12:40:00Z", 2, pool=name)], width=width)
    assert cell_len(line) <= width
    assert ": 2/4 used, 1 free, 1 warm" in line


def test_pools_with_jobs_come_first_and_of_many_the_rest_is_counted() -> None:
    pools = [pool(f"pool-{number}") for number in range(20)]
    lines = lines_of(pools, [running(None, pool="pool-15")], width=80)
    assert [line.partition(":")[0] for line in lines[:2]] == ["pool-15", "pool-0"]
    assert lines[-1] == "... 12 more pools: trainmaster pools"
    assert len(lines) == 9
