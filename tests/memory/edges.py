"""The small ports: the doorbell, checkpoints in a bucket, alarms, what listeners and people are told."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from trainmaster.alarms import Alarm


@dataclass(slots=True)
class MemoryDoorbell:
    rung: list[str] = field(default_factory=list)
    """Pools, in the order of their rings; whoever answers takes them out."""

    def ring(self, pools: Iterable[str]) -> None:
        self.rung += pools


@dataclass(slots=True)
class MemoryCheckpoints:
    written: dict[str, datetime] = field(default_factory=dict)
    """By S3 URI."""

    def newest(self, uri: str) -> datetime | None:
        return self.written.get(uri)


@dataclass(slots=True)
class MemoryNotifier:
    told: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    def tell(self, kind: str, detail: Mapping[str, Any]) -> None:
        self.told.append((kind, detail))


@dataclass(slots=True)
class MemoryMailer:
    mails: list[tuple[str, str]] = field(default_factory=list)
    """Subject and text."""

    def mail(self, subject: str, text: str, attributes: Mapping[str, str]) -> None:
        assert attributes
        self.mails.append((subject, text))


@dataclass(slots=True)
class MemoryAlarms:
    """AlarmKeeper and AlarmReader."""

    alarms: dict[str, Alarm] = field(default_factory=dict)
    in_alarm: dict[str, datetime] = field(default_factory=dict)
    """Since when, by name."""

    def put(self, alarms: Sequence[Alarm]) -> None:
        self.alarms |= {alarm.name: alarm for alarm in alarms}

    def delete(self, names: Sequence[str]) -> None:
        for name in names:
            self.alarms.pop(name, None)
            self.in_alarm.pop(name, None)

    def in_alarm_since(self, alarm_name: str) -> datetime | None:
        return self.in_alarm.get(alarm_name)

    def names(self, prefix: str, *, in_alarm: bool = False) -> tuple[str, ...]:
        known = self.in_alarm if in_alarm else self.alarms
        return tuple(sorted(name for name in known if name.startswith(prefix)))
