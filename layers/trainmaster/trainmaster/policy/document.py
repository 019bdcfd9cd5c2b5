"""From the policy document to ``Policy``: every mistake in it is found in one go."""

import re
from collections.abc import Iterable, Iterator
from datetime import timedelta

from trainmaster.errors import FieldError, PolicyViolationError
from trainmaster.policy.model import Aging, Order, Policy, PoolPolicy, Preemption, TeamPolicy
from trainmaster.policy.principals import PrincipalPattern, parse_principal
from trainmaster.policy.section import MAX_COUNT, Findings, Section, shown, whole_number
from trainmaster.user_options import MAX_PRIORITY

# Names become parts of table keys (where `#` separates) and of tags; a pool called `-` is nobody's.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/=+@-]{0,62}")
_NAME_HINT = "1 to 63 letters, digits and _ . : / = + @ -, beginning with a letter or digit"
_INSTANCE_TYPE = re.compile(r"ml\.[a-z0-9-]+\.[a-z0-9-]+")
_INSTANCE_TYPE_HINT = "write it as SageMaker does, e.g. ml.g5.12xlarge"
_PRINCIPAL_HINT = "write arn:aws:iam::111122223333:role/NAME (or :user/NAME); * may stand only inside NAME"
# Bounds of MaxPendingTimeInSeconds: SageMaker API reference, StoppingCondition.
_CAPACITY_WAIT_LEAST = timedelta(minutes=30)
_CAPACITY_WAIT_MOST = timedelta(days=28)
# A new policy and what it replaces tell every pool in one transaction: DynamoDB limits, 100 items.
MAX_POOLS = 48

_LATER_POOL_MAPPINGS = ("quotas", "warm_pool", "limits")
_LATER_ORDERS = ("backfill", "shortest_first")
_LATER_TEAM_MAPPINGS = ("budget", "rules")
_LATER_TEAM_LISTS = ("roles", "images", "s3_prefixes")
_LATER_MAPPINGS = (
    "rules",
    "unmanaged_jobs",
    "idle",
    "utilization",
    "checkpoints",
    "recovery",
    "spot",
    "notifications",
    "prices",
)


def parse_policy(document: object) -> Policy:
    """Check a document and complete it with the defaults.

    Args:
        document: Parsed JSON. ``{}`` is valid: no pools, every caller in team ``default``.

    Raises:
        PolicyViolationError: With everything that is wrong, each with its path.
    """
    if not isinstance(document, dict):
        raise PolicyViolationError("the policy document must be a mapping", errors=[_not_a_mapping(document)])
    findings = Findings()
    root = Section(document, "", findings)
    root.integer("version", default=1, least=1, most=1)
    pools = tuple(_pool(section) for section in _sections(root, "pools", "write a list of pools"))
    teams = tuple(_team(section) for section in _sections(root, "teams", "write a list of teams"))
    admins = _principals(root, "admins")
    root.keep(dict, *_LATER_MAPPINGS)
    root.refuse_unknown()
    if len(pools) > MAX_POOLS:
        findings.refuse("pools", f"has {len(pools)} pools", f"write at most {MAX_POOLS}")
    _refuse_repeated_names("pools", (pool.name for pool in pools), findings)
    _refuse_repeated_names("teams", (team.name for team in teams), findings)
    _refuse_shared_types(pools, findings)
    if findings.errors:
        raise PolicyViolationError(_summary(findings.errors), errors=findings.errors)
    return Policy(pools=pools, teams=teams, admins=admins, warnings=tuple(findings.warnings), source=document)


def _not_a_mapping(document: object) -> FieldError:
    return FieldError(
        field="", message=f"must be a mapping, not {shown(document)}", hint="write {} for an empty one"
    )


def _summary(errors: list[FieldError]) -> str:
    return f"the policy document has {len(errors)} error{'s' if len(errors) > 1 else ''}"


def _sections(parent: Section, key: str, hint: str) -> Iterator[Section]:
    for path, item in parent.items(key, hint):
        yield Section({} if item is None else item, path, parent.findings)


def _pool(section: Section) -> PoolPolicy:
    pool = PoolPolicy(
        name=_name(section),
        capacity=_capacity(section.section("capacity")),
        spot_capacity=_capacity(section.section("spot_capacity")),
        order=_order(section.section("order")),
        preemption=_preemption(section.section("preemption")),
        capacity_wait=section.duration(
            "capacity_wait",
            default=_CAPACITY_WAIT_LEAST,
            least=_CAPACITY_WAIT_LEAST,
            most=_CAPACITY_WAIT_MOST,
        ),
    )
    section.keep(dict, *_LATER_POOL_MAPPINGS)
    section.refuse_unknown()
    return pool


def _name(section: Section) -> str:
    name = section.value("name")
    if isinstance(name, str) and _NAME.fullmatch(name):
        return name
    message = "is missing" if name is None else f"is not a name: {shown(name)}"
    section.findings.refuse(section.at("name"), message, _NAME_HINT)
    return ""


def _capacity(section: Section) -> dict[str, int]:
    """Instances by type. A type with 0 still belongs to the pool: that is how one is drained."""
    counts: dict[str, int] = {}
    for instance_type, count in section.entries():
        path = section.at(instance_type)
        if not _INSTANCE_TYPE.fullmatch(instance_type):
            message = f"is not an instance type: {shown(instance_type)}"
            section.findings.refuse(path, message, _INSTANCE_TYPE_HINT)
            continue
        counts[instance_type] = whole_number(count, path, section.findings, range(MAX_COUNT + 1))
    return counts


def _order(section: Section) -> Order:
    order = Order(
        aging=_aging(section),
        backfill=section.boolean("backfill", default=True),
        shortest_first=section.boolean("shortest_first", default=False),
    )
    for key in _LATER_ORDERS:
        if section.value(key) is True:
            section.warn_kept(key)
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


def _team(section: Section) -> TeamPolicy:
    team = TeamPolicy(
        name=_name(section),
        principals=_principals(section, "principals"),
        max_priority=section.integer("max_priority", default=MAX_PRIORITY, most=MAX_PRIORITY),
    )
    section.keep(dict, *_LATER_TEAM_MAPPINGS)
    section.keep(list, *_LATER_TEAM_LISTS)
    section.refuse_unknown()
    return team


def _principals(section: Section, key: str) -> tuple[PrincipalPattern, ...]:
    patterns = (
        _principal(value, path, section.findings)
        for path, value in section.items(key, "write a list of ARNs")
    )
    return tuple(pattern for pattern in patterns if pattern is not None)


def _principal(value: object, path: str, findings: Findings) -> PrincipalPattern | None:
    pattern = parse_principal(value) if isinstance(value, str) else None
    if pattern is None:
        findings.refuse(path, f"is not a role or user: {shown(value)}", _PRINCIPAL_HINT)
    elif pattern.is_wider_than_it_looks:
        findings.warn(
            path,
            "matches every role of the account: a caller's session does not tell the role's path",
            "name the roles, e.g. role/vision-*",
        )
    return pattern


def _refuse_repeated_names(key: str, names: Iterable[str], findings: Findings) -> None:
    first: dict[str, int] = {}
    for index, name in enumerate(names):
        if first.setdefault(name, index) != index and name:
            message = f"{key}[{first[name]}] has the name {shown(name)} already"
            findings.refuse(f"{key}[{index}].name", message, "give each a name of its own")


def _refuse_shared_types(pools: tuple[PoolPolicy, ...], findings: Findings) -> None:
    """A type belongs to exactly one pool, or a job could not tell which one it waits in."""
    owner: dict[str, int] = {}
    for index, pool in enumerate(pools):
        for key, capacity in (("capacity", pool.capacity), ("spot_capacity", pool.spot_capacity)):
            for instance_type in capacity:
                first = owner.setdefault(instance_type, index)
                if first != index:
                    findings.refuse(
                        f"pools[{index}].{key}.{instance_type}",
                        f"belongs to pools[{first}] already",
                        "leave the type in one pool",
                    )
