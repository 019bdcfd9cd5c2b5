"""Check a request against all rules of the policy, and of the job's team."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from trainmaster.core.costs.prices import PriceTable
from trainmaster.core.field_paths import path_text
from trainmaster.core.policy.document import Policy, TeamPolicy
from trainmaster.core.policy.job_rules import Allowed, GuardMode, RequiredTag, Rules
from trainmaster.core.request.validation.sections import Section, elements, text
from trainmaster.core.rules.places import check_places
from trainmaster.core.rules.resource_rules import check_cost, check_instances, check_memory, check_time
from trainmaster.core.rules.secrets import check_secrets
from trainmaster.core.rules.security_rules import (
    check_debugging,
    check_images,
    check_keys,
    check_network,
    check_role,
)
from trainmaster.core.rules.violation import Violation, listed


def check_tags(body: Section, rules: Rules) -> Iterator[Violation]:
    rule = rules.required_tags
    if rule is None:
        return
    given = {text(tag, "Key"): (index, text(tag, "Value") or "") for index, tag in elements(body, "Tags")}
    for wanted in rule.tags:
        if wanted.key not in given:
            field, message = path_text(("Tags", wanted.key)), "is required"
        elif _accepts(wanted, given[wanted.key][1]):
            continue
        else:
            field = path_text(("Tags", given[wanted.key][0], "Value"))
            message = f"of {wanted.key} is none of the allowed values"
        yield Violation(
            rule="required_tags", field=field, message=message, hint=_hint(wanted), mode=rule.mode
        )


def _accepts(wanted: RequiredTag, value: str) -> bool:
    is_listed = not wanted.one_of or value in wanted.one_of
    return is_listed and (wanted.pattern is None or wanted.pattern.matches(value))


def _hint(wanted: RequiredTag) -> str:
    values = f" with one of {listed(wanted.one_of)}" if wanted.one_of else " with a value"
    pattern = f" that matches {wanted.pattern.source}" if wanted.pattern else ""
    return f"add the tag {wanted.key}{values}{pattern}"


def check_name(body: Section, rules: Rules) -> Iterator[Violation]:
    rule, name = rules.name_prefix, text(body, "TrainingJobName") or ""
    if rule is not None and not name.startswith(rule.allow):
        yield Violation(
            rule="name_prefix",
            field="TrainingJobName",
            message="does not begin as job names must",
            hint=f"begin it with {listed(rule.allow)}",
            mode=rule.mode,
        )


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
    check_secrets,
    check_memory,
)


def check(
    body: Mapping[str, Any], *, team: str, policy: Policy, is_submission: bool = False
) -> tuple[Violation, ...]:
    """Return all violations, enforced and audited.

    Those of the team's rules come behind those of the policy's.

    Default rules judge submissions alone: never jobs that wait, run or bypassed the queue.

    Args:
        body: A CreateTrainingJob request. It need not be valid: an unreadable field counts as missing.
        team: Team of the job; one that the policy does not know has no rules of its own.
        policy: The policy in force.
        is_submission: Whether it is about to be queued.
    """
    prices = policy.price_table
    violations: dict[Violation, None] = {}
    for prefix, rules in _in_force(policy, policy.team(team), is_submission=is_submission):
        for violation in _violations(body, rules, prices):
            violations[replace(violation, rule=prefix + violation.rule)] = None
    if is_submission and policy.is_guarded:
        violations |= dict.fromkeys(_without_roles(policy, team))
    return tuple(violations)


def _in_force(policy: Policy, team: TeamPolicy | None, *, is_submission: bool) -> Iterator[tuple[str, Rules]]:
    yield "", rules_of_submissions(policy) if is_submission else policy.rules
    if team is not None:
        yield f"teams.{team.name}.rules.", team.rules
        roles = team.roles if isinstance(team.roles, Allowed) else None
        yield f"teams.{team.name}.", Rules(roles=roles, images=team.images, s3_prefixes=team.s3_prefixes)


def longest_runtime(policy: Policy, team: str) -> timedelta | None:
    """Return the least ``max_runtime`` of the rules that judge the team's submissions.

    None means that no rule bounds it.
    """
    in_force = _in_force(policy, policy.team(team), is_submission=True)
    bounds = [rules.max_runtime.value for _, rules in in_force if rules.max_runtime is not None]
    return min(bounds, default=None)


def rules_of_submissions(policy: Policy) -> Rules:
    """Return the rules of the policy, with the defaults for those that are not written.

    A team's own rules can only tighten: a rule of a team is no reason to leave a default out.

    Earlier defaults refused secrets, too.
    """
    rules = policy.rules
    rules = replace(rules, secrets=rules.secrets or GuardMode.ENFORCE)
    if not policy.teams or not policy.is_guarded:
        return rules
    return replace(
        rules,
        remote_debug=rules.remote_debug or GuardMode.ENFORCE,
        session_chaining=rules.session_chaining or GuardMode.ENFORCE,
    )


def _without_roles(policy: Policy, name: str) -> Iterator[Violation]:
    """Yield a violation if the team has no list of roles, as then another team's role would do as well."""
    team = policy.team(name)
    if team is not None and team.roles is None:
        yield Violation(
            rule=f"teams.{name}.roles",
            field="RoleArn",
            message=f"is not a role of team {name}: the policy names none",
            hint=f"have an admin list the team's roles under teams, {name}, roles; or write any there",
        )


def _violations(body: Section, rules: Rules, prices: PriceTable) -> Iterator[Violation]:
    if rules == Rules():
        return
    for look in _CHECKS:
        yield from look(body, rules)
    yield from check_cost(body, rules, prices)
