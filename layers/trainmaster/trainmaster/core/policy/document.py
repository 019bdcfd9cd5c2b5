"""From the policy document to ``Policy``: every mistake in it is found in one go."""

from collections.abc import Iterable, Iterator
from decimal import Decimal

from trainmaster.core.errors import FieldError, PolicyViolationError
from trainmaster.core.policy.governing_sections import governing_of
from trainmaster.core.policy.model import DEFAULT_TEAM, AtLimit, Budget, Policy, PoolPolicy, TeamPolicy
from trainmaster.core.policy.names import entries_by_type, name_of, principals_of
from trainmaster.core.policy.pools import pool_of
from trainmaster.core.policy.principals import PrincipalPattern
from trainmaster.core.policy.rule_sections import images_of, roles_of, rules_of, s3_prefixes_of
from trainmaster.core.policy.section import Findings, Section, nearest, path_of, shown, usd
from trainmaster.core.request.options import MAX_PRIORITY

_WIDE = "matches every role of the account: a caller's session does not tell the role's path"
# A new policy and what it replaces tell every pool in one transaction: DynamoDB limits, 100 items.
MAX_POOLS = 48
# Wider than any price or budget there is: they only catch a slip of the finger.
_LEAST_PRICE, _MOST_PRICE = Decimal("0.0001"), Decimal(1_000_000)
_LEAST_BUDGET, _MOST_BUDGET = Decimal("0.01"), Decimal(1_000_000_000)


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
    pools = tuple(pool_of(section) for section in _sections(root, "pools", "write a list of pools"))
    teams = tuple(_team(section) for section in _sections(root, "teams", "write a list of teams"))
    admins = _principals(root, "admins")
    prices = _prices(root.section("prices"))
    governing = governing_of(root)
    rules = rules_of(root)
    root.refuse_unknown()
    _compare(pools, teams, findings)
    if findings.errors:
        raise PolicyViolationError(_summary(findings.errors), errors=findings.errors)
    return Policy(
        pools=pools,
        teams=teams,
        admins=admins,
        warnings=tuple(findings.warnings),
        source=document,
        prices=prices,
        governing=governing,
        rules=rules,
    )


def _compare(pools: tuple[PoolPolicy, ...], teams: tuple[TeamPolicy, ...], findings: Findings) -> None:
    """What only several parts of the document show together."""
    if len(pools) > MAX_POOLS:
        findings.refuse("pools", f"has {len(pools)} pools", f"write at most {MAX_POOLS}")
    _refuse_repeated_names("pools", (pool.name for pool in pools), findings)
    _refuse_repeated_names("teams", (team.name for team in teams), findings)
    _refuse_shared_types(pools, findings)
    _check_teams_of_quotas(pools, [team.name for team in teams], findings)


def _not_a_mapping(document: object) -> FieldError:
    return FieldError(
        field="", message=f"must be a mapping, not {shown(document)}", hint="write {} for an empty one"
    )


def _summary(errors: list[FieldError]) -> str:
    return f"the policy document has {len(errors)} error{'s' if len(errors) > 1 else ''}"


def _sections(parent: Section, key: str, hint: str) -> Iterator[Section]:
    for path, item in parent.items(key, hint):
        yield Section({} if item is None else item, path, parent.findings)


def _team(section: Section) -> TeamPolicy:
    team = TeamPolicy(
        name=name_of(section),
        principals=_principals(section, "principals"),
        max_priority=section.integer("max_priority", default=MAX_PRIORITY, most=MAX_PRIORITY),
        budget=_budget(section),
        roles=roles_of(section),
        images=images_of(section),
        s3_prefixes=s3_prefixes_of(section),
        rules=rules_of(section),
    )
    section.refuse_unknown()
    return team


def _budget(team: Section) -> Budget | None:
    written = team.value("budget")
    if written is None:
        return None
    section = Section(written, team.at("budget"), team.findings)
    amount = section.amount("usd_per_month", least=_LEAST_BUDGET, most=_MOST_BUDGET)
    if section.value("usd_per_month") is None:
        section.findings.refuse(section.at("usd_per_month"), "is missing", "write the USD of one month")
    budget = Budget(usd_per_month=amount or _LEAST_BUDGET, at_limit=section.choice("at_limit", AtLimit.WAIT))
    section.refuse_unknown()
    return budget


def _prices(section: Section) -> dict[str, Decimal]:
    prices = {
        instance_type: usd(
            value, section.at(instance_type), section.findings, least=_LEAST_PRICE, most=_MOST_PRICE
        )
        for instance_type, value in entries_by_type(section)
    }
    return {instance_type: price for instance_type, price in prices.items() if price is not None}


def _principals(section: Section, key: str) -> tuple[PrincipalPattern, ...]:
    found = tuple(principals_of(section, key))
    for path, pattern in found:
        if pattern.is_wider_than_it_looks:
            section.findings.warn(path, _WIDE, "name the roles, e.g. role/vision-*")
    return tuple(pattern for _, pattern in found)


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


def _check_teams_of_quotas(pools: tuple[PoolPolicy, ...], teams: list[str], findings: Findings) -> None:
    """A quota of a team that nobody is in keeps instances for nobody."""
    for index, pool in enumerate(pools):
        for team in pool.quotas:
            path = path_of(f"pools[{index}].quotas", team)
            if teams and team not in teams:
                known = f"teams of the policy: {', '.join(teams)}"
                findings.refuse(path, f"there is no team {shown(team)}", nearest(team, teams) or known)
            elif not teams and team != DEFAULT_TEAM:
                message = f"nobody is in team {shown(team)}: without teams every caller is in {DEFAULT_TEAM}"
                findings.warn(path, message, "write the teams")
