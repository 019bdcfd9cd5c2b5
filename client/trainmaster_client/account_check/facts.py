"""Defines a fact about AWS: question, what the code assumes, where it does, what asking needs, verdict."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, TypeAlias

Records: TypeAlias = Mapping[str, Any]
"""The records of a report, as the looks wrote them."""


class Need(StrEnum):
    """Preconditions of a fact besides a role and a bucket."""

    GPU = "gpu"
    STARVE = "starve"
    QUOTA_LIST = "quota-list"
    AWS_TIME = "aws-time"
    STACK = "stack"
    PLAN = "plan"


UNMET: Mapping[Need, str] = MappingProxyType(
    {
        Need.GPU: "needs an accelerated type: --gpu TYPE",
        Need.STARVE: "takes 30 minutes more: --gpu TYPE --starve",
        Need.QUOTA_LIST: "needs the account's quotas: servicequotas:ListServiceQuotas, with one of the type",
        Need.AWS_TIME: "the twin divides its waits by --speed, so its seconds are not AWS's",
        Need.STACK: "needs a stack: make account-smoke",
        Need.PLAN: "needs a training plan with an open window: --plan ARN",
    }
)


class Look(StrEnum):
    """Steps of the check that learn facts; a missing right ends one look, and the others go on."""

    TRIALS = "trials"
    REFUSALS = "refusals"
    READS = "reads"
    RATES = "rates"
    SLOT = "slot"
    EVENTS = "events"
    LOGS = "logs"
    UPLOADS = "uploads"
    WARM = "warm"
    PENDING = "pending"
    GPU = "gpu"
    STARVE = "starve"
    STACK = "stack"
    PLAN = "plan"


class Word(StrEnum):
    """The verdict on one fact; only ``differs`` makes a report not ok."""

    OK = "ok"
    DIFFERS = "differs"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    word: Word
    said: str
    """Observed behaviour of AWS, or why it is not known."""

    @property
    def ok(self) -> bool | None:
        return None if self.word is Word.SKIPPED else self.word is Word.OK


def agrees(observation: str) -> Verdict:
    return Verdict(word=Word.OK, said=observation)


def differs(observation: str) -> Verdict:
    return Verdict(word=Word.DIFFERS, said=observation)


def skipped(why: str) -> Verdict:
    return Verdict(word=Word.SKIPPED, said=why)


def held_to(observation: str, *, holds: bool) -> Verdict:
    return agrees(observation) if holds else differs(observation)


VerdictOf: TypeAlias = Callable[[Records], Verdict | None]
"""Gives the verdict on a fact; None if nothing was recorded."""


def recorded(key: str, verdict: Callable[[Any], Verdict | None]) -> VerdictOf:
    """Decide by one record alone; there is no verdict where it is missing or empty."""

    def judge(records: Records) -> Verdict | None:
        record = records.get(key)
        return verdict(record) if record else None

    return judge


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    id: str
    group: int
    """Number of the group in the guide's list."""
    question: str
    assumes: str
    where: tuple[str, ...]
    """Modules that would have to change if AWS behaves otherwise."""
    look: Look
    judge: VerdictOf
    needs: tuple[Need, ...] = ()
