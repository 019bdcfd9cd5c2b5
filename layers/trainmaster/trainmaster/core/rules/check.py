"""Everything the rules of the policy, and of the job's team, have against a request."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from trainmaster.core.costs.prices import PriceTable
from trainmaster.core.policy.document import Policy, TeamPolicy
from trainmaster.core.policy.job_rules import Rules
from trainmaster.core.request.validation.sections import Section
from trainmaster.core.rules.resource_rules import check_cost, check_instances, check_memory, check_time
from trainmaster.core.rules.security_rules import (
    check_debugging,
    check_images,
    check_keys,
    check_network,
    check_places,
    check_role,
)
from trainmaster.core.rules.tags import check_name, check_tags
from trainmaster.core.rules.violation import Violation

_CHECKS = (
    check_tags,
    check_name,
    check_instances,
    check_time,
    check_network,
    check_role,
    check_images,
    check_places,
    check_keys,
    check_debugging,
    check_memory,
)


def check(body: Mapping[str, Any], *, team: str, policy: Policy) -> tuple[Violation, ...]:
    """All violations, enforced and audited; the rules of the team come behind those of the policy.

    Args:
        body: A CreateTrainingJob request. It need not be a valid one: what cannot be read is not there.
        team: Whose job it is; one that the policy does not know has no rules of its own.
        policy: As it is in force.
    """
    prices = PriceTable(overrides=policy.prices)
    found: dict[Violation, None] = {}
    for prefix, rules in _in_force(policy, policy.team(team)):
        for one in _violations(body, rules, prices):
            found[replace(one, rule=prefix + one.rule)] = None
    return tuple(found)


def _in_force(policy: Policy, team: TeamPolicy | None) -> Iterator[tuple[str, Rules]]:
    yield "", policy.rules
    if team is not None:
        yield f"teams.{team.name}.rules.", team.rules
        lists = Rules(roles=team.roles, images=team.images, s3_prefixes=team.s3_prefixes)
        yield f"teams.{team.name}.", lists


def _violations(body: Section, rules: Rules, prices: PriceTable) -> Iterator[Violation]:
    if rules == Rules():
        return
    for look in _CHECKS:
        yield from look(body, rules)
    yield from check_cost(body, rules, prices)
