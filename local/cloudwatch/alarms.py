"""An alarm as CloudWatch knows it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from local.cloudwatch.definitions import Watched
from local.cloudwatch.evaluation import StateValue, Verdict
from local.cloudwatch.rules import Rule

METRIC_ALARM = "MetricAlarm"
COMPOSITE_ALARM = "CompositeAlarm"

ACTIONS: Mapping[StateValue, str] = {
    StateValue.ALARM: "AlarmActions",
    StateValue.OK: "OKActions",
    StateValue.INSUFFICIENT_DATA: "InsufficientDataActions",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    value: StateValue
    reason: str
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    name: str
    arn: str
    settings: Mapping[str, Any]
    """Settings that were put, without tags."""
    configured_at: datetime
    state: State
    definition: Watched | Rule

    @property
    def kind(self) -> str:
        return METRIC_ALARM if isinstance(self.definition, Watched) else COMPOSITE_ALARM

    @property
    def acts(self) -> bool:
        return bool(self.settings.get("ActionsEnabled", True))

    @property
    def actions(self) -> tuple[str, ...]:
        """Return ARNs of the actions of a transition to the present state."""
        return tuple(self.settings.get(ACTIONS[self.state.value], ())) if self.acts else ()

    def moved(self, verdict: Verdict, at: datetime) -> "Alarm":
        return replace(self, state=State(value=verdict.state, reason=verdict.reason, since=at))

    def described(self) -> dict[str, Any]:
        """Return the alarm as DescribeAlarms answers with it."""
        lists: dict[str, Any] = {name: [] for name in ACTIONS.values()}
        if self.kind == METRIC_ALARM and "Metrics" not in self.settings:
            lists["Dimensions"] = []
        return {
            **lists,
            **self.settings,
            "AlarmArn": self.arn,
            "AlarmConfigurationUpdatedTimestamp": self.configured_at,
            "ActionsEnabled": self.acts,
            "StateValue": self.state.value.value,
            "StateReason": self.state.reason,
            "StateUpdatedTimestamp": self.state.since,
            "StateTransitionedTimestamp": self.state.since,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    alarm: Alarm
    """The alarm after the transition."""
    before: StateValue
    children: tuple[Alarm, ...] = ()
    """Alarms that a composite alarm mentions."""
