"""Conditions between arrays, index by index: both are arrays, of the same indices."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from trainmaster.core.arrays.array_model import Array
from trainmaster.core.errors import FieldError
from trainmaster.core.jobs.end_conditions import ConditionKind
from trainmaster.core.jobs.index_sets import ranges_text
from trainmaster.core.request.options import WantedCondition

RULE_DEPENDENCY = "dependency"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCondition:
    """A condition, and the field that has it."""

    field: str
    wanted: WantedCondition


def unlike_arrays(
    written: Iterable[WrittenCondition], indices: tuple[int, ...] | None, arrays: Mapping[str, Array]
) -> Iterator[FieldError]:
    """Yield conditions of single tasks where the child, or the parent, is no array."""
    for mention in _of_tasks(written):
        name = mention.wanted.job
        array = arrays.get(name)
        is_parent = array is not None and array.name == name
        if indices is None or not is_parent:
            which = "the submission" if indices is None else name
            yield FieldError(
                field=mention.field,
                message=f"has aftercorr, which is between arrays, and {which} is no array",
                hint="write afterok for the end of the whole",
            )


def other_indices(
    written: Iterable[WrittenCondition], indices: tuple[int, ...] | None, arrays: Mapping[str, Array]
) -> Iterator[FieldError]:
    """Yield conditions of single tasks that cannot hold: other indices, or no task that completed."""
    for mention in _of_tasks(written):
        array = arrays.get(mention.wanted.job)
        if array is None or indices is None:
            continue
        message = None
        if array.indices != indices:
            message = (
                f"has aftercorr between arrays of other indices: {ranges_text(indices)} here, "
                f"{ranges_text(array.indices)} of {array.name}"
            )
        elif array.is_ended and not array.ends.completed:
            message = f"has aftercorr on {array.name}, none of whose tasks completed"
        if message is not None:
            hint = "give both arrays the same tasks, or write afterok or afterany for the end of the whole"
            yield FieldError(field=mention.field, message=message, hint=hint, rule=RULE_DEPENDENCY)


def _of_tasks(written: Iterable[WrittenCondition]) -> Iterator[WrittenCondition]:
    return (mention for mention in written if mention.wanted.kind is ConditionKind.AFTER_CORR)
