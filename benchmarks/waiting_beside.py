"""Measures what a pass costs beside jobs that wait for others, and beside arrays whose tasks are no jobs yet.

Each kind waits in a table of its own, beside the same full pool and queue. An array of 64 tasks has as many
waiting jobs as one of 10,000, so the two must cost the same.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from trainmaster.adapters.dynamodb import DynamoJobStore, DynamoReader
from trainmaster.core.arrays.array_model import MOST_WAITING_JOBS, Array, array_request
from trainmaster.core.arrays.tasks import array_entry_id
from trainmaster.core.jobs.index_sets import all_bits
from trainmaster.core.policy import parse_policy
from trainmaster.core.records import Admission
from trainmaster_client.report import Report

from benchmarks.deep_queue import BODY, RETENTION_DAYS, DeepQueue, ready_made, sender
from benchmarks.dependents import Dependents, end_chain
from benchmarks.metered_passes import Passes, take_turns
from benchmarks.tables import at_most
from local.clock import TwinClock
from local.engine.moto_engine import MotoEngine

LINKS, CHILDREN, TASKS = 1_000, 10_000, 10_000
BESIDE = 256
"""Jobs that wait for instances beside them."""
FEW_TASKS = 64
MAX_RATIO = 1.2
"""CPU of a pass with them against the same pass without them."""
ARRAY = "sweep"
COUNTS = ("items_read", "queries", "calls", "rcu", "wcu")


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingSizes:
    links: int = LINKS
    """Jobs of the chain."""
    children: int = CHILDREN
    """Jobs that wait for one job."""
    tasks: int = TASKS
    """Tasks of the large array."""


def measure_beside(sizes: WaitingSizes, *, runs: int) -> dict[str, Any]:
    """Return the costs of a pass without and with each kind, and of the end of the chain."""
    engine = MotoEngine(clock=TwinClock(manual=False))
    kinds = ("none", "chain", "children", "few-tasks", "tasks")
    queues = ready_made(engine, [DeepQueue(pending=BESIDE, label=f"-{kind}") for kind in kinds])
    client = engine.client("dynamodb")
    chain, children = (Dependents.over(queue, client) for queue in queues[1:3])
    chain.add_chain(sizes.links)
    children.add_children(sizes.children, sender(engine))
    add_array(queues[3], client, tasks=FEW_TASKS)
    add_array(queues[4], client, tasks=sizes.tasks)
    several = [Passes.over(queue, engine) for queue in queues]
    for passes in several:
        passes.first = passes.settle()
    take_turns(several, runs=runs)
    measured = {kind: passes.summary() for kind, passes in zip(kinds, several, strict=True)}
    ended = end_chain(chain, several[1].scheduler, links=sizes.links)
    facts = {
        "sizes": {"chain": sizes.links, "children": sizes.children, "tasks": sizes.tasks},
        "passes": measured,
        "first_passes": {kind: passes.first for kind, passes in zip(kinds, several, strict=True)},
        "chain_end": ended,
        "waiting_task_jobs": _waiting_task_jobs(queues[4], client),
    }
    engine.close()
    return facts


def add_array(queue: DeepQueue, client: Any, *, tasks: int) -> None:
    """Submit an array that ranks behind all jobs of the queue, with one value for each task."""
    store = DynamoJobStore(client, table=queue.table, retention_days=RETENTION_DAYS)
    model = DynamoReader(client, table=queue.table).job(queue.name(0))
    assert model is not None
    now = datetime.now(UTC)
    spec = replace(model.spec, name=ARRAY, entry_id=array_entry_id(f"03{0:024d}"), submitted_at=now)
    score = int(now.timestamp() * 1000)
    template = replace(model, spec=spec, ver=0, priority=0, score=score, waiting=None)
    array = Array(template=template, indices=tuple(range(tasks)), unexpanded=all_bits(tasks))
    request = array_request(json.loads(BODY), [{"seed": str(number)} for number in range(tasks)])
    limits = parse_policy(queue.policy).pools[0].limits
    store.submit_array(array, request, Admission(policy_version=1, limits=limits))


def _waiting_task_jobs(queue: DeepQueue, client: Any) -> int:
    array = DynamoReader(client, table=queue.table).array(ARRAY)
    assert array is not None
    return array.jobs.waiting


def check_beside(report: Report) -> None:
    """Compare each kind with the same pass without it, and the large array with the small one."""
    facts = report.facts["beside"]
    passes = facts["passes"]
    for kind, other in (("chain", "none"), ("children", "none"), ("tasks", "few-tasks")):
        for name in COUNTS:
            expected, actual = passes[other][name], passes[kind][name]
            report.check(f"{kind}-wait-{name}", expected=expected, actual=actual, ok=actual == expected)
        ratio = round(passes[kind]["cpu_ms"] / passes[other]["cpu_ms"], 3)
        at_most(report, f"{kind}-wait-cpu_ms", ratio, MAX_RATIO, f"times that of {other}")
    jobs = facts["waiting_task_jobs"]
    report.check("tasks-as-jobs", expected=MOST_WAITING_JOBS, actual=jobs, ok=0 < jobs <= MOST_WAITING_JOBS)
    ended, links = facts["chain_end"], facts["sizes"]["chain"]
    passes_needed, notices = ended["passes"], ended["notices"]
    report.check(
        "chain-passes", expected="fewer than links / 50", actual=passes_needed, ok=passes_needed <= links / 50
    )
    report.check("chain-notices", expected=1, actual=notices, ok=notices == 1)
    _print_table(facts["passes"], facts["sizes"])
    print(f"a chain of {links:,}: ended in {passes_needed} passes, {ended['cpu_ms_a_link']} ms CPU a job")


def _print_table(passes: Mapping[str, Mapping[str, Any]], sizes: Mapping[str, int]) -> None:
    words = {
        "none": "nothing",
        "chain": f"a chain of {sizes['chain']:,} jobs",
        "children": f"{sizes['children']:,} children of one job",
        "few-tasks": f"an array of {FEW_TASKS} tasks",
        "tasks": f"an array of {sizes['tasks']:,} tasks",
    }
    for kind, row in passes.items():
        print(
            f"a pass beside {words[kind]}: {row['items_read']} items in {row['queries']} queries,"
            f" {row['rcu']} RCU, {row['wcu']} WCU, {row['cpu_ms']} ms CPU"
        )
