"""Conditions as somebody wrote them become those of a job: names become submissions, known ends count."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from trainmaster.core.arrays.array_model import Array
from trainmaster.core.errors import FieldError, quoted
from trainmaster.core.jobs.end_conditions import Condition, Dependencies, ParentEnd
from trainmaster.core.jobs.model import Job
from trainmaster.core.lifecycle.dependents import ended_parent, impossible_text
from trainmaster.core.request.options import WantedCondition
from trainmaster.core.submission.array_conditions import (
    RULE_DEPENDENCY,
    WrittenCondition,
    other_indices,
    unlike_arrays,
)

RULE_MAX_PARENTS = "limits.max_parents"
NO_ARRAYS: Mapping[str, Array] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Parents:
    """Holds what is known of the conditions that were written."""

    errors: tuple[FieldError, ...] = ()
    """Conditions that say nothing: no such job, the job itself, one job twice."""
    violations: tuple[FieldError, ...] = ()
    """Conditions that can hold no more, and more of them than the pool allows."""
    after: Dependencies | None = None
    """Conditions of the job; None if it has none, or if there are errors."""


NO_PARENTS = Parents()


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """The job that is to wait."""

    name: str
    team: str
    most_parents: int
    """``limits.max_parents`` of its pool."""
    hold_when_impossible: bool
    indices: tuple[int, ...] | None = None
    """Indices of its tasks; None: it is no array."""


def judge_parents(
    written: Sequence[WrittenCondition],
    known: Mapping[str, Job],
    child: Child,
    *,
    arrays: Mapping[str, Array] = NO_ARRAYS,
) -> Parents:
    """Resolve conditions to submissions.

    Args:
        written: In the order of the tags.
        known: By the name that was written, jobs that the caller may see.
        child: Of the submission.
        arrays: By the name that was written, arrays, and those of tasks that are no jobs yet.
    """
    if not written:
        return NO_PARENTS
    errors = (*_errors(written, known), *unlike_arrays(written, child.indices, arrays))
    too_many = tuple(_too_many(written, child))
    if errors:
        return Parents(errors=errors, violations=too_many)
    conditions = [
        _condition(mention.wanted, known[mention.wanted.job], arrays.get(mention.wanted.job))
        for mention in written
    ]
    after = Dependencies(conditions=tuple(conditions), hold_when_impossible=child.hold_when_impossible)
    impossible = (
        _impossible(mention, condition, known[mention.wanted.job], child)
        for mention, condition in zip(written, conditions, strict=True)
        if condition.holds is False
    )
    unequal = other_indices(written, child.indices, arrays)
    return Parents(violations=(*too_many, *impossible, *unequal), after=after)


def _condition(wanted: WantedCondition, parent: Job, array: Array | None) -> Condition:
    return Condition(
        kind=wanted.kind,
        job=parent.name,
        entry_id=parent.spec.entry_id,
        team=parent.spec.team,
        end=ParentEnd(parent.state.value) if parent.is_final else None,
        array=None if array is None else array.name,
        array_ver=None if array is None else array.ver,
    )


def _errors(written: Iterable[WrittenCondition], known: Mapping[str, Job]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for mention in written:
        job = known.get(mention.wanted.job)
        if job is None:
            yield FieldError(
                field=mention.field,
                message=f"no such job: {quoted(mention.wanted.job)}",
                hint="name a job of your teams that waits, runs or has ended; `trainmaster queue` lists them",
            )
        elif job.spec.entry_id in seen:
            message = f"names job {job.name} twice"
            yield FieldError(field=mention.field, message=message, hint="give one condition for each job")
        else:
            seen.add(job.spec.entry_id)


def after_itself(written: Iterable[WrittenCondition], name: str) -> Iterator[FieldError]:
    """Yield the mistake of each condition that names the job that is submitted."""
    for mention in written:
        if mention.wanted.job == name:
            message = f"has the job wait for itself, {name}"
            yield FieldError(field=mention.field, message=message, hint="name another job")


def _too_many(written: Sequence[WrittenCondition], child: Child) -> Iterator[FieldError]:
    if len(written) > child.most_parents:
        yield FieldError(
            field=written[-1].field,
            message=f"the job is to wait for {len(written)} jobs, the pool allows {child.most_parents}",
            hint="have it wait for one job that waits for the others",
            rule=RULE_MAX_PARENTS,
        )


def _impossible(mention: WrittenCondition, condition: Condition, parent: Job, child: Child) -> FieldError:
    after = Dependencies(conditions=(condition,), root=ended_parent(parent).root)
    return FieldError(
        field=mention.field,
        message=impossible_text(after, team=child.team),
        hint="name a job that can still end as wanted, or use afterany, which any end fulfils",
        rule=RULE_DEPENDENCY,
    )
