"""Options that users set in tags, because tags are what plain SDK code can set."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from itertools import chain
from typing import Any

from trainmaster.core.errors import BadOptionError, FieldError, quoted
from trainmaster.core.field_paths import path_text
from trainmaster.core.jobs.end_conditions import ConditionKind
from trainmaster.core.jobs.hold_open import HoldOpen, read_hold_open
from trainmaster.core.jobs.index_sets import WrittenIndices, read_indices
from trainmaster.core.jobs.instances import Capacity, CapacityType
from trainmaster.core.jobs.widths import Widths, read_widths

TAG_PREFIX = "trainmaster:"
"""Tags that begin so are ours: options that users may set, and what we put on each attempt."""
PRIORITY = "priority"
TEAM = "team"
PREEMPTIBLE = "trainmaster:preemptible"
RETRIES = "trainmaster:retries"
ON_OOM = "trainmaster:on_oom"
ALTERNATIVES = "trainmaster:alternatives"
CHEAPEST = "cheapest"
"""Stands in that tag for the pool's shapes by measured work per dollar."""
ANY_SUBNET = "any"
"""Stands in a shape of that tag for each subnet of the request."""
AFTER = "trainmaster:after"
AFTER_TAGS = (AFTER, *(f"{AFTER}.{number}" for number in range(2, 11)))
"""Tags whose conditions count together: the value of one tag has 256 characters at most."""
AFTER_FAILED = "trainmaster:after-failed"
ARRAY = "trainmaster:array"
PLAN = "trainmaster:plan"
ELASTIC = "trainmaster:elastic"
HOLD_OPEN = "trainmaster:hold-open"

MAX_PRIORITY = 1000
DEFAULT_PRIORITY = 0
MAX_RETRIES = 5

_ALTERNATIVE = re.compile(
    r"(?P<type>[a-zA-Z0-9][a-zA-Z0-9.-]*)=(?P<count>[1-9][0-9]{0,5})(?P<spot>:spot)?(?:@(?P<subnet>subnet-[0-9a-z]+|any))?"
)

# Source: SageMaker API reference, TrainingJobName.
_JOB_NAME = re.compile(r"[a-zA-Z0-9](?:-*[a-zA-Z0-9]){0,62}")
_CONDITION_HINT = "write [TYPE:]JOB with one space between two, e.g. afterok:prepare afterany:clean-up"

_SLURM_TASK = re.compile(r"(?P<array>[a-zA-Z0-9-]+)_(?P<index>[0-9]+)$")
_OUR_PREFIX = re.compile(r"^trainmaster[\s:./_-]*")
_BETWEEN_WORDS = re.compile(r"[\s_-]+")


class OnOom(StrEnum):
    """A change that a retry makes after the job ran out of GPU memory."""

    HALVE_BATCH = "halve_batch"


class PlanUse(StrEnum):
    """Choices for a job of a pool that has training plans."""

    FIRST = "first"
    """On a plan if that has room, else as the request says."""
    ONLY = "only"
    NEVER = "never"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """One of the shapes the job may run in."""

    capacity: Capacity
    count: int
    subnet: str | None
    """The one subnet of it; ``ANY_SUBNET``: each of the request's in turn; None: all of them at once."""

    def subnets(self, of_request: Sequence[str]) -> tuple[str | None, ...]:
        """Return the subnets of the shapes that it stands for.

        Args:
            of_request: Subnets of the request's VpcConfig; without any the network is SageMaker's.
        """
        return tuple(of_request) or (None,) if self.subnet == ANY_SUBNET else (self.subnet,)


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedCondition:
    """A condition as its author wrote it: the name says which job only once somebody looks it up."""

    kind: ConditionKind
    job: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UserOptions:
    priority: int = DEFAULT_PRIORITY
    team: str | None = None
    preemptible: bool = True
    retries: int | None = None
    """Retries that the user allows; None: as many as the policy allows."""
    on_oom: OnOom | None = None
    alternatives: tuple[Alternative, ...] = ()
    """Shapes in the order of preference; empty: only the one in ResourceConfig."""
    after: tuple[WantedCondition, ...] = ()
    """All of its tags together."""
    array: WrittenIndices | None = None
    """Its tasks, if it is the request of an array."""
    plan: PlanUse | None = None
    """Its use of plans; None: the request does not say, and it is as ``FIRST`` where its pool has plans."""
    elastic: Widths | None = None
    """Instance counts that it may run with; None: only with that of the request."""
    hold_open: HoldOpen | None = None
    """Its wait for a visitor of its container; None: it waits for nobody."""
    holds_after_failure: bool = False
    """It is held, not ended, once a condition can hold no more."""


def read_options(tags: Mapping[str, str]) -> UserOptions:
    """Read the options among a job's tags. Raises BadOptionError."""
    read = {key: READERS[key][1](tags[key]) for key in READERS if key in tags}
    after = tuple(chain.from_iterable(read[key] for key in AFTER_TAGS if key in read))
    return UserOptions(**{READERS[key][0]: value for key, value in read.items()} | {"after": after})


def _priority(text: str) -> int:
    return _whole_number(text, MAX_PRIORITY)


def _retries(text: str) -> int:
    return _whole_number(text, MAX_RETRIES)


def _whole_number(text: str, most: int) -> int:
    # int() alone would take " 1_0 ", signs and other scripts' digits.
    if re.fullmatch(r"[0-9]{1,4}", text) and int(text) <= most:
        return int(text)
    raise BadOptionError(f"is not a whole number from 0 to {most}", f"write 0 to {most} in digits, as text")


def _team(text: str) -> str:
    if text.strip() == text != "":
        return text
    raise BadOptionError("is not the name of a team", "name one of your teams, or leave the tag out")


def _preemptible(text: str) -> bool:
    if text in {"true", "false"}:
        return text == "true"
    raise BadOptionError("is neither true nor false", "write true or false, in lower case")


def _on_oom(text: str) -> OnOom:
    try:
        return OnOom(text)
    except ValueError as error:
        allowed = ", ".join(OnOom)
        raise BadOptionError("is none of the allowed values", f"use one of {allowed}") from error


def _alternatives(text: str) -> tuple[Alternative, ...]:
    if text == CHEAPEST:  # the submission writes the shapes in its place, once the pool is known
        return ()
    alternatives = tuple(_alternative(part) for part in text.split(" "))
    if len(set(alternatives)) < len(alternatives):
        raise BadOptionError("names the same shape twice", "name each shape once, the best first")
    return alternatives


def _alternative(text: str) -> Alternative:
    match = _ALTERNATIVE.fullmatch(text)
    if match is None:
        raise BadOptionError(
            "is not a list of shapes",
            "write type=count, then :spot and @subnet-id or @any if wanted, one space between two shapes:"
            f" ml.g5.12xlarge=1 ml.g5.4xlarge=4:spot@subnet-0ab1; or {CHEAPEST} alone",
        )
    capacity_type = CapacityType.SPOT if match["spot"] else CapacityType.ON_DEMAND
    return Alternative(
        capacity=Capacity(match["type"], capacity_type), count=int(match["count"]), subnet=match["subnet"]
    )


def read_conditions(text: str) -> tuple[WantedCondition, ...]:
    """Read conditions separated by one space. Raises BadOptionError."""
    return tuple(_condition(part) for part in text.split(" "))


def _condition(text: str) -> WantedCondition:
    written, colon, job = text.rpartition(":")
    kind = ConditionKind.AFTER_OK if not colon else _condition_kind(written)
    if _JOB_NAME.fullmatch(job) is None:
        raise BadOptionError(f"has {quoted(text)}, which names no job", _hint_for(text))
    return WantedCondition(kind=kind, job=job)


def _condition_kind(written: str) -> ConditionKind:
    try:
        return ConditionKind(written)
    except ValueError as error:
        near = get_close_matches(written.lower(), list(ConditionKind), n=1)
        meant = f"did you mean {near[0]}? " if near else ""
        known = ", ".join(ConditionKind)
        several = written.partition(":")[0] in set(ConditionKind) and ":" in written
        hint = _hint_for(written) if several or "," in written else f"{meant}use one of {known}"
        raise BadOptionError(f"has {quoted(written)}, which is not a type of condition", hint) from error


def _hint_for(text: str) -> str:
    """Say how Slurm's lists and task names are written here."""
    task = _SLURM_TASK.search(text)
    if task is not None:
        return f"write task {task['index']} of an array as {task['array']}-{task['index']}"
    return _CONDITION_HINT


def _after_failed(text: str) -> bool:
    if text in {"hold", "stop"}:
        return text == "hold"
    raise BadOptionError("is neither stop nor hold", "write hold, or leave the tag out for stop")


def _plan(text: str) -> PlanUse:
    try:
        return PlanUse(text)
    except ValueError as error:
        raise BadOptionError("is none of first, only and never", "write first, only or never") from error


READERS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    PRIORITY: ("priority", _priority),
    TEAM: ("team", _team),
    PREEMPTIBLE: ("preemptible", _preemptible),
    RETRIES: ("retries", _retries),
    ON_OOM: ("on_oom", _on_oom),
    ALTERNATIVES: ("alternatives", _alternatives),
    **dict.fromkeys(AFTER_TAGS, ("after", read_conditions)),
    AFTER_FAILED: ("holds_after_failure", _after_failed),
    ARRAY: ("array", read_indices),
    PLAN: ("plan", _plan),
    ELASTIC: ("elastic", read_widths),
    HOLD_OPEN: ("hold_open", read_hold_open),
}
"""Tag key -> field of UserOptions and how its text is read. Every option there is."""


def nearest_option(key: str) -> str | None:
    """Return the option that the key spells but for case, blanks and our prefix; None if there is none."""
    return _BY_BARE_NAME.get(_bare(key))


def near_misses(body: Mapping[str, Any]) -> Iterator[FieldError]:
    """Yield a warning for each tag that looks like an option and is none.

    Those with our prefix are refused.
    """
    for index, tag in enumerate(body.get("Tags", [])):
        key = tag["Key"]
        option = nearest_option(key)
        if option is not None and key != option and not key.lower().startswith(TAG_PREFIX):
            yield FieldError(
                field=path_text(("Tags", index, "Key")),
                message=f"{quoted(key)} is an ordinary tag, which trainmaster does not read",
                hint=f"did you mean {option}? write it exactly so",
            )


def _bare(key: str) -> str:
    return _BETWEEN_WORDS.sub("", _OUR_PREFIX.sub("", key.strip().lower()))


_BY_BARE_NAME: Mapping[str, str] = {_bare(option): option for option in READERS}
