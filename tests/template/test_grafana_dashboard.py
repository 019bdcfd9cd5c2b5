"""docs/examples/grafana: every panel asks for a metric that is written, with just the dimensions it has."""

import json
from typing import Any

from trainmaster.core.monitoring.metrics import METRICS, NAMESPACE, STACK, Unit

from tests.template.stack import ROOT

BOARD: dict[str, Any] = json.loads((ROOT / "docs/examples/grafana/trainmaster.json").read_text())
PANELS = [one for one in BOARD["panels"] if one["type"] != "row"]
TARGETS = [(panel, one) for panel in PANELS for one in panel["targets"]]
SOURCE = {"type": "cloudwatch", "uid": "${datasource}"}
LEFT_OUT = {"ChainsEnded", "OutdatedDefaults", "PassesRepeated", "RepairsFailed", "UnknownStatuses"}
"""For whoever works on the stack itself; its own dashboard in CloudWatch has them."""
COLUMNS = 24


def test_every_metric_exists_and_is_asked_for_as_it_is_written() -> None:
    for panel, target in TARGETS:
        metric = METRICS[target["metricName"]]
        whole = {STACK: "$stack"}
        own = whole | dict.fromkeys(metric.dimensions, "*")
        assert target["namespace"] == NAMESPACE
        assert target["dimensions"] in ([own, whole] if metric.also_whole else [own]), target
        assert target["matchExact"] is True, "without it CloudWatch mixes the whole stack's in"
        assert (panel["fieldConfig"]["defaults"]["unit"] == "s") == (metric.unit is Unit.SECONDS)


def test_every_metric_for_users_is_shown() -> None:
    assert {one["metricName"] for _, one in TARGETS} == METRICS.keys() - LEFT_OUT


def test_source_region_and_stack_are_variables() -> None:
    variables = {one["name"]: one["type"] for one in BOARD["templating"]["list"]}
    assert variables == {"datasource": "datasource", "region": "query", "stack": "textbox"}
    for panel, target in TARGETS:
        assert panel["datasource"] == target["datasource"] == SOURCE
        assert target["region"] == "$region"
    assert "arn:" not in json.dumps(BOARD)


def test_a_dimension_in_a_legend_is_one_of_the_metric() -> None:
    for _, target in TARGETS:
        named = {part.partition("')")[0] for part in target["label"].split("Dim.")[1:]}
        assert named == target["dimensions"].keys() - {STACK}, target["label"]


def test_panels_have_ids_of_their_own_and_do_not_overlap() -> None:
    ids = [one["id"] for one in BOARD["panels"]]
    assert len(ids) == len(set(ids))
    spots = [
        (x, y)
        for one in BOARD["panels"]
        for x in range(one["gridPos"]["x"], one["gridPos"]["x"] + one["gridPos"]["w"])
        for y in range(one["gridPos"]["y"], one["gridPos"]["y"] + one["gridPos"]["h"])
    ]
    assert len(spots) == len(set(spots))
    assert max(x for x, _ in spots) < COLUMNS
    for panel in PANELS:
        references = [one["refId"] for one in panel["targets"]]
        assert len(references) == len(set(references))
