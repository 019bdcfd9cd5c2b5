"""One pool of the document."""

from datetime import timedelta

from trainmaster.core.policy.model import Aging, Limits, Order, PoolPolicy, Preemption, WarmPool
from trainmaster.core.policy.names import entries_by_type, name_of
from trainmaster.core.policy.quotas import quotas_of
from trainmaster.core.policy.section import MAX_COUNT, Section, duration_text, whole_number
from trainmaster.core.request.options import MAX_PRIORITY

# Bounds of MaxPendingTimeInSeconds: SageMaker API reference, StoppingCondition.
_CAPACITY_WAIT_LEAST = timedelta(minutes=30)
_CAPACITY_WAIT_MOST = timedelta(days=28)
# KeepAlivePeriodInSeconds is at most 21600: SageMaker API reference, ResourceConfig.
_KEEP_ALIVE_MOST = timedelta(hours=6)
# One warm pool lives so long at most: SageMaker developer guide, "SageMaker AI Managed Warm Pools".
_WARM_POOL_LIFE = timedelta(days=28)
_NO_TYPES_HINT = "write capacity: {TYPE: COUNT}, 0 while it drains; or remove the pool"


def pool_of(section: Section) -> PoolPolicy:
    name = name_of(section)
    capacity = _capacity(section.section("capacity"))
    pool = PoolPolicy(
        name=name,
        capacity=capacity,
        spot_capacity=_capacity(section.section("spot_capacity")),
        order=_order(section.section("order")),
        preemption=_preemption(section.section("preemption")),
        capacity_wait=section.duration(
            "capacity_wait",
            default=_CAPACITY_WAIT_LEAST,
            least=_CAPACITY_WAIT_LEAST,
            most=_CAPACITY_WAIT_MOST,
        ),
        quotas=quotas_of(section.section("quotas"), capacity),
        warm_pool=_warm_pool(section.section("warm_pool")),
        limits=_limits(section.section("limits")),
    )
    section.refuse_unknown()
    if not pool.instance_types:
        section.findings.warn(section.path, "has no instance types: no job can wait in it", _NO_TYPES_HINT)
    return pool


def _capacity(section: Section) -> dict[str, int]:
    """Instances by type. A type with 0 still belongs to the pool: that is how one is drained."""
    return {
        instance_type: whole_number(count, section.at(instance_type), section.findings, range(MAX_COUNT + 1))
        for instance_type, count in entries_by_type(section)
    }


def _order(section: Section) -> Order:
    order = Order(
        aging=_aging(section),
        backfill=section.boolean("backfill", default=True),
        shortest_first=section.boolean("shortest_first", default=False),
    )
    section.refuse_unknown()
    return order


def _aging(parent: Section) -> Aging | None:
    written = parent.has("aging")
    value = parent.value("aging")
    # YAML 1.1 reads a bare `off` as false.
    if written and (value is None or value is False or value == "off"):
        return None
    section = Section(value, parent.at("aging"), parent.findings)
    aging = Aging(
        per=section.duration("per", default=Aging().per, least=timedelta(seconds=1)),
        add=section.integer("add", default=Aging().add, least=1, most=MAX_PRIORITY),
    )
    section.refuse_unknown()
    return aging


def _preemption(section: Section) -> Preemption:
    default = Preemption()
    preemption = Preemption(
        enabled=section.boolean("enabled", default=default.enabled),
        min_priority_gap=section.integer(
            "min_priority_gap", default=default.min_priority_gap, least=1, most=MAX_PRIORITY
        ),
        min_runtime=section.duration("min_runtime", default=default.min_runtime),
        preempt_delay=section.duration("preempt_delay", default=default.preempt_delay),
        max_per_job=section.integer("max_per_job", default=default.max_per_job),
        needs_checkpoint=section.boolean("needs_checkpoint", default=default.needs_checkpoint),
    )
    section.refuse_unknown()
    return preemption


def _warm_pool(section: Section) -> WarmPool:
    default = WarmPool()
    warm_pool = WarmPool(
        keep_alive=section.duration("keep_alive", default=default.keep_alive, most=_KEEP_ALIVE_MOST),
        retain=section.duration("retain", default=default.retain, most=_WARM_POOL_LIFE),
        max_idle=section.duration("max_idle", default=default.max_idle, most=_WARM_POOL_LIFE),
    )
    section.refuse_unknown()
    _compare(warm_pool, section)
    return warm_pool


def _compare(warm_pool: WarmPool, section: Section) -> None:
    findings, most = section.findings, duration_text(warm_pool.max_idle)
    if warm_pool.retain > warm_pool.max_idle:
        message = f"is longer than max_idle, {most}: {duration_text(warm_pool.retain)}"
        findings.refuse(section.at("retain"), message, "lower it or raise max_idle")
    if warm_pool.keep_alive > warm_pool.max_idle:
        message = f"is longer than max_idle: after {most} idle instances are released all the same"
        findings.warn(section.at("keep_alive"), message, "lower it or raise max_idle")
    if warm_pool.retain and not warm_pool.keep_alive:
        message = "does nothing: without keep_alive there are no warm pools"
        findings.warn(section.at("retain"), message, "write a keep_alive, e.g. 10m")


def _limits(section: Section) -> Limits:
    default = Limits()
    limits = Limits(
        max_waiting=section.integer("max_waiting", default=default.max_waiting, least=1),
        max_submissions_per_minute=section.integer(
            "max_submissions_per_minute", default=default.max_submissions_per_minute, least=1
        ),
    )
    section.refuse_unknown()
    return limits
