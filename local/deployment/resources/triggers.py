"""EventBridge rules and schedules."""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from local.deployment.deployment_errors import TemplateError
from local.deployment.events.patterns import check_pattern
from local.deployment.resources.kinds import Kind, Made, Properties, Site, check_keys, names
from local.deployment.wiring import Rule, Schedule

_RATE = re.compile(r"rate\((\d+) (minute|hour|day)s?\)")
# What AWS does when it cannot reach a target; the twin always reaches it.
_UNREACHABLE = names("DeadLetterConfig RetryPolicy")


def _rule(site: Site, logical_id: str, properties: Properties) -> Made:
    name = properties.get("Name", site.name(logical_id))
    arn = site.arn("events", f"rule/{name}")
    check_pattern(logical_id, properties["EventPattern"])
    for target in properties["Targets"]:
        check_keys(f"{logical_id}.Targets", target, required=names("Arn Id"), optional=_UNREACHABLE)
    targets = tuple(_function_target(logical_id, target) for target in properties["Targets"])
    if _is_enabled(logical_id, properties):
        site.wiring.rules.append(Rule(arn=arn, pattern=properties["EventPattern"], function_arns=targets))
    return Made(ref=name, attributes={"Arn": arn})


def _function_target(logical_id: str, target: Mapping[str, Any]) -> str:
    arn = str(target["Arn"])
    if ":lambda:" not in arn:
        raise TemplateError(logical_id, f"the twin invokes only functions, not {arn}")
    return arn


def _schedule(site: Site, logical_id: str, properties: Properties) -> Made:
    name = properties.get("Name", site.name(logical_id))
    arn = site.arn("scheduler", f"schedule/default/{name}")
    target = properties["Target"]
    known = names("Input") | _UNREACHABLE
    check_keys(f"{logical_id}.Target", target, required=names("Arn RoleArn"), optional=known)
    if properties["FlexibleTimeWindow"] != {"Mode": "OFF"}:
        raise TemplateError(logical_id, "the twin knows only FlexibleTimeWindow {Mode: OFF}")
    schedule = Schedule(
        arn=arn,
        every=_rate(logical_id, properties["ScheduleExpression"]),
        function_arn=_function_target(logical_id, target),
        role_arn=target["RoleArn"],
        payload=target.get("Input"),
    )
    if _is_enabled(logical_id, properties):
        site.wiring.schedules.append(schedule)
    return Made(ref=name, attributes={"Arn": arn})


def _is_enabled(logical_id: str, properties: Properties) -> bool:
    state = properties.get("State", "ENABLED")
    if state not in {"ENABLED", "DISABLED"}:
        raise TemplateError(logical_id, f"the twin does not know state {state}")
    return bool(state == "ENABLED")


def _rate(logical_id: str, expression: str) -> timedelta:
    match = _RATE.fullmatch(expression)
    if match is None:
        raise TemplateError(logical_id, f"the twin does not know schedule expression {expression}")
    count, unit = match.groups()
    return timedelta(**{f"{unit}s": int(count)})


KINDS = {
    "AWS::Events::Rule": Kind(
        create=_rule, required=names("EventPattern Targets"), optional=names("Name Description State")
    ),
    "AWS::Scheduler::Schedule": Kind(
        create=_schedule,
        required=names("ScheduleExpression FlexibleTimeWindow Target"),
        optional=names("Name Description State"),
    ),
}
