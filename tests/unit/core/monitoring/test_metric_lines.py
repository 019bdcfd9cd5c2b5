"""Values of a metric in log lines, by the expressions that people write for SageMaker."""

import math
import time

import pytest
from trainmaster.core.monitoring.metric_lines import MOST_CANDIDATES, MetricValue, metric_line


@pytest.mark.parametrize(
    ("expression", "line", "value", "step"),
    [
        ("loss=([0-9.]+)", "step=120 loss=0.25 lr=1e-4", 0.25, 120),
        ("loss=([0-9.]+)", "step=120 loss=nan", math.nan, 120),
        (r"'loss': ([0-9\.]+)", "{'loss': inf, 'epoch': 0.1}", math.inf, None),
        (r"'loss': ([0-9\.]+)", "{'loss': -Infinity}", -math.inf, None),
        ("train_loss: (.*?);", "epoch 3/9, train_loss: NaN; acc: 0.1;", math.nan, None),
        (r".*loss:\s+(\S+)", "Step: 7, loss:   tensor(nan, device='cuda:0')", math.nan, 7),
        (r"loss.*?=(?P<loss>[0-9.]+)", "loss (mean) =1.5e-3", 0.0015, None),
        (r"[Ll]oss (?:is |= )(-?\d+)", "Loss is -3", -3, None),
        (r"^loss=(\d+)", "loss=4", 4, None),
        (r"\[train\] loss=(.*)", "[train] loss=1e999", math.inf, None),
        ("loss=([0-9.]+)", "loss=.5", 0.5, None),
        ("loss=([0-9.]+)", "é loss=2 and loss=3", 2, None),
    ],
)
def test_the_number_behind_the_text_before_the_group_is_read(
    expression: str, line: str, value: float, step: int | None
) -> None:
    metric = metric_line(expression)
    assert metric is not None
    seen = metric.value_in(line)
    assert seen is not None
    assert (repr(seen.value), seen.step) == (repr(float(value)), step)


@pytest.mark.parametrize(
    ("expression", "line"),
    [
        pytest.param("loss=([0-9.]+)", "loss=nanny", id="a word that begins like a number"),
        pytest.param("loss=([0-9.]+)", "loss=information", id="a word that begins with inf"),
        pytest.param("loss=([0-9.]+)", "loss=", id="nothing behind it"),
        pytest.param("loss=([0-9.]+)", "", id="an empty line"),
        pytest.param("train_loss=([0-9.]+)", "val_loss=nan", id="another metric"),
        pytest.param("^loss=([0-9.]+)", "val loss=nan", id="not at the start"),
        pytest.param(r"\(loss=([0-9.]+)", "loss=nan", id="an escaped parenthesis is no group"),
    ],
)
def test_other_lines_have_no_value(expression: str, line: str) -> None:
    metric = metric_line(expression)
    assert metric is not None
    assert metric.value_in(line) is None


UNREADABLE = (
    *("", "loss", "loss=[0-9.]+", r"\bloss=(.*)", "(?<=x)loss=(.*)", "(?i)loss=(.*)", "a|loss=(.*)"),
    *("(?:(.*))", "[", "*(.*)", "a{9999}(.*)", "loss=(?:nan|inf)", "x" * 300 + "(.*)"),
)


@pytest.mark.parametrize("expression", UNREADABLE)
def test_an_expression_that_cannot_be_read_is_none(expression: str) -> None:
    assert metric_line(expression) is None


def test_an_expression_that_is_made_to_take_long_does_not() -> None:
    metric = metric_line("(?:a+)+b(.*)")
    assert metric is not None
    began = time.process_time()
    assert metric.value_in("a" * 100_000) is None
    assert time.process_time() - began < 5  # Python's own engine needs longer than the universe


def test_the_newest_values_come_the_oldest_first_and_old_lines_are_not_searched() -> None:
    metric = metric_line("loss=(.*)")
    assert metric is not None
    lines = ["loss=1", "loss=2", "other", "loss=3"]
    assert metric.newest(lines, most=2) == (MetricValue(value=2), MetricValue(value=3))
    assert metric.newest(["loss=1", *["other"] * MOST_CANDIDATES], most=2) == ()
