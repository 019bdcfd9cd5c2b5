"""CloudWatch's API, and the evaluation of its alarms."""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import Any

from botocore.loaders import Loader
from botocore.model import ServiceModel

from local.cloudwatch import alarm_listing, definitions, evaluation, metric_reading, rules
from local.cloudwatch.alarms import ACTIONS, COMPOSITE_ALARM, Alarm, State, Transition
from local.cloudwatch.definitions import Watched
from local.cloudwatch.embedded import embedded_in
from local.cloudwatch.evaluation import StateValue, Verdict
from local.cloudwatch.metrics import Metric, MetricStore, Samples
from local.cloudwatch.queries import invalid
from local.cloudwatch.rules import Rule, RuleError
from local.validation import checked
from local.wire import AwsError

logger = logging.getLogger(__name__)

Params = dict[str, Any]
Answer = dict[str, Any]

_TOPIC = "arn:aws:sns:"
_BIRTH = "Unchecked: Initial alarm creation"
_MOST_DELETED = 100


class CloudWatchTwin:
    """``call`` is the API. ``evaluate`` is called once a minute; who listens hears of each transition."""

    def __init__(self, *, account_id: str, region: str, now: Callable[[], datetime]) -> None:
        self._arn_prefix = f"arn:aws:cloudwatch:{region}:{account_id}:alarm:"
        self._now = now
        self._lock = threading.RLock()
        self._store = MetricStore()
        self._alarms: dict[str, Alarm] = {}
        self._tags: dict[str, dict[str, str]] = {}
        self._unseen: list[str] = []
        """Composite alarms that were put since the last evaluation."""
        self._listeners: list[Callable[[Transition], None]] = []

    def listen(self, listener: Callable[[Transition], None]) -> None:
        """Call ``listener`` with each transition; it must return soon and not call back."""
        self._listeners.append(listener)

    def put(self, metric: Metric, value: float, *, at: datetime, unit: str) -> None:
        """Store one sample of a metric of an AWS service."""
        with self._lock:
            self._store.put(metric, Samples.of({"Value": value}), at=at, unit=unit)

    def read_log(self, line: str) -> None:
        """Take the metrics that a line of a log holds."""
        metrics = list(embedded_in(line))
        with self._lock:
            for metric in metrics:
                self._store.put(metric.metric, metric.samples, at=metric.at, unit=metric.unit)

    def call(self, operation: str, params: Params) -> Answer:
        """Answer a call. Raises AwsError."""
        answer = self._operations().get(operation)
        if answer is None:
            raise AwsError("NotImplemented", f"the twin has no cloudwatch:{operation}", status=501)
        shape = _service_model().operation_model(operation).input_shape
        assert shape is not None
        with self._lock:
            return answer(_checked(shape, params)) or {}

    def evaluate(self, minute: datetime) -> None:
        """Look at every alarm as it is when a minute has just ended."""
        with self._lock:
            for alarm in list(self._alarms.values()):
                if isinstance(alarm.definition, Watched):
                    points = alarm.definition.points(minute, self._store)
                    self._settle(alarm, evaluation.judge(points, alarm.definition.threshold))
            unseen, self._unseen = self._unseen, []
            self._combine(unseen)

    def _operations(self) -> Mapping[str, Callable[[Params], Answer | None]]:
        return {
            "DeleteAlarms": self._delete,
            "DescribeAlarms": lambda params: alarm_listing.answer(params, self._alarms),
            "DisableAlarmActions": lambda params: self._enable(params, on=False),
            "EnableAlarmActions": lambda params: self._enable(params, on=True),
            "GetMetricData": lambda params: metric_reading.metric_data(params, self._store),
            "GetMetricStatistics": lambda params: metric_reading.metric_statistics(params, self._store),
            "ListMetrics": lambda params: metric_reading.metric_list(params, self._store),
            "ListTagsForResource": self._list_tags,
            "PutCompositeAlarm": self._put_composite,
            "PutMetricAlarm": self._put_metric,
            "PutMetricData": self._put_data,
            "SetAlarmState": self._set_state,
        }

    def _put_metric(self, params: Params) -> None:
        tags = params.pop("Tags", [])
        self._keep(params, tags, definitions.watched(params))

    def _put_composite(self, params: Params) -> None:
        tags = params.pop("Tags", [])
        if "ActionsSuppressor" in params:
            raise invalid("the twin does not know ActionsSuppressor")
        try:
            rule = rules.parse(params["AlarmRule"])
        except RuleError as error:
            raise invalid(f"AlarmRule {error}") from error
        unknown = [name for name in rules.alarms_of(rule) if name not in self._alarms]
        if unknown:
            names = ", ".join(unknown)
            raise invalid(
                f"Could not save the composite alarm as alarms [{names}] in the alarm rule do not exist"
            )
        if params["AlarmName"] in self._under(rules.alarms_of(rule)):
            raise invalid("the twin refuses composite alarms that depend on themselves")
        self._keep(params, tags, rule)
        self._unseen.append(params["AlarmName"])

    def _under(self, names: Iterable[str]) -> set[str]:
        """Return these alarms and all below them."""
        names_below = set(names)
        for name in tuple(names_below):
            names_below |= self._under(alarm_listing.children_of(self._alarms[name]))
        return names_below

    def _keep(self, settings: Params, tags: Iterable[Mapping[str, str]], definition: Watched | Rule) -> None:
        """Store an alarm; a new one begins without data, one that is put again keeps its state and tags."""
        for name in ACTIONS.values():
            if other := [arn for arn in settings.get(name, ()) if not arn.startswith(_TOPIC)]:
                raise invalid(f"the twin knows only SNS topics as {name}, not {', '.join(other)}")
        name, now = settings["AlarmName"], self._now()
        before = self._alarms.get(name)
        birth = State(value=StateValue.INSUFFICIENT_DATA, reason=_BIRTH, since=now)
        alarm = Alarm(
            name=name,
            arn=f"{self._arn_prefix}{name}",
            settings=settings,
            configured_at=now,
            state=birth if before is None else before.state,
            definition=definition,
        )
        if before is None:
            self._tags[alarm.arn] = {tag["Key"]: tag["Value"] for tag in tags}
        elif before.kind != alarm.kind:
            raise invalid(f"there is a {before.kind} with the name {name}")
        self._alarms[name] = alarm

    def _delete(self, params: Params) -> None:
        names = params["AlarmNames"]
        if len(names) > _MOST_DELETED:
            raise invalid(f"up to {_MOST_DELETED} alarms can be deleted at once")
        alarms = [self._alarms[name] for name in names if name in self._alarms]
        if sum(alarm.kind == COMPOSITE_ALARM for alarm in alarms) > 1:
            raise invalid("up to one composite alarm can be deleted at once")
        for alarm in alarms:
            parents = [parent.name for parent in alarm_listing.parents_of(alarm.name, self._alarms)]
            if parents:
                raise invalid(f"{alarm.name} cannot be deleted as composite alarms {parents} depend on it")
        for alarm in alarms:
            del self._alarms[alarm.name]
            self._tags.pop(alarm.arn, None)

    def _enable(self, params: Params, *, on: bool) -> None:
        for name in params["AlarmNames"]:
            if (alarm := self._alarms.get(name)) is not None:
                settings = {**alarm.settings, "ActionsEnabled": on}
                self._alarms[name] = replace(alarm, settings=settings)

    def _set_state(self, params: Params) -> None:
        alarm = self._alarms.get(params["AlarmName"])
        if alarm is None:
            raise AwsError("ResourceNotFound", f"there is no alarm {params['AlarmName']}", status=404)
        self._settle(alarm, Verdict(state=StateValue(params["StateValue"]), reason=params["StateReason"]))

    def _put_data(self, params: Params) -> None:
        for datum in params.get("MetricData", ()):
            metric = Metric.of({**datum, "Namespace": params["Namespace"]})
            at = datum.get("Timestamp", self._now())
            self._store.put(metric, Samples.of(datum), at=at, unit=datum.get("Unit", "None"))

    def _list_tags(self, params: Params) -> Answer:
        tags = self._tags.get(params["ResourceARN"])
        if tags is None:
            raise AwsError("ResourceNotFoundException", f"there is no {params['ResourceARN']}", status=404)
        return {"Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}

    def _settle(self, alarm: Alarm, verdict: Verdict | None) -> None:
        """Set the alarm's state; listeners and composite alarms hear of changes only."""
        if verdict is None or verdict.state is alarm.state.value:
            return
        moved = self._alarms[alarm.name] = alarm.moved(verdict, self._now())
        children = tuple(
            self._alarms[child] for child in alarm_listing.children_of(moved) if child in self._alarms
        )
        for listener in self._listeners:
            listener(Transition(alarm=moved, before=alarm.state.value, children=children))
        self._combine(parent.name for parent in alarm_listing.parents_of(alarm.name, self._alarms))

    def _combine(self, names: Iterable[str]) -> None:
        """Evaluate composite alarms, and those above them that change as a result."""
        for name in names:
            alarm = self._alarms.get(name)
            if alarm is None or isinstance(alarm.definition, Watched):
                continue
            states = {known.name: known.state.value.value for known in self._alarms.values()}
            holds = rules.holds(alarm.definition, states)
            value = StateValue.ALARM if holds else StateValue.OK
            reason = f"{alarm.settings['AlarmRule']} is {'TRUE' if holds else 'FALSE'}"
            self._settle(alarm, Verdict(state=value, reason=reason))


def _checked(shape: Any, params: Params) -> Params:  # noqa: ANN401  botocore's StructureShape
    try:
        return checked(shape, params)
    except AwsError as error:
        raise invalid(error.message) from error


@cache
def _service_model() -> ServiceModel:
    """Read at the first call."""
    return ServiceModel(Loader().load_service_model("cloudwatch", "service-2"))
