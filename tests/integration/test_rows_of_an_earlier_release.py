"""A stack goes on with the table of an earlier release: nothing is lost, and no job ends because of it."""

import base64
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from boto3.dynamodb.types import TypeSerializer

from tests.builders import of
from tests.faults.alarming import alarms
from tests.integration.cloud import Cloud
from tests.integration.conftest import TABLE, make_table
from tests.integration.sagemaker_stub import SageMakerStub, TrainingJob
from tests.integration.world import World

LEFT: dict[str, Any] = json.loads(Path("tests/fixtures/table_before_layout.json").read_text())
AT = datetime.fromisoformat(LEFT["at"])
ROWS: list[dict[str, Any]] = LEFT["rows"]
JOBS = {row["spec"]["name"]: row for row in ROWS if row["sk"] == "job"}
ADOPTED_OUTSIDE = of(1, "ml.m5.4xlarge")
"""Of a pool that no policy bounds."""
FINAL = {"completed", "failed", "stopped"}
NEW_NAMES = {
    *("refused", "refused_by_account", "max_pending", "missing_since", "reuses", "live", "told#"),
    *("warm_start", "history_since", "changed_at", "past#", "statuses"),
    *("stopped_for", "made_room_for", "futile", "startups", "no_capacity", "served#"),
    *("trained#", "unserved#", "short_at#"),
    *("unseen", "metrics_sought_at", "stops", "warm_saved", "warm_saved_cents", "cold_startup", "because"),
}
"""Attributes that later releases write beside the others; the earlier one ignores what it does not know."""
UNFINISHED = {name: row["state"] for name, row in JOBS.items() if row["state"] not in FINAL}
NEW_ROWS = {"O", "OT", "L", "D", "DL", "DW", "DWL", "C", "G", "Y", "WH"}
"""How partitions begin that the earlier release does not look into."""
NEW_POOL_ROWS = {("P", "told"), ("P", "front")}
"""Of pools, which it reads by their keys."""
ERRANDS = [row for row in ROWS if row["pk"].startswith("E#")]


@pytest.fixture(scope="module")
def cloud() -> Cloud:
    return Cloud()


@pytest.fixture
def world(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """The stack of today, over what the earlier release left in the table, SageMaker and CloudWatch."""
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "trainmaster")
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "trainmaster")
    with cloud.open():
        cloud.empty()
        make_table(cloud.client("dynamodb"), TABLE)
        queue = cloud.client("sqs").create_queue(QueueName="doorbell")
        world = World(cloud=cloud, queue_url=queue["QueueUrl"])
        world.put_back([_item(row) for row in ROWS])
        world.sagemaker = _sagemaker(world)
        world.checkpoints = {uri: datetime.fromisoformat(at) for uri, at in LEFT["checkpoints"].items()}
        _put_alarms(world)
        world.now = AT
        yield world


def _item(row: dict[str, Any]) -> dict[str, Any]:
    serialize = TypeSerializer().serialize
    return {name: serialize(_bytes(content)) for name, content in row.items()}


def _bytes(content: Any) -> Any:
    match content:
        case {"base64": text}:
            return base64.b64decode(text)
        case _:
            return content


def _sagemaker(world: World) -> SageMakerStub:
    jobs = {name: TrainingJob(**_instants(job)) for name, job in LEFT["training_jobs"].items()}
    return SageMakerStub(clock=lambda: world.now, jobs=jobs, limits=dict(LEFT["limits"]), keeps_released=True)


def _instants(job: dict[str, Any]) -> dict[str, Any]:
    """Its instants as such; its request stays as it was sent."""
    named = {"created", "training_since", "ended", "warm_until"} & job.keys()
    steps = [
        {**step, "StartTime": datetime.fromisoformat(step["StartTime"])}
        for step in job.get("transitions", [])
    ]
    return {**job, **{name: datetime.fromisoformat(job[name]) for name in named}, "transitions": steps}


def _put_alarms(world: World) -> None:
    cloudwatch = world.cloud.client("cloudwatch")
    for alarm in LEFT["alarms"]:
        world.now = datetime.fromisoformat(alarm["since"])
        cloudwatch.put_metric_alarm(**alarm["put"])
        if alarm["state"] != "INSUFFICIENT_DATA":
            cloudwatch.set_alarm_state(
                AlarmName=alarm["put"]["AlarmName"], StateValue=alarm["state"], StateReason="as it was"
            )


def unfinished(world: World) -> dict[str, str]:
    """The states now of the jobs that had not ended in the earlier release."""
    return {name: world.job(name).state.value for name in UNFINISHED}


def check(world: World) -> None:
    """The invariants hold; what is written under new names is what the earlier release does well without."""
    world.check(*JOBS, capacity={**world.capacity(), **ADOPTED_OUTSIDE})
    new = words(world.items()) - words(_item(row) for row in ROWS)
    unknown = {one for one in new if one.partition(" ")[2].split(".")[0] not in NEW_NAMES}
    # run times that expire; a cause that is read as a text alone
    assert unknown <= {"H ttl", "J#a cents_by.unknown"}


def words(items: Iterable[dict[str, Any]]) -> set[str]:
    """Of keys and attributes, without the names and instants in them."""
    found = set()
    for item in items:
        pk, sk = item["pk"]["S"].partition("#")[0], item["sk"]["S"]
        if pk in NEW_ROWS or (pk, sk) in NEW_POOL_ROWS:
            continue
        row = f"{pk}#{sk.partition('#')[0]}" if pk in {"J", "N", "P", "POLICY", "U"} else pk
        found |= {f"{row} {name}" for name in _names({"M": item})}
    return found


def _names(content: dict[str, Any]) -> Iterator[str]:
    for name, part in content.get("M", {}).items():
        kind, mark, _ = name.partition("#")
        yield kind + mark
        yield from (f"{kind}{mark}.{inner}" for inner in _names(part))


def minutes_pass(world: World) -> None:
    """SageMaker ends what it was told to stop and trains the rest; no event of it arrives."""
    for name, job in world.sagemaker.live().items():
        if job.status == "Stopping":
            world.sagemaker.end(name, "Stopped")
        elif job.secondary == "Starting":
            world.sagemaker.train(name)
    world.a_minute_passes()


def rows(world: World) -> dict[tuple[str, str], dict[str, Any]]:
    return {(item["pk"]["S"], item["sk"]["S"]): item for item in world.items()}


# ---- what is read


def test_the_counters_that_were_left_are_the_sums_over_the_jobs_that_were_left(world: World) -> None:
    world.sagemaker.end("stray-rude", "Completed")  # no job of ours, and an errand stops it
    check(world)


def test_lists_and_single_jobs_show_every_row_of_a_job(world: World) -> None:
    listed = world.api("GET", "/jobs", query={"limit": "100"})["jobs"]
    for state in sorted(FINAL):
        listed += world.api("GET", "/jobs", query={"state": state})["jobs"]
    assert {job["name"]: job["state"] for job in listed} == {name: row["state"] for name, row in JOBS.items()}
    for name, row in JOBS.items():
        view = world.api("GET", f"/jobs/{name}")
        assert (view["status"], view["state"], view["team"]) == (200, row["state"], row["team"])
        assert (view["priority"], view["pool"]) == (row["priority"], row["spec"]["pool"])
        shown = Counter({"a": len(view["attempts"]), "h": len(view["history"])})
        assert shown == Counter(
            one["sk"][0] for one in ROWS if one["pk"] == f"J#{name}" and one["sk"][1] == "#"
        )


def test_usage_shows_every_month_and_violations_every_record(world: World) -> None:
    months = {row["pk"].removeprefix("U#"): row for row in ROWS if "spent" in row}
    assert len(months) > 1
    for whose, total in months.items():
        team, month = whose.split("#")
        usage = world.api("GET", "/usage", query={"team": team, "month": month})
        kept = Counter(row["sk"][:2] for row in ROWS if row["pk"] == f"U#{whose}")
        assert usage["status"] == 200
        assert (len(usage["jobs"]), len(usage["preemptions"])) == (kept["j#"], kept["p#"])
        assert usage["budget"]["spent"] == total["spent"] / 100
    for month in ("2026-10", "2026-11"):
        kept_records = [row["training_job_name"] for row in ROWS if row["pk"] == f"V#{month}"]
        found = world.api("GET", "/violations", query={"month": month})["violations"]
        assert [one["training_job_name"] for one in found] == kept_records


def test_pools_and_policy_are_as_they_were_left(world: World) -> None:
    current = next(row for row in ROWS if (row["pk"], row["sk"]) == ("POLICY", "current"))
    policy = world.api("GET", "/policy")
    assert (policy["status"], policy["revision"], policy["paused"]) == (200, current["revision"], False)
    assert policy["policy"] == json.loads(current["document"])
    pools = {pool["name"]: pool for pool in world.api("GET", "/pools")["pools"]}
    assert {name: pool["waiting"] for name, pool in pools.items()} == {"main": 7, "big": 3, "cpu": 4}
    assert pools["main"]["reranking"], "its order was changed, and no pass has seen that yet"
    assert pools["big"]["account_limits"][0]["limit"] == 1
    assert [one["instances"] for one in pools["cpu"]["warm_pools"]] == [1, 1]


# ---- what is written


def test_a_job_that_is_written_again_keeps_every_attribute_that_was_stored(world: World) -> None:
    """Also of the parts that this release may keep in other classes than the earlier one did."""
    before = of_jobs(world)
    for name in UNFINISHED:
        answer = world.patch(name, priority=JOBS[name]["priority"] + 1)
        assert answer["status"] == 200, answer
    assert world.job("vision-halved").priority == 1
    after = of_jobs(world)
    lost = [
        (key, name)
        for key, row in before.items()
        for name, content in row.items()
        if after[key].get(name) != content
    ]
    assert lost == []


def of_jobs(world: World) -> dict[tuple[str, str], dict[str, Any]]:
    """Every row of jobs without what a priority changes; those of queues by name, not by turn.

    Why a job waits is in its own row and no longer in its queue entry.
    """
    ranks = {"sk", "priority", "score", "ranked_by", "ver", "waiting_code"}
    found = {}
    for item in world.items():
        kind, key = item["pk"]["S"][:2], item["sk"]["S"]
        if kind in {"J#", "N#", "R#", "B#", "Q#"}:
            kept = {name: content for name, content in item.items() if name not in ranks}
            found[item["pk"]["S"], key.rpartition("#")[2] if kind == "Q#" else key] = kept
    return found


# ---- passes


SOON = {
    "language-costly": "pending",  # its team's budget does not cover it
    "language-held": "held",
    "language-stray": "running",
    "language-unguarded": "stopped",
    "language-wait": "running",  # its back-off is over
    "stray-no-pool": "running",
    "vision-big-1": "running",
    "vision-big-2": "pending",  # the account allows one, as was learned
    "vision-big-3": "pending",
    "vision-bumped": "running",
    "vision-busy": "preempted",
    "vision-choice": "running",
    "vision-groups": "pending",
    "vision-halved": "stopped",  # nobody told its GPUs anything after the warning
    "vision-overdue": "running",
    "vision-reuses": "running",
    "vision-spot": "running",
    "vision-throttled": "stopped",
    "vision-unheard": "running",
    "vision-unsent": "running",  # its lease ran out: started again
    "vision-urgent-1": "running",
    "vision-urgent-2": "running",
    "vision-victim": "pending",
    "vision-wait-0": "running",
    "vision-wait-1": "pending",
    "vision-wait-2": "running",  # was preempted in between
    "vision-wait-wide": "pending",
    "vision-wide": "running",  # the warm pool in its way is gone
}
"""A quarter of an hour later."""


def test_jobs_of_every_state_go_on_from_where_they_were_and_errands_are_done(world: World) -> None:
    told = Counter(row["notice"]["kind"] for row in ERRANDS if row["kind"] == "tell")
    of_a_pass_that_died = Counter(row["notice"]["kind"] for row in ERRANDS if "taken_until" in row)
    assert sum(of_a_pass_that_died.values()) == 1
    world.reconcile()
    world.schedule()
    changed = {name: state for name, state in unfinished(world).items() if state != UNFINISHED[name]}
    assert changed == {
        "vision-urgent-2": "running",  # the room that was held for it is there
        "vision-unheard": "running",  # SageMaker has it, and it is not a moment old
    }
    assert Counter(world.messages.kinds()) == told - of_a_pass_that_died
    assert [world.sagemaker.jobs[name].stops for name in ("stray-rude", "language-unguarded")] == [1, 1]
    assert [alarm for alarm in alarms(world) if "language-dozed" in alarm] == []
    for _ in range(3):
        minutes_pass(world)
    assert unfinished(world) == SOON
    check(world)
    assert Counter(world.messages.kinds()) >= told
    assert [row for row in world.items() if row["pk"]["S"].startswith("E#")] == []
    assert "vision-unheard" not in world.sagemaker.creates, "SageMaker had it already"
    assert world.sagemaker.creates.count("vision-unsent") == 1


def test_everything_ends_as_room_comes_free(world: World) -> None:
    world.sagemaker.limits.clear()
    assert world.patch("language-held", held=False)["status"] == 200
    assert world.cancel("language-costly") == 202
    for _ in range(5):
        for name, job in world.sagemaker.live().items():
            if job.secondary == "Training":
                world.sagemaker.end(name, "Completed")
        minutes_pass(world)
    stopped = {name: state for name, state in unfinished(world).items() if state != "completed"}
    assert stopped == dict.fromkeys(("language-costly", "language-unguarded", "vision-throttled"), "stopped")
    check(world)
    assert [
        entry for pool in ("main", "big", "cpu", "-") for entry in world.wiring.reader.running(pool)
    ] == []
