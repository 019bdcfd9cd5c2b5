"""The operator's dashboard: every metric of ours, dead letters and errors of every function; nothing else."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from trainmaster.core.monitoring.metrics import METRICS, NAMESPACE, STACK

from tests.template.functions import FUNCTIONS
from tests.template.stack import of_type

OF_THE_STACK = frozenset({"ErrandsPending", "RowsSetAside", "ChainsEnded", "PassesRepeated"})
"""Metrics with a dimension that are shown without it."""
_SEARCH = re.compile(
    r"SEARCH\('\{(?P<namespace>\w+),(?P<stack>\w+),(?P<dimensions>[\w,]+)\}"
    r' MetricName="(?P<name>\w+)" (?P<filter>\w+)="prod"\', \'(Sum|Average|Maximum)\', 300\)'
)


def wrong_dashboard(stack: Mapping[str, Any]) -> Iterator[str]:
    """A picture of what nobody measures is empty, and nobody is told so."""
    ((name, dashboard),) = of_type(stack, "AWS::CloudWatch::Dashboard").items()
    if dashboard["DashboardName"] != "trainmaster-prod":
        yield f"{name} is named {dashboard['DashboardName']}"
    shown = [one for widget in _widgets(dashboard) for one in widget["metrics"]]
    ours = [_ours(one) for one in shown if _is_ours(one)]
    others = {tuple(one[:4]) for one in shown if not _is_ours(one)}
    yield from (f"{one} is not a metric of ours" for one in ours if one not in _expected())
    yield from (f"{one} is not shown" for one in _expected() if one not in ours)
    if others != set(_of_aws()):
        yield f"of AWS's metrics {sorted(others)} are shown"


ROWS = ("Capacity", "Waits", "Money", "Trouble")


def wrong_layout(stack: Mapping[str, Any]) -> Iterator[str]:
    """Rows with headings, and no two pictures on one spot."""
    ((_, dashboard),) = of_type(stack, "AWS::CloudWatch::Dashboard").items()
    widgets = json.loads(dashboard["DashboardBody"])["widgets"]
    headings = [one["properties"]["markdown"] for one in widgets if one["type"] == "text"]
    if headings != [f"## {row}" for row in ROWS]:
        yield f"headings: {headings}"
    taken = [spot for one in widgets for spot in _spots(one)]
    if len(taken) != len(set(taken)) or any(x >= _COLUMNS for x, _ in taken):
        yield "two pictures are on one spot, or one is beside the page"


WIDGET = {
    "title": "The queue",
    "endpoint": "${QueueWidgetFunction.Arn}",
    "params": {},
    "updateOn": {"refresh": True, "resize": False, "timeRange": False},
}


def wrong_widget(stack: Mapping[str, Any]) -> Iterator[str]:
    """One custom widget; each further kind would be drawn by nobody we know."""
    ((_, dashboard),) = of_type(stack, "AWS::CloudWatch::Dashboard").items()
    widgets = json.loads(dashboard["DashboardBody"])["widgets"]
    custom = [one["properties"] for one in widgets if one["type"] not in {"metric", "text"}]
    if custom != [WIDGET] or [one["type"] for one in widgets].count("custom") != 1:
        yield f"custom widgets: {custom}"


_COLUMNS = 24
"""Of a dashboard. Source: CloudWatch, dashboard body structure."""


def _spots(widget: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
    for x in range(widget["x"], widget["x"] + widget["width"]):
        yield from ((x, y) for y in range(widget["y"], widget["y"] + widget["height"]))


def _widgets(dashboard: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for widget in json.loads(dashboard["DashboardBody"])["widgets"]:
        if widget["type"] != "metric":
            continue
        assert widget["properties"]["region"] == "eu-west-1"
        assert widget["properties"]["title"]
        yield widget["properties"]


def _is_ours(shown: list[Any]) -> bool:
    return isinstance(shown[0], dict) or shown[0] == NAMESPACE


def _ours(shown: list[Any]) -> tuple[str, str | None]:
    """Name and dimensions, with commas between."""
    if isinstance(shown[0], str):
        _, name, dimension, value, _ = shown
        return name, None if (dimension, value) == (STACK, "prod") else f"{dimension}={value}"
    found = _SEARCH.fullmatch(shown[0]["expression"])
    assert found is not None, shown
    assert (found["namespace"], found["stack"], found["filter"]) == (NAMESPACE, STACK, STACK)
    return found["name"], found["dimensions"]


def _expected() -> list[tuple[str, str | None]]:
    """A pool's messages and rows set aside are nobody's business, their sums are."""
    return [
        (one.name, None if one.name in OF_THE_STACK else ",".join(one.dimensions) or None)
        for one in METRICS.values()
    ]


def _of_aws() -> Iterator[tuple[str, ...]]:
    for function in FUNCTIONS:
        yield ("AWS/Lambda", "Errors", "FunctionName", f"${{{function}}}")
        if FUNCTIONS[function].has_dead_letters:
            queue = f"{function.removesuffix('Function').replace('Schedule', 'Doorbell')}DeadLetterQueue"
            yield (
                "AWS/SQS",
                "ApproximateNumberOfMessagesVisible",
                "QueueName",
                f"${{{queue}.QueueName}}",
            )
