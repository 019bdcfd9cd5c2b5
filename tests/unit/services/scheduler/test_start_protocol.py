"""What a claim makes of a job and the shape that was picked for it."""

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from trainmaster.core.jobs.attempts import Attempt
from trainmaster.core.jobs.instances import Shape
from trainmaster.core.jobs.model import Job
from trainmaster.core.planning.actions import Charge, Start
from trainmaster.core.planning.queue_entries import waiting_entry
from trainmaster.core.policy import WarmPool as WarmRules
from trainmaster.core.policy import parse_policy
from trainmaster.services.scheduler import start_protocol
from trainmaster.services.scheduler.context import PassContext

from tests.builders import NOON, attempt, job, minutes, of, pool
from tests.memory.edges import FOREVER, MemoryAlarms, MemoryMailer, MemoryNotifier, MemoryTurns, one_by_one
from tests.memory.policies import MemoryPolicyStore
from tests.memory.reader import MemoryReader
from tests.memory.sagemaker import MemorySageMaker
from tests.memory.store import MemoryJobStore
from tests.memory.tables import Tables

KEPT = Shape(vector=of(), warm_key="k")
SPOT = Shape(vector=of(spot=True))
TEN_MINUTES = minutes(10)


def clock() -> datetime:
    return NOON


def claimed(one: Job, shape: Shape, *, keep_alive: timedelta = TEN_MINUTES, **start: Any) -> Attempt:
    """The attempt that a start in this shape is claimed with."""
    tables = Tables()
    store, reader, policies = MemoryJobStore(tables), MemoryReader(tables), MemoryPolicyStore(tables)
    policy = policies.put({}, pools=["main"], replaces=policies.current())
    store.submit(one, b"{}")
    now = PassContext(
        pool="main",
        policy_version=policy.version,
        store=store,
        messages=store,
        reader=reader,
        pools=reader,
        training=MemorySageMaker(clock),
        alarms=MemoryAlarms(),
        notifier=MemoryNotifier(),
        mailer=MemoryMailer(),
        turns=MemoryTurns(),
        beside=one_by_one,
        clock=clock,
        deadline=FOREVER,
        stack="tm",
        pool_policy=replace(pool(), warm_pool=WarmRules(keep_alive=keep_alive)),
        policy=parse_policy({}),
    )
    action = Start(job=waiting_entry(one), shape=shape, most_used=of(9), warm={}, **start)
    live = start_protocol.claim(one, action, now).live
    assert live is not None
    return live


@pytest.mark.parametrize(
    ("wish", "pools", "shape", "kept"),
    [
        pytest.param(None, minutes(10), KEPT, minutes(10), id="as long as the pool says"),
        pytest.param(minutes(5), minutes(10), KEPT, minutes(5), id="a user may wish for less"),
        pytest.param(minutes(60), minutes(10), KEPT, minutes(10), id="and for no more"),
        pytest.param(minutes(5), timedelta(), KEPT, None, id="a pool without warm pools keeps none"),
        pytest.param(minutes(5), minutes(10), SPOT, None, id="SageMaker keeps none of spot"),
    ],
)
def test_how_long_instances_are_kept_warm(
    wish: timedelta | None, pools: timedelta, shape: Shape, kept: timedelta | None
) -> None:
    assert claimed(job(keep_alive=wish), shape, keep_alive=pools).keep_alive == kept


@pytest.mark.parametrize(
    ("one", "shape", "wait"),
    [
        pytest.param(job(max_wait=minutes(90)), SPOT, minutes(90), id="spot: as submitted"),
        pytest.param(
            job(),
            SPOT,
            timedelta(hours=7),
            id="spot that the planner picked: the policy's wait on top of the run time",
        ),
        pytest.param(
            job(checkpointed=minutes(20)),
            SPOT,
            timedelta(hours=6, minutes=40),
            id="of the run time that is left",
        ),
        pytest.param(job(max_wait=minutes(90)), KEPT, None, id="on-demand has none, whatever was submitted"),
    ],
)
def test_how_long_a_spot_attempt_may_wait(one: Job, shape: Shape, wait: timedelta | None) -> None:
    assert claimed(one, shape).max_wait == wait


def test_an_attempt_remembers_its_price_its_reservation_and_its_month() -> None:
    charge = Charge(month="2026-11", usd_per_hour=Decimal(6), cents=700)
    live = claimed(job(), KEPT, charge=charge)
    assert (live.claim.usd_per_hour, live.claim.reserved_cents, live.claim.month) == (
        Decimal(6),
        700,
        "2026-11",
    )
    unknown = claimed(job(), KEPT)
    assert (unknown.claim.usd_per_hour, unknown.claim.reserved_cents, unknown.claim.month) == (
        None,
        0,
        "2026-11",
    )


def test_an_attempt_is_a_new_one_of_its_number_with_what_is_left_of_the_run_time() -> None:
    live = claimed(job("a", attempt=2, checkpointed=minutes(20), entry_id="01E"), KEPT)
    assert live == attempt(
        "a-r2-fceeba",
        number=2,
        shape=KEPT,
        max_runtime=minutes(40),
        keep_alive=minutes(10),
        month="2026-11",
        training_job_arn=None,
    )
