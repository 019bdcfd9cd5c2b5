"""What MetricDefinitions find in the lines of a log."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from local.sagemaker.loads import Sample
from local.sagemaker.metric_definitions import Definitions, Emitted
from local.sagemaker.ports import LogLine
from local.sagemaker.scraped_log import ScrapedLog
from training.metrics import METRIC_DEFINITIONS, StepMetrics

LINE = StepMetrics(
    step=120,
    loss=2.3456701,
    lr=3e-4,
    grad_norm=0.5,
    tokens=4096,
    tok_s=100.25,
    tok_s_gpu=50.0,
    tflops_gpu=1.5,
    mfu=None,
    step_ms=12.5,
    data_ms=0.5,
    mem_gib=3.25,
    ckpt_step=100,
    ckpt_stall_ms=7.0,
    goodput=0.982,
    width=8,
    steps=1000,
).line()


def definitions(**regexes: str) -> Definitions:
    return of([{"Name": name, "Regex": regex} for name, regex in regexes.items()])


def of(given: Sequence[dict[str, str]]) -> Definitions:
    return Definitions.of({"AlgorithmSpecification": {"MetricDefinitions": given}})


@pytest.mark.parametrize(
    ("regex", "line", "value"),
    [
        pytest.param(r"loss=([0-9.]+)", "step 3 loss=2.5 loss=9", 2.5, id="the first place in the line"),
        pytest.param(r"(\S+) of (\S+)", "3 of 9", 3.0, id="the first group of several"),
        pytest.param(r"loss=(\S+)", "loss=-1.5e-3", -0.0015, id="an exponent"),
        pytest.param(r"loss=(\S+)", "loss=none", None, id="no number"),
        pytest.param(r"loss=(\S+)", "loss=nan", None, id="not a number"),
        pytest.param(r"loss=(\S+)", "loss=inf", None, id="infinity"),
        pytest.param(r"(a)?loss", "loss", None, id="a group that took no part"),
        pytest.param(r"loss=\d", "loss=3", None, id="no group"),
        pytest.param(r"loss=((\d)", "loss=3", None, id="no regular expression"),
    ],
)
def test_the_first_group_that_is_a_number_is_the_value(regex: str, line: str, value: float | None) -> None:
    found = list(definitions(loss=regex).values_in(line))
    assert found == ([] if value is None else [("loss", value)])


def test_one_that_is_broken_leaves_the_others_alone() -> None:
    both = definitions(broken="(", whole="loss=(.*)")
    assert list(both.values_in("loss=1")) == [("whole", 1.0)]
    assert list(Definitions.of({"AlgorithmSpecification": {}}).values_in("loss=1")) == []


def test_the_definitions_of_the_training_program_find_what_it_prints() -> None:
    assert dict(of(METRIC_DEFINITIONS).values_in(LINE)) == {
        "train:step": 120.0,
        "train:loss": 2.3456701,
        "train:lr": 0.0003,
        "train:grad_norm": 0.5,
        "train:tokens": 4096.0,
        "train:tok_s": 100.2,
        "train:tok_s_gpu": 50.0,
        "train:tflops_gpu": 1.5,
        "train:step_ms": 12.5,
        "train:data_ms": 0.5,
        "train:mem_gib": 3.25,
        "train:ckpt_step": 100.0,
        "train:ckpt_stall_ms": 7.0,
        "train:goodput": 0.982,
        "train:width": 8.0,
    }


class Lines:
    """A ``LogSink``."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, str]] = []

    def put(self, group: str, stream: str, lines: Sequence[LogLine]) -> None:
        self.seen += [(group, stream, line.message) for line in lines]


class Samples:
    """A ``MetricSink``."""

    def __init__(self) -> None:
        self.seen: list[tuple[datetime, Sample]] = []

    def put(self, sample: Sample, *, at: datetime) -> None:
        self.seen.append((at, sample))


def test_lines_pass_and_their_values_are_published_at_the_time_of_the_line() -> None:
    lines, samples = Lines(), Samples()
    log = ScrapedLog("job-1", definitions(loss="loss=(.*)"), logs=lines, metrics=samples)
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    second = datetime(2026, 1, 1, 12, 0, 1, tzinfo=UTC)
    log.put("g", "job-1/algo-2", [line_at(noon, "loss=3"), line_at(second, "loss=2"), line_at(second, "end")])

    assert lines.seen == [
        ("g", "job-1/algo-2", "loss=3"),
        ("g", "job-1/algo-2", "loss=2"),
        ("g", "job-1/algo-2", "end"),
    ]
    of_job = ("TrainingJobName", "job-1")
    assert samples.seen == [
        (noon, Sample(metric="loss", dimension=of_job, value=3.0, unit="None")),
        (second, Sample(metric="loss", dimension=of_job, value=2.0, unit="None")),
    ]
    assert log.last() == (Emitted(name="loss", value=2.0, at=second),)


def line_at(instant: datetime, message: str) -> LogLine:
    return LogLine(timestamp_ms=round(instant.timestamp() * 1000), message=message)
