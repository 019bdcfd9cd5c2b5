"""How fast attempts trained, by the metrics that SageMaker keeps of them."""

from datetime import timedelta

import pytest
from trainmaster.core.durations.traits import Traits
from trainmaster.core.durations.work_speeds import (
    SAMPLES,
    TOKENS,
    MeasuredRun,
    WorkSpeed,
    counted,
    read_run,
    run_text,
    speed_of,
    speeds_by_shape,
    usual_speed,
    work_kind,
)

from tests.builders import NOON

KIND = work_kind("vision", "bert", "image:1", "0a1b")


def run(per_second: float, *, days_ago: float = 0.0, unit: str = "tokens") -> MeasuredRun:
    return MeasuredRun(
        shape="ml.g5.xlarge=2",
        speed=WorkSpeed(unit=unit, per_1000_s=round(1000 * per_second)),
        ended_at=NOON - timedelta(days=days_ago),
        settings="0a1b",
    )


@pytest.mark.parametrize(
    ("metrics", "speed"),
    [
        pytest.param({"train:tok_s": 7090.5}, ("tokens", 7_090_500), id="our program"),
        pytest.param({"train:img_s": 0.25}, ("samples", 250), id="images"),
        pytest.param({"train:img_s": 20.0, "train:tok_s": 3940.0}, ("tokens", 3_940_000), id="both"),
        pytest.param({"samples_per_second": 12}, ("samples", 12_000), id="a common name"),
        pytest.param({"Samples/Sec": 5.0}, ("samples", 5_000), id="whatever its case"),
        pytest.param({"train:tok_s": float("nan"), "samples/s": 3.0}, ("samples", 3_000), id="NaN"),
    ],
)
def test_a_metric_of_a_known_name_tells_the_speed(metrics: dict[str, object], speed: tuple[str, int]) -> None:
    unit, per_1000_s = speed
    assert speed_of(metrics) == WorkSpeed(unit=unit, per_1000_s=per_1000_s)


@pytest.mark.parametrize(
    "metrics",
    [
        pytest.param({}, id="no metrics"),
        pytest.param({"loss": 2.0, "throughput": 5.0}, id="unknown units"),
        pytest.param({"validation:tok_s": 900.0}, id="not of the training"),
        pytest.param({"train:tok_s_gpu": 900.0}, id="of one GPU only"),
        pytest.param({"train:tok_s": 0.0}, id="zero"),
        pytest.param({"train:tok_s": -1.0}, id="negative"),
        pytest.param({"train:tok_s": float("inf")}, id="infinite"),
        pytest.param({"train:tok_s": 1e15}, id="beyond belief"),
        pytest.param({"train:tok_s": "7090"}, id="text"),
        pytest.param({"train_tokens_per_second": 7090.0}, id="transformers: of one device"),
        pytest.param({"train_samples_per_second": 40.0}, id="transformers: of all attempts in one's time"),
        pytest.param({"train:tok_s": None}, id="nothing"),
    ],
)
def test_anything_else_tells_none(metrics: dict[str, object]) -> None:
    assert speed_of(metrics) is None


def test_a_run_is_read_as_it_was_written_and_only_for_its_kind() -> None:
    text = run_text(KIND, run(7090.5))
    assert read_run(KIND, text) == run(7090.5)
    assert read_run(work_kind("vision", "gpt", "image:1", "0a1b"), text) is None
    other_settings = work_kind("vision", "bert", "image:1", None)
    assert read_run(other_settings, text) == run(7090.5)


@pytest.mark.parametrize("text", [0, None, "", "0a1b", "a b c d e f", 7, ["x"]])
def test_what_is_no_run_is_left_out(text: object) -> None:
    assert read_run(KIND, text) is None


def test_a_later_release_may_write_more_words_and_other_units() -> None:
    text = run_text(KIND, run(5.0, unit="frames")) + " a100"
    assert read_run(KIND, text) == run(5.0, unit="frames")


def test_of_many_runs_the_middle_one_counts_and_newer_ones_more() -> None:
    assert usual_speed([run(100)]) == 100
    assert usual_speed([run(100), run(300), run(110)]) == 110
    assert usual_speed([run(100), run(120)]) == 110
    assert usual_speed([run(100, days_ago=30), run(100, days_ago=29), run(200)]) == 200


def test_what_is_older_than_learned_lengths_counts_no_more() -> None:
    kept = run(1.0, days_ago=89)
    assert counted([kept, run(2.0, days_ago=91)], now=NOON) == [kept]


def test_the_kind_is_the_same_in_each_shape_and_run_and_differs_between_teams() -> None:
    def kind(**fields: object) -> str:
        values = {"team": "vision", "lane": "A=1", "limit": timedelta(hours=1), "name": "bert-2026-11-23-1"}
        return Traits(**values | {"image": "image:1", "hyperparameters": "0a1b"} | fields).work_kind  # type: ignore[arg-type]

    assert kind() == KIND == kind(lane="B=4", limit=timedelta(hours=9), name="bert-2026-11-24-7")
    assert len({kind(), kind(team="speech"), kind(name="gpt"), kind(image="image:2")}) == 4
    assert kind(hyperparameters="ffff").partition(":")[0] == KIND.partition(":")[0]


def a_run(shape: str, work: int, *, unit: str = TOKENS, settings: str = "a", days: float = 1) -> MeasuredRun:
    speed = WorkSpeed(unit=unit, per_1000_s=1000 * work)
    return MeasuredRun(shape=shape, speed=speed, ended_at=NOON - timedelta(days=days), settings=settings)


def speeds(runs: list[MeasuredRun]) -> dict[str, tuple[str, float, int]]:
    return {
        one.shape: (one.unit, one.per_second, one.runs)
        for one in speeds_by_shape(runs, settings="a", now=NOON)
    }


def test_speeds_are_told_in_the_unit_of_most_shapes() -> None:
    tokens = [a_run("x=1", 10), a_run("x=1", 30), a_run("y=2", 40)]
    assert speeds([*tokens, a_run("z=1", 5, unit=SAMPLES)]) == {
        "x=1": (TOKENS, 20, 2),
        "y=2": (TOKENS, 40, 1),
    }


def test_runs_with_the_same_hyperparameters_go_first_where_they_tell_of_several_shapes() -> None:
    other = [a_run("x=1", 90, settings="b"), a_run("y=2", 90, settings="b")]
    assert speeds([a_run("x=1", 10), a_run("y=2", 20), *other]) == {
        "x=1": (TOKENS, 10, 1),
        "y=2": (TOKENS, 20, 1),
    }
    assert speeds([a_run("x=1", 10), *other])["y=2"] == (TOKENS, 90, 1)


def test_what_is_too_long_ago_or_was_never_measured_tells_nothing() -> None:
    assert speeds([]) == speeds([a_run("x=1", 10, days=91)]) == {}


@pytest.mark.parametrize("shape", ["x", "x=", "x=0", "x=1+y=2", "x:reserved=1", "x=-1"])
def test_a_shape_that_this_release_does_not_know_is_left_out(shape: str) -> None:
    text = run_text(KIND, run(5.0)).replace("ml.g5.xlarge=2", shape)
    assert read_run(KIND, text) is None
