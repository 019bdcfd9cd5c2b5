"""What the demo of an elastic job must have shown."""

import json
from pathlib import Path
from typing import Any

import pytest
from trainmaster_client.report import Report

from demos.elastic import BATCH, SEQUENCES, STEPS, UNTIL, WIDTHS, check, corpus
from demos.stage.trained_steps import newest_step, samples_in
from training.data.index import INDEX


def width_at(step: int) -> int:
    return next(width for width, until in zip(WIDTHS, UNTIL, strict=True) if step <= until)


ALONE = [[step, 1, 5.0 - step / 100] for step in range(1, STEPS + 1)]
LOSSES = [[step, width_at(step), 5.0 - step / 100] for step in range(1, STEPS + 1)]
SAMPLES = {
    str(step): [((step - 1) * BATCH + row) * 7 % SEQUENCES for row in range(BATCH)]
    for step in range(1, STEPS + 1)
}
ATTEMPTS = [
    {"instances": width, "ranks": width, "resumed_from": resumed}
    for width, resumed in zip(WIDTHS, (0, *UNTIL[:-1]), strict=True)
]


def told(**changes: Any) -> Report:
    report = Report("elastic")
    report.facts = {
        "attempts": ATTEMPTS,
        "losses": LOSSES,
        "undisturbed": ALONE,
        "samples": SAMPLES,
        "reasons": ["grow", "grow", "shrink", "grow", "stopped-by-user"],
        "preemptions": 0,
        "most_at_once": 4,
    } | changes
    check(report)
    return report


def wrong(report: Report) -> list[str]:
    return [check.id for check in report.checks if not check.ok]


def test_the_whole_story_is_ok() -> None:
    assert wrong(told()) == []


def another(number: int, **changes: Any) -> list[dict[str, Any]]:
    return [{**attempt, **(changes if at == number else {})} for at, attempt in enumerate(ATTEMPTS)]


@pytest.mark.parametrize(
    ("changes", "check_id"),
    [
        pytest.param({"attempts": another(2, instances=2)}, "widths", id="another width"),
        pytest.param({"attempts": another(1, ranks=2)}, "ranks", id="instances that did not train"),
        pytest.param({"attempts": another(3, resumed_from=20)}, "no-step-lost", id="an older checkpoint"),
        pytest.param({"reasons": ["grow", "preempted", "grow"]}, "causes", id="preempted, not shrunk"),
        pytest.param({"preemptions": 1}, "not-a-preemption", id="charged as a preemption"),
        pytest.param({"most_at_once": 5}, "never-more-than-there-is", id="more than the pool has"),
        pytest.param({"losses": [*LOSSES, LOSSES[-1]]}, "each-step-once", id="a step twice"),
        pytest.param({"losses": ALONE}, "each-step-once", id="steps at another width"),
        pytest.param(
            {"losses": [[1, 2, 4.99 + 1.1e-6], *LOSSES[1:]]}, "same-losses", id="a loss too far away"
        ),
        pytest.param({"undisturbed": ALONE[:-1]}, "same-losses", id="nothing to compare a loss with"),
        pytest.param({"samples": SAMPLES | {"9": SAMPLES["10"]}}, "each-sample-once", id="samples twice"),
        pytest.param({"samples": {}}, "each-sample-once", id="no samples"),
    ],
)
def test_what_went_wrong_is_named(changes: dict[str, Any], check_id: str) -> None:
    assert check_id in wrong(told(**changes))


def test_lines_that_are_being_written_are_left_for_later(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    assert (newest_step(file), samples_in(file)) == (0, {})
    file.write_text('{"step": 3, "samples": [1]}\n{"step": 3, "samples": [2]}\n{"step": 4, "sam')
    assert (newest_step(file), samples_in(file)) == (3, {"3": [1, 2]})


def test_an_epoch_of_the_corpus_is_a_few_steps(tmp_path: Path) -> None:
    shards = json.loads((corpus(tmp_path / "corpus") / INDEX).read_text())["shards"]
    assert [shard["tokens"] for shard in shards] == [SEQUENCES * 32 + 1]
