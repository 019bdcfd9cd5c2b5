"""Every value of a world: what it is by default, in the harsh world, and how anybody knows.

A world is changed by setting values whole: a map or a list that is set replaces the one before.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from local.worlds import world_reading
from local.worlds.world import World, WorldError
from local.worlds.world_reading import Read


class Standing(StrEnum):
    """Ways in which the harsh value is known."""

    DOCUMENTED = "documented"
    OBSERVED = "observed"
    ASSUMED = "assumed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    name: str
    kind: Any
    """Value in the kind world, as a document has it."""
    harsh: Any
    unit: str
    standing: Standing
    source: str
    read: Read


_D, _O, _A = Standing.DOCUMENTED, Standing.OBSERVED, Standing.ASSUMED
_WHOLE = world_reading.or_none(world_reading.whole)
_LIMITS = "SageMaker Developer Guide, Feature Processor quotas, training limits per Region"

VALUES: tuple[Value, ...] = (
    Value(
        name="quotas",
        kind={},
        harsh={},
        unit="instances of a type at once, of each capacity type",
        standing=_D,
        source="each account has its own: Service Quotas, `<type> for training job usage`",
        read=world_reading.quotas,
    ),
    Value(
        name="max_instances_per_job",
        kind=None,
        harsh=20,
        unit="instances",
        standing=_D,
        source=_LIMITS,
        read=_WHOLE,
    ),
    Value(
        name="max_runtime_seconds",
        kind=None,
        harsh=432_000,
        unit="s of `MaxRuntimeInSeconds`",
        standing=_D,
        source=_LIMITS,
        read=_WHOLE,
    ),
    Value(
        name="max_keep_alive_seconds",
        kind=None,
        harsh=3_600,
        unit="s of `KeepAlivePeriodInSeconds`",
        standing=_A,
        source=f"{_LIMITS}; the API model allows 21,600, and nobody reported which of them refuses how",
        read=_WHOLE,
    ),
    Value(
        name="warm_pool_quota",
        kind=None,
        harsh=0,
        unit="instances of a type kept warm",
        standing=_D,
        source="SageMaker Developer Guide, Request a warm pool quota increase",
        read=_WHOLE,
    ),
    Value(
        name="missing_types",
        kind=[],
        harsh=["ml.p6e-gb200.36xlarge"],
        unit="instance types",
        standing=_A,
        source="each Region lacks others; aws/amazon-sagemaker-examples#1001",
        read=world_reading.types,
    ),
    Value(
        name="rates",
        kind={},
        harsh={
            "CreateTrainingJob": 1,
            "DescribeTrainingJob": 2,
            "ListTrainingJobs": 2,
            "StopTrainingJob": 1,
        },
        unit="calls a second",
        standing=_O,
        source=f"Create: {_LIMITS}; List: aws-solutions/deepracer-on-aws#87; the others: assumed",
        read=world_reading.rates,
    ),
    Value(
        name="latency_seconds",
        kind=None,
        harsh={"p50": 0.3, "p99": 2},
        unit="s of a call about training jobs",
        standing=_A,
        source="nobody publishes them; of the order of other control planes",
        read=world_reading.or_none(world_reading.latency),
    ),
    Value(
        name="read_delay_seconds",
        kind=0,
        harsh=5,
        unit="s until a created job is read",
        standing=_A,
        source="reads after writes are not said to be consistent",
        read=world_reading.seconds,
    ),
    Value(
        name="event_delay_seconds",
        kind=[0, 0],
        harsh=[0, 300],
        unit="s, least and most",
        standing=_A,
        source="EventBridge promises no bound",
        read=world_reading.span,
    ),
    Value(
        name="events_without_tags",
        kind=0,
        harsh=0.1,
        unit="share of events",
        standing=_A,
        source="the event schema does not require `Tags`",
        read=world_reading.share,
    ),
    Value(
        name="events_doubled",
        kind=0,
        harsh=0.2,
        unit="share of events",
        standing=_A,
        source="SageMaker says that it may send several events for a change; how often is assumed",
        read=world_reading.share,
    ),
    Value(
        name="events_reordered",
        kind=0,
        harsh=0.2,
        unit="share of deliveries",
        standing=_A,
        source="EventBridge promises no order; such a delivery comes up to a minute later",
        read=world_reading.share,
    ),
    Value(
        name="pending_end",
        kind=None,
        harsh="mixed",
        unit="dialect",
        standing=_A,
        source="the API reference says nothing of the end; AWS Batch speaks of a stopped job",
        read=world_reading.or_none(world_reading.dialect),
    ),
)

_READ: Mapping[str, Read] = {value.name: value.read for value in VALUES}


def changed(world: World, values: Mapping[str, Any]) -> World:
    """Return the world with these values set, all or none. Raises ``WorldError``."""
    return dataclasses.replace(world, **{name: _read(name, value) for name, value in values.items()})


def shown(world: World) -> dict[str, Any]:
    """Return the world as a document of JSON values."""
    return dataclasses.asdict(world)


def _read(name: str, value: object) -> Any:  # noqa: ANN401  of the value's own type
    if name not in _READ:
        raise WorldError(name, f"is no value of a world; there are {', '.join(_READ)}")
    try:
        return _READ[name](value)
    except ValueError as error:
        raise WorldError(name, str(error)) from error


KIND = World(**{value.name: _read(value.name, value.kind) for value in VALUES})
"""AWS at its best: no limits, answers at once, each event once and in order."""
HARSH = changed(KIND, {value.name: value.harsh for value in VALUES})
"""AWS as it is documented, was observed, or may well be."""
WORLDS: Mapping[str, World] = {"kind": KIND, "harsh": HARSH}
