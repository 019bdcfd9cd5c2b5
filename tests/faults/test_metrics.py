"""Metrics as the functions write them: lines of their logs in CloudWatch's embedded metric format."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from trainmaster.adapters import emf
from trainmaster.core.monitoring.metrics import METRICS, NAMESPACE, STACK, Sample

from tests.builders import minutes
from tests.faults.scenes import ends
from tests.integration.cloud import OUTAGE
from tests.integration.world import World
from tests.unit.core.outbox.examples import EXAMPLES


@dataclass(frozen=True, slots=True)
class Line:
    """One line of embedded metric format."""

    namespace: str
    dimensions: dict[str, str]
    units: dict[str, str]
    values: dict[str, list[float]]


def lines(printed: str) -> list[Line]:
    documents = [json.loads(one) for one in printed.splitlines() if one.startswith('{"_aws"')]
    return [_line(document) for document in documents]


def _line(document: dict[str, Any]) -> Line:
    (directive,) = document["_aws"]["CloudWatchMetrics"]
    (names,) = directive["Dimensions"]
    metrics = {one["Name"]: one["Unit"] for one in directive["Metrics"]}
    return Line(
        namespace=directive["Namespace"],
        dimensions={name: document[name] for name in names},
        units=metrics,
        values={name: document[name] for name in metrics},
    )


def values_of(printed: str, name: str) -> list[tuple[dict[str, str], list[float]]]:
    """Dimensions, the stack's left out, and values of one metric."""
    found = [line for line in lines(printed) if name in line.values]
    return [({k: v for k, v in line.dimensions.items() if k != STACK}, line.values[name]) for line in found]


def test_every_metric_is_written_with_its_unit_and_dimensions_and_no_other(
    capsys: pytest.CaptureFixture[str], busy: World
) -> None:
    store = busy.wiring.store
    store.leave("main", list(EXAMPLES.values()))
    busy.reconcile()
    busy.schedule()
    busy.wire.lasting["GetItem"] = busy.wire.lasting["Query"] = OUTAGE
    busy.api("GET", "/pools")
    written = lines(capsys.readouterr().out)
    assert {line.namespace for line in written} == {NAMESPACE}
    assert {line.dimensions[STACK] for line in written} == {"trainmaster"}
    assert {name for line in written for name in line.units} == METRICS.keys()
    for line in written:
        for name, unit in line.units.items():
            assert unit == METRICS[name].unit
            own = {METRICS[name].dimension} - {None}
            assert line.dimensions.keys() - {STACK} in ([own, set()] if METRICS[name].also_whole else [own])


def test_a_queue_at_work_in_numbers(capsys: pytest.CaptureFixture[str], busy: World) -> None:
    printed = capsys.readouterr().out
    assert values_of(printed, "Starts") == [({"pool": "main"}, [2.0])]
    assert values_of(printed, "WaitSeconds") == [({"team": "default"}, [0.0, 0.0])]
    busy.submit("job3")
    busy.schedule()
    busy.now += minutes(10)
    busy.reconcile()
    busy.schedule()
    printed = capsys.readouterr().out
    assert ({"pool": "main"}, [1.0]) in values_of(printed, "QueueDepth")
    assert ({"pool": "main"}, [600.0]) in values_of(printed, "OldestWaitSeconds")
    assert values_of(printed, "Starts") == []
    assert values_of(printed, "UnguardedJobs") == [({}, [0.0])]
    ends(busy, "job1")
    printed = capsys.readouterr().out
    assert values_of(printed, "WaitSeconds") == [({"team": "default"}, [600.0])]


def test_samples_of_the_same_dimensions_are_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", NAMESPACE)
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "trainmaster")
    starts, wait, depth = METRICS["Starts"], METRICS["WaitSeconds"], METRICS["QueueDepth"]
    samples = [
        Sample(metric=starts, value=2, of="a"),
        Sample(metric=wait, value=60, of="vision"),
        Sample(metric=depth, value=7, of="a"),
        Sample(metric=wait, value=61, of="vision"),
    ]
    emf.write(samples, stack="prod")
    assert lines(capsys.readouterr().out) == [
        Line(
            NAMESPACE,
            {"pool": "a", "service": "prod"},
            {"Starts": "Count", "QueueDepth": "Count"},
            {"Starts": [2.0], "QueueDepth": [7.0]},
        ),
        Line(
            NAMESPACE,
            {"team": "vision", "service": "prod"},
            {"WaitSeconds": "Seconds"},
            {"WaitSeconds": [60.0, 61.0]},
        ),
    ]
