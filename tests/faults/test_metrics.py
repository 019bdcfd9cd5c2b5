"""Metrics as the functions write them: lines of their logs in CloudWatch's embedded metric format."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from trainmaster.adapters import emf
from trainmaster.core.errors import UnavailableError
from trainmaster.core.monitoring.metric_samples import samples, samples_of_record
from trainmaster.core.monitoring.metrics import METRICS, NAMESPACE, STACK, Sample
from trainmaster.core.planning.chains import MOST_HOPS
from trainmaster.services.reconciler import Repairs
from trainmaster.services.scheduler.pass_summary import Summary

from tests.builders import A, minutes
from tests.faults.conftest import NewWorld
from tests.faults.scenes import ends
from tests.integration.cloud import OUTAGE, THROTTLED, AnswerLost, Unreachable
from tests.integration.world import Crash, World
from tests.unit.core.outbox.examples import CHANGES, RECORD


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
    for change in CHANGES.values():
        busy.wiring.samples.extend(samples(change))
    busy.wiring.samples.extend(samples_of_record(RECORD, None))
    busy.wiring.samples.extend(Repairs(failures=[KeyError("x")], outdated=2).samples())
    busy.wiring.samples.extend(Summary(repeated=True).samples("main", now=busy.now))
    busy.wiring.samples.append(Sample(metric=METRICS["SpentUsd"], value=12.5, of="default"))
    for name in ("StartsRefused", "StartsPaused"):
        busy.wiring.samples.append(Sample(metric=METRICS[name], value=1, of="main"))
    busy.sagemaker.jobs["job1"].status = "Archived"
    nobody_knows = {"pk": {"S": "E#main"}, "sk": {"S": "0"}, "id": {"S": "0"}, "kind": {"S": "sing"}}
    busy.put_back([*busy.items(), nobody_knows])
    busy.reconcile()
    busy.schedule()
    the_last_of_a_chain_is_not_finished(busy)
    busy.wire.lasting["GetItem"] = busy.wire.lasting["Query"] = OUTAGE
    busy.api("GET", "/pools")
    written = lines(capsys.readouterr().out)
    assert {line.namespace for line in written} == {NAMESPACE}
    assert {line.dimensions[STACK] for line in written} == {"trainmaster"}
    assert {name for line in written for name in line.units} == METRICS.keys()
    for line in written:
        for name, unit in line.units.items():
            assert unit == METRICS[name].unit
            own = set(METRICS[name].dimensions)
            assert line.dimensions.keys() - {STACK} in ([own, set()] if METRICS[name].also_whole else [own])


def the_last_of_a_chain_is_not_finished(world: World) -> None:
    enough, world.remaining_ms = world.remaining_ms, lambda: 0
    body = json.dumps({"version": 1, "pool": "main", "hops": MOST_HOPS})
    world.call("schedule", {"Records": [{"messageId": "1", "body": body}]})
    world.remaining_ms = enough


def test_a_queue_at_work_in_numbers(capsys: pytest.CaptureFixture[str], busy: World) -> None:
    printed = capsys.readouterr().out
    assert values_of(printed, "Starts") == [({"pool": "main"}, [1.0, 1.0])]
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


def test_a_pool_s_instances_and_who_waits_for_them_in_numbers(
    capsys: pytest.CaptureFixture[str], new_world: NewWorld
) -> None:
    b = "ml.b.xlarge"
    world = new_world({"pools": [{"name": "main", "capacity": {A: 1, b: 3}, "spot_capacity": {A: 4}}]})
    for name in ("job1", "job2", "job3"):
        world.submit(name)
    world.schedule()
    printed = capsys.readouterr().out
    assert instances(printed, "InstancesUsed") == {(A, "on-demand"): 1, (b, "on-demand"): 0, (A, "spot"): 0}
    assert instances(printed, "InstancesWarm") == {(A, "on-demand"): 0, (b, "on-demand"): 0, (A, "spot"): 0}
    assert instances(printed, "InstancesCapacity") == {
        (A, "on-demand"): 1,
        (b, "on-demand"): 3,
        (A, "spot"): 4,
    }
    world.reconcile()
    printed = capsys.readouterr().out
    assert instances(printed, "JobsWaiting") == {(A, "on-demand"): 2, (b, "on-demand"): 0, (A, "spot"): 0}
    assert instances(printed, "InstancesUsed") == {}, "reconcile reads no counters"


def test_instances_are_counted_once_a_minute_however_often_the_pool_is_rung(
    capsys: pytest.CaptureFixture[str], busy: World
) -> None:
    capsys.readouterr()
    busy.wake()
    busy.wake()
    assert instances(capsys.readouterr().out, "InstancesUsed") == {}
    busy.now += minutes(1)
    busy.wake()
    assert instances(capsys.readouterr().out, "InstancesUsed") == {(A, "on-demand"): 2}


def test_a_queue_that_nobody_could_read_has_no_number(
    capsys: pytest.CaptureFixture[str], busy: World
) -> None:
    busy.submit("job3")
    busy.wire.lasting["Query"] = OUTAGE
    busy.reconcile()
    printed = capsys.readouterr().out
    for name in ("JobsWaiting", "QueueDepth", "FirstUnseenSeconds"):
        assert values_of(printed, name) == []


def instances(printed: str, name: str) -> dict[tuple[str, str], float]:
    """By type and capacity type, in pool ``main``; each once."""
    found = values_of(printed, name)
    assert all(dimensions["pool"] == "main" and len(values) == 1 for dimensions, values in found)
    return {(one["instance_type"], one["capacity_type"]): values[0] for one, values in found}


def total(printed: str, name: str) -> float:
    """By dimensions; what is written of the whole beside them is the same once more."""
    found = values_of(printed, name)
    parts = [values for dimensions, values in found if dimensions or not METRICS[name].also_whole]
    return sum(map(sum, parts))


def fails(world: World, name: str) -> None:
    world.sagemaker.end(name, "Failed", reason="AlgorithmError: ExecuteUserScriptError: exit code 1")


def test_failures_are_counted_while_nobody_can_be_told(
    capsys: pytest.CaptureFixture[str], new_world: NewWorld
) -> None:
    world = new_world({"pools": [{"name": "main", "capacity": {A: 10}}]})
    names = [f"job{number}" for number in range(10)]
    for name in names:
        world.submit(name)
    world.schedule()
    world.wire.lasting |= {"Publish": Unreachable(), "PutEvents": THROTTLED}
    for name in names:
        fails(world, name)
        world.tell(name)
    world.schedule()
    assert world.messages.kinds() == []
    assert world.messages.mails == []
    printed = capsys.readouterr().out
    each = [({"failure_class": "user-code"}, [1.0]), ({}, [1.0])]
    assert values_of(printed, "Failures") == each * 10
    world.wire.heal()
    world.a_minute_passes()
    assert world.messages.kinds() == ["Job Failed"] * 10
    assert total(capsys.readouterr().out, "Failures") == 0, "a notice is not counted again"


def test_B1_an_end_that_is_delivered_five_times_is_counted_once(
    capsys: pytest.CaptureFixture[str], busy: World
) -> None:
    fails(busy, "job1")
    busy.meanwhile["TransactWriteItems"] = lambda: busy.tell("job1")
    for _ in range(5):
        busy.tell("job1")
    busy.reconcile()
    busy.schedule()
    assert total(capsys.readouterr().out, "Failures") == 1


def test_an_end_whose_write_was_not_answered_is_counted_once(
    capsys: pytest.CaptureFixture[str], busy: World
) -> None:
    fails(busy, "job1")
    busy.wire.strike("TransactWriteItems", 1, AnswerLost())
    busy.tell("job1")
    busy.tell("job1")
    assert total(capsys.readouterr().out, "Failures") == 1


@pytest.mark.parametrize("phase", ["before", "after"])
def test_a_death_around_the_write_of_an_end_counts_it_at_most_once(
    capsys: pytest.CaptureFixture[str], busy: World, phase: str
) -> None:
    fails(busy, "job1")
    assert busy.dies(lambda: busy.tell("job1"), Crash("TransactWriteItems", phase))
    counted = 0 if phase == "after" else 1
    busy.tell("job1")
    busy.a_minute_passes()
    assert busy.states("job1") == ["failed"]
    assert total(capsys.readouterr().out, "Failures") == counted


def test_what_was_written_before_a_function_raised_is_counted(
    capsys: pytest.CaptureFixture[str], preempting: World
) -> None:
    preempting.sagemaker.end("job1", "Stopped")
    preempting.wire.lasting["SendMessageBatch"] = OUTAGE
    with pytest.raises(UnavailableError):
        preempting.tell("job1")
    assert total(capsys.readouterr().out, "Preemptions") == 1


def test_what_a_pass_had_written_before_it_failed_is_counted(
    capsys: pytest.CaptureFixture[str], world: World
) -> None:
    world.submit("job1")
    world.meanwhile["CreateTrainingJob"] = lambda: world.wire.lasting.update(Query=OUTAGE)
    body = json.dumps({"version": 1, "pool": "main"})
    answer = world.call("schedule", {"Records": [{"messageId": "1", "body": body}]})
    assert answer == {"batchItemFailures": [{"itemIdentifier": "1"}]}
    assert total(capsys.readouterr().out, "Starts") == 1


@pytest.mark.parametrize("count", [99, 100, 101, 250])
def test_however_many_samples_there_are_each_is_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], count: int
) -> None:
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", NAMESPACE)
    emf.write([Sample(metric=METRICS["Starts"], value=1, of="main")] * count, stack="prod")
    written = lines(capsys.readouterr().out)
    assert sum(len(line.values["Starts"]) for line in written) == count
    assert all(line.dimensions == {"pool": "main", STACK: "prod"} for line in written)


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
