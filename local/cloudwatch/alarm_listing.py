"""Selects the alarms that DescribeAlarms answers with.

Source: CloudWatch API reference, DescribeAlarms.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from local.cloudwatch import rules
from local.cloudwatch.alarms import ACTIONS, COMPOSITE_ALARM, METRIC_ALARM, Alarm
from local.cloudwatch.definitions import Watched
from local.cloudwatch.queries import invalid

_PAGE = 50


def answer(params: Mapping[str, Any], alarms: Mapping[str, Alarm]) -> dict[str, Any]:
    """Answer with one page, in the order of the names."""
    if "AlarmNames" in params and "AlarmNamePrefix" in params:
        raise invalid("AlarmNames and AlarmNamePrefix must not be given together.")
    selected = sorted(_selected(params, alarms), key=lambda alarm: alarm.name)
    rest = [alarm for alarm in selected if alarm.name > params.get("NextToken", "")]
    page = rest[: params.get("MaxRecords", _PAGE)]
    return {
        "MetricAlarms": [alarm.described() for alarm in page if alarm.kind == METRIC_ALARM],
        "CompositeAlarms": [alarm.described() for alarm in page if alarm.kind == COMPOSITE_ALARM],
        **({"NextToken": page[-1].name} if len(rest) > len(page) else {}),
    }


def parents_of(name: str, alarms: Mapping[str, Alarm]) -> list[Alarm]:
    """Return the composite alarms that mention an alarm."""
    return [alarm for alarm in alarms.values() if name in children_of(alarm)]


def children_of(alarm: Alarm) -> tuple[str, ...]:
    return () if isinstance(alarm.definition, Watched) else rules.alarms_of(alarm.definition)


def _selected(params: Mapping[str, Any], alarms: Mapping[str, Alarm]) -> Iterable[Alarm]:
    if (child := params.get("ParentsOfAlarmName")) is not None:
        return parents_of(child, alarms)
    if (parent := params.get("ChildrenOfAlarmName")) is not None:
        children = children_of(alarms[parent]) if parent in alarms else ()
        return [alarms[name] for name in children]
    kinds = params.get("AlarmTypes", [METRIC_ALARM])
    conditions: list[Callable[[Alarm], bool]] = [lambda alarm: alarm.kind in kinds]
    if (names := params.get("AlarmNames")) is not None:
        conditions.append(lambda alarm: alarm.name in names)
    if (prefix := params.get("AlarmNamePrefix")) is not None:
        conditions.append(lambda alarm: alarm.name.startswith(prefix))
    if (state := params.get("StateValue")) is not None:
        conditions.append(lambda alarm: alarm.state.value == state)
    if (action := params.get("ActionPrefix")) is not None:
        conditions.append(lambda alarm: _has_action(alarm, action))
    return [alarm for alarm in alarms.values() if all(holds(alarm) for holds in conditions)]


def _has_action(alarm: Alarm, prefix: str) -> bool:
    arns = (arn for name in ACTIONS.values() for arn in alarm.settings.get(name, ()))
    return any(arn.startswith(prefix) for arn in arns)
