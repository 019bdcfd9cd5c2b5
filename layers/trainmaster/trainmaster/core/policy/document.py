"""The policy document, read as a whole, so that every mistake in it is reported at once."""

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any, Literal

from trainmaster.core.costs.prices import PriceTable
from trainmaster.core.errors import FieldError, PolicyViolationError
from trainmaster.core.policy.changed_defaults import DEFAULTS_RULE, changed_in_pools
from trainmaster.core.policy.findings import Findings, Location, shown
from trainmaster.core.policy.governance import Governing
from trainmaster.core.policy.image_names import Image
from trainmaster.core.policy.job_rules import IMAGES, ROLES, S3_PREFIXES, Allowed, AnyOrListed, Rules
from trainmaster.core.policy.keys import (
    Keys,
    Section,
    inline,
    key,
    keys_of,
    keys_within,
    needed,
    open_section,
    optional,
    read_keys,
)
from trainmaster.core.policy.kinds import ByName, Usd, Whole, Word, list_of
from trainmaster.core.policy.names import (
    CALLERS,
    INSTANCE_TYPE,
    NAME,
    NAME_HINT,
    ROLE,
    check_teams,
    refuse_repeated_names,
    refuse_shared_types,
)
from trainmaster.core.policy.plan_windows import price_table
from trainmaster.core.policy.pool_policy import UNMANAGED, UNMANAGED_POOL, PoolPolicy
from trainmaster.core.policy.principals import PrincipalPattern
from trainmaster.core.policy.reservation import check_reserving_teams
from trainmaster.core.policy.training_plans import check_plan_teams, check_plans
from trainmaster.core.request.options import MAX_PRIORITY
from trainmaster.core.request.s3_uri import S3Location

UNMANAGED_TEAM = "unmanaged"
"""Team of jobs that bypassed the queue and belong to no team of the policy; only admins see them."""
# What reconcile and the passes of two functions at once get round to each minute: docs/guides/scale.md.
MAX_POOLS = 500
EARLIER_DEFAULTS = 1
"""Defaults of a revision that names none: a team may use any role, remote debug and session chaining are
allowed."""
GUARDED_DEFAULTS = 2
"""First defaults that guard teams: only roles that are listed, neither remote debug nor session chaining."""
# From 3 on a preemption has its price, and instances are kept warm (ADR 60).
WATCHED_DEFAULTS = 4
"""First defaults that give the GPUs of running jobs idle alarms (ADR 81); a put warns of it
(``api.policy_warnings``)."""
# From 5 on the wait for the price of a preemption has a bound (ADR 91).
DEFAULTS = 6
"""Today's defaults. Since 6 instances that no waiting job can use are kept by their worth (ADR 100)."""
# Wider than any price or budget there is: they only catch a slip of the finger.
_PRICE = Usd(least=Decimal("0.0001"), most=Decimal(1_000_000))
_BUDGET = Usd(least=Decimal("0.01"), most=Decimal(1_000_000_000))


class AtLimit(StrEnum):
    """Choices for a job that the rest of the month's budget does not cover."""

    WAIT = "wait"
    SPOT = "spot"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget(Section):
    usd_per_month: Decimal = needed(
        _BUDGET, "USD per calendar month (UTC).", stand_in=_BUDGET.least, hint="write USD per month"
    )
    at_limit: AtLimit = key(
        Word(AtLimit),
        "wait",
        "`wait`: a job that the rest does not cover waits; `spot`: it runs on spot instances where it can.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamPolicy(Section):
    name: str = needed(NAME, f"The team's name: {NAME_HINT}.", stand_in="", hint=NAME_HINT)
    principals: tuple[PrincipalPattern, ...] = key(
        CALLERS,
        [],
        "Roles and users of the team.",
        example='["arn:aws:iam::111122223333:role/vision-*"]',
    )
    max_priority: int = key(
        Whole(most=MAX_PRIORITY), MAX_PRIORITY, "The highest priority that its jobs may have."
    )
    budget: Budget | None = optional(
        Keys(Budget), "What its jobs may cost in a month, in all pools together."
    )
    roles: Allowed[str] | Literal["any"] | None = optional(
        AnyOrListed(listed=ROLES),
        "The roles that its jobs may run under: ARNs, compared literally; or `any`. Default: none.",
        example='["arn:aws:iam::111122223333:role/vision-training"]',
    )
    launcher_role: str | None = optional(
        ROLE,
        "The role that starts its jobs: CreateTrainingJob is called by a session of it, with the tags "
        "`trainmaster:team` and `trainmaster:stack`. Default: the stack itself.",
        example="arn:aws:iam::111122223333:role/trainmaster-launcher-vision",
    )
    images: Allowed[Image] | None = optional(
        IMAGES,
        "The only images that its jobs may run: `registry/repository`.",
        example='["763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training"]',
    )
    s3_prefixes: Allowed[S3Location] | None = optional(
        S3_PREFIXES,
        "The only places that its jobs may read and write: `s3://bucket/` or `s3://bucket/prefix/`.",
        example='["s3://vision-data/"]',
    )
    rules: Rules = key(Keys(Rules), {}, "Rules on its jobs, beside those of the whole policy.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy(Section):
    """One checked document. Only ``parse_policy`` makes it."""

    version: int = key(Whole(least=1, most=1), 1, "The version of this format.")
    pools: tuple[PoolPolicy, ...] = key(
        list_of(Keys(PoolPolicy), "write a list of pools"),
        [],
        f"Instances of some types, and how jobs share them. At most {MAX_POOLS}; a type belongs to one pool.",
    )
    teams: tuple[TeamPolicy, ...] = key(
        list_of(Keys(TeamPolicy), "write a list of teams"),
        [],
        "Who shares priorities, quotas and a budget. Without teams every caller of the account is in team "
        "`default`.",
    )
    admins: tuple[PrincipalPattern, ...] = key(
        CALLERS,
        [],
        "Who may read and change the policy and sees every job, beside the stack's `AdminPrincipalArns`.",
        example='["arn:aws:iam::111122223333:role/ml-platform-admin"]',
    )
    prices: Mapping[str, Decimal] = key(
        ByName(INSTANCE_TYPE, _PRICE),
        {},
        "USD per instance-hour by type; takes precedence over the list prices that are shipped.",
        example="{ml.p5.48xlarge: 60.5}",
    )
    governing: Governing = inline(Governing)
    """Sections that govern jobs while they run, fail or are interrupted."""
    rules: Rules = key(
        Keys(Rules), {}, "What every job must comply with. A bare value is enforced; `audit`: recorded."
    )
    defaults: int = DEFAULTS
    """Number of the defaults that stand for keys that are not written."""
    warnings: tuple[FieldError, ...]
    """Things that are legal, but may not do what their author thinks."""
    source: Mapping[str, Any]
    """The document as written: authors read back what they wrote, with keys that only later versions know."""

    @property
    def is_guarded(self) -> bool:
        """Tell whether teams need a written right for roles, remote debug and session chaining."""
        return self.defaults >= GUARDED_DEFAULTS

    @property
    def price_table(self) -> PriceTable:
        """Prices of instances, those of training plans from what was paid for them."""
        return price_table(self.prices, [plan for pool in self.pools for plan in pool.known_plans])

    @property
    def spot_max_wait(self) -> timedelta:
        return self.governing.spot.max_wait

    def pool(self, name: str) -> PoolPolicy | None:
        """Return the pool; None if there is none.

        ``UNMANAGED`` always exists, though it is not in ``pools``.
        """
        if name == UNMANAGED:
            return UNMANAGED_POOL
        return next((pool for pool in self.pools if pool.name == name), None)

    def pool_of(self, instance_types: Iterable[str]) -> PoolPolicy | None:
        """Return the one pool that owns all of these types; None if there is no such pool."""
        wanted = frozenset(instance_types)
        owners = (pool for pool in self.pools if wanted and wanted <= pool.instance_types)
        return next(owners, None)

    def team(self, name: str) -> TeamPolicy | None:
        return next((team for team in self.teams if team.name == name), None)

    @property
    def launchers(self) -> dict[str, str]:
        """ARNs of the launcher roles, by team, of the teams that have one."""
        return {team.name: team.launcher_role for team in self.teams if team.launcher_role is not None}

    def to_document(self) -> dict[str, Any]:
        """Return the JSON document, from which ``parse_policy`` makes this policy again."""
        return copy.deepcopy(dict(self.source))

    def check(self, at: Location) -> None:
        pools = at.below("pools")
        if len(self.pools) > MAX_POOLS:
            pools.refuse(f"has {len(self.pools)} pools", f"write at most {MAX_POOLS}")
        refuse_repeated_names((pool.name for pool in self.pools), pools)
        refuse_repeated_names((team.name for team in self.teams), at.below("teams"))
        refuse_shared_types(self.pools, pools)
        check_plans([pool.plans for pool in self.pools], pools)
        teams = [team.name for team in self.teams]
        if "" in teams or not (teams or at.is_sound("teams")):
            return  # a team whose name cannot be read may be the one that a pool names
        for index, pool in enumerate(self.pools):
            here = pools.item(index)
            check_teams(pool.quotas, teams, here.below("quotas"))
            check_reserving_teams(pool.reservations, teams, here.below("reservations"))
            shares = here.below("order").below("fair_share").below("shares")
            check_teams(pool.order.fair_share.shares, teams, shares)
            check_plan_teams(pool.plans, teams, here.below("plans"))


def parse_policy(document: object, *, is_stored: bool = False, defaults: int = DEFAULTS) -> Policy:
    """Check a document and complete it with the defaults.

    Args:
        document: Parsed JSON. ``{}`` is valid: no pools, every caller in team ``default``.
        is_stored: Whether it was accepted before, perhaps by another version: then unknown keys only warn.
        defaults: Number of the defaults under which it was written.

    Raises:
        PolicyViolationError: Carries everything that is wrong, each mistake with its path.
    """
    if not isinstance(document, dict):
        raise PolicyViolationError("the policy document must be a mapping", errors=[_not_a_mapping(document)])
    findings = Findings(is_lenient=is_stored, defaults=defaults if defaults < DEFAULTS else None)
    root = open_section(Policy, document, Location(findings=findings))
    policy = Policy(**read_keys(Policy, document, root), defaults=defaults, warnings=(), source=document)
    root.refuse_unknown(document, keys_of(Policy), elsewhere=keys_within(Policy))
    policy.check(root)
    if findings.errors:
        count = len(findings.errors)
        message = f"the policy document has {count} error{'s' if count > 1 else ''}"
        raise PolicyViolationError(message, errors=findings.errors)
    return replace(policy, warnings=(*findings.warnings, *_unwritten(policy)))


def defaults_that_change(replaced: Policy, new: Policy) -> tuple[FieldError, ...]:
    """Return warnings of what ``new`` denies or does differently although neither document says so.

    They come beside the warnings of ``new`` itself.
    """
    changes: list[FieldError] = []
    if not replaced.is_guarded:
        why = "refused from this revision on; the one before was written under other defaults"
        changes += _guards(new, why)
    if replaced.defaults < DEFAULTS:
        before = parse_policy(new.to_document(), is_stored=True, defaults=replaced.defaults)
        had = {pool.name for pool in replaced.pools}
        both = zip(new.pools, before.pools, strict=True)
        changes += changed_in_pools((now, then) for now, then in both if now.name in had)
    return tuple(changes)


def _unwritten(policy: Policy) -> Iterator[FieldError]:
    """Yield warnings of what teams are denied, or will be, because nothing is written."""
    is_earlier = not policy.is_guarded
    for index, team in enumerate(policy.teams):
        if team.roles is None:
            later = "any role is allowed until a policy is applied again, and none from then on"
            yield FieldError(
                field=f"teams[{index}].roles",
                message=f"is missing: {later}" if is_earlier else "is missing: no role is allowed",
                hint="list the roles that the team's jobs may run under; any: whatever the stack may pass",
                rule=DEFAULTS_RULE if is_earlier else None,
            )
    if is_earlier:
        yield from _guards(policy, "allowed until a policy is applied again, and refused from then on")


def _guards(policy: Policy, what: str) -> Iterator[FieldError]:
    for rule in ("remote_debug", "session_chaining"):
        if policy.teams and getattr(policy.rules, rule) is None:
            yield FieldError(
                field=f"rules.{rule}",
                message=f"is missing: {what}",
                hint="write {mode: allow} to keep allowing it, {mode: audit} to record it, or true",
                rule=DEFAULTS_RULE,
            )


def _not_a_mapping(document: object) -> FieldError:
    message = f"must be a mapping, not {shown(document)}"
    return FieldError(field="", message=message, hint="write {} for an empty one")
