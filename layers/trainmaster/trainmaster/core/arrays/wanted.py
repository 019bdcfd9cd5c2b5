"""An array as somebody asks for it: the body of ``POST /add-array``, or a request with the tag.

Mistakes are collected, each with the index of the task and the field that it is about.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from trainmaster.core.arrays.array_model import DEFAULT_STOP_AFTER, MOST_STOP_AFTER
from trainmaster.core.arrays.tasks import VARIABLES
from trainmaster.core.errors import FieldError, quoted
from trainmaster.core.field_paths import path_text
from trainmaster.core.jobs.index_sets import BadIndexSetError, WrittenIndices, read_indices
from trainmaster.core.request.options import ARRAY
from trainmaster.core.request.request import MAX_NAME_CHARACTERS
from trainmaster.core.request.strict_json import MAX_ERRORS

FIELDS = ("request", "tasks", "at_most", "values", "stop_after_failures")
MOST_ENVIRONMENT = 100 - len(VARIABLES)
"""Environment variables that leave room for those of a task. Source: SageMaker API, Environment."""
MOST_VALUE_CHARACTERS = 2500
"""Source: SageMaker API reference, HyperParameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedArray:
    """The tasks that somebody wants of one request."""

    indices: tuple[int, ...]
    """Indices of the tasks, in ascending order."""
    values: tuple[Mapping[str, str], ...] = ()
    """Hyperparameters of each task, in the order of ``indices``; empty: all are as in the request."""
    at_most: int | None = None
    stop_after_failures: int = DEFAULT_STOP_AFTER


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadArray:
    """A body as it was read, with its errors; ``wanted`` is None if there are any."""

    request: Any
    """The CreateTrainingJob request without the tag; not validated."""
    wanted: WantedArray | None
    errors: tuple[FieldError, ...] = ()


def read_array(body: Mapping[str, Any]) -> ReadArray:
    """Read the body of ``POST /add-array``; its request is validated elsewhere."""
    errors = [_unknown(key) for key in body if key not in FIELDS]
    request = body.get("request")
    if not isinstance(request, dict):
        errors.append(_wrong("request", "is no CreateTrainingJob request", "put the request of a task there"))
        request = {}
    written = _tasks(body, errors)
    at_most = _whole(body, "at_most", errors, least=1, most=None)
    stop_after = _whole(body, "stop_after_failures", errors, least=0, most=MOST_STOP_AFTER)
    if written.at_most is not None and at_most is not None and at_most != written.at_most:
        message = f"is {at_most}, and tasks says {written.at_most}"
        errors.append(_wrong("at_most", message, "write the throttle once"))
    if any(tag == ARRAY for tag in _tag_keys(request)):
        errors.append(_wrong("request.Tags", f"has the tag {ARRAY}, too", "leave the tag out"))
    values = values_of(body.get("values"), written.indices, errors) if written.indices else ()
    wanted = WantedArray(
        indices=tuple(sorted(written.indices)),
        values=values,
        at_most=written.at_most if at_most is None else at_most,
        stop_after_failures=DEFAULT_STOP_AFTER if stop_after is None else stop_after,
    )
    return ReadArray(request=request, wanted=None if errors else wanted, errors=tuple(errors[:MAX_ERRORS]))


def tagged_array(written: WrittenIndices) -> WantedArray:
    """Return the array that the tag of a plain request asks for."""
    return WantedArray(indices=tuple(sorted(written.indices)), at_most=written.at_most)


def request_mistakes(
    request: Mapping[str, Any], wanted: WantedArray, *, prefix: str = ""
) -> list[FieldError]:
    """Return what keeps a valid request from being that of this array's tasks.

    Args:
        request: Valid by itself.
        wanted: The tasks.
        prefix: Path of the request in what was sent, with its dot; "" where it is all of it.
    """
    errors = [*_name_mistakes(request, wanted, prefix), *_environment_mistakes(request, prefix)]
    known = request.get("HyperParameters", {})
    errors += islice(_unknown_names(known, wanted), MAX_ERRORS)
    return errors


def _name_mistakes(request: Mapping[str, Any], wanted: WantedArray, prefix: str) -> Iterator[FieldError]:
    name, digits = request["TrainingJobName"], len(str(wanted.indices[-1]))
    most = MAX_NAME_CHARACTERS - 1 - digits
    if len(name) > most:
        yield FieldError(
            field=f"{prefix}TrainingJobName",
            message=f"has {len(name)} characters, and the names of its tasks, {name}-{wanted.indices[-1]}, "
            f"would have {len(name) + 1 + digits} of at most {MAX_NAME_CHARACTERS}",
            hint=f"use at most {most} characters",
        )


def _environment_mistakes(request: Mapping[str, Any], prefix: str) -> Iterator[FieldError]:
    count = len(request.get("Environment", {}))
    if count > MOST_ENVIRONMENT:
        yield FieldError(
            field=f"{prefix}Environment",
            message=f"has {count} entries, and each task gets {len(VARIABLES)} more of at most 100",
            hint=f"use at most {MOST_ENVIRONMENT}",
        )


def _unknown_names(known: Mapping[str, Any], wanted: WantedArray) -> Iterator[FieldError]:
    for index, values in zip(wanted.indices, wanted.values, strict=False):
        for name in values:
            if name not in known:
                yield FieldError(
                    field=path_text(("values", name)),
                    message=f"is set for task {index}, and the request has no hyperparameter of this name",
                    hint="add it to the request's HyperParameters with its usual value, or correct the name",
                )


def values_of(
    values: object, indices: Sequence[int], errors: list[FieldError]
) -> tuple[Mapping[str, str], ...]:
    """Read hyperparameters as one object per task, or as one list per hyperparameter.

    Args:
        values: As sent; None: every task is like the request.
        indices: As written: the n-th value is of the n-th of them.
        errors: Gets what is wrong.

    Returns:
        One mapping per task, in ascending order of the indices.
    """
    match values:
        case None:
            return ()
        case list():
            rows = _rows(values, indices, errors)
        case dict():
            rows = _columns(values, indices, errors)
        case _:
            errors.append(_wrong("values", "is neither a list of objects nor an object of lists", _EXAMPLE))
            rows = ()
    if len(rows) != len(indices):
        return ()
    by_index = dict(zip(indices, rows, strict=True))
    return tuple(by_index[index] for index in sorted(indices))


_EXAMPLE = 'send for example [{"lr": "0.1"}, {"lr": "0.2"}] or {"lr": ["0.1", "0.2"]}'


def _rows(rows: list[Any], indices: Sequence[int], errors: list[FieldError]) -> Sequence[Mapping[str, str]]:
    if len(rows) != len(indices):
        message = f"has {len(rows)} objects for {len(indices)} tasks"
        errors.append(_wrong("values", message, "give one for each index, in the order of tasks"))
        return ()
    for number, (index, row) in enumerate(zip(indices, rows, strict=True)):
        if not isinstance(row, dict):
            errors.append(_wrong(path_text(("values", number)), f"of task {index} is no object", _EXAMPLE))
            continue
        for name, value in row.items():
            _check_value(("values", number, name), index, value, errors)
    return rows


def _columns(
    columns: dict[str, Any], indices: Sequence[int], errors: list[FieldError]
) -> Sequence[Mapping[str, str]]:
    for name, column in columns.items():
        field = path_text(("values", name))
        if not isinstance(column, list):
            errors.append(_wrong(field, "is no list", _EXAMPLE))
        elif len(column) != len(indices):
            message = f"has {len(column)} values for {len(indices)} tasks"
            errors.append(_wrong(field, message, "give one for each index, in the order of tasks"))
        else:
            for number, (index, value) in enumerate(zip(indices, column, strict=True)):
                _check_value(("values", name, number), index, value, errors)
    if errors:
        return ()
    return [{name: column[number] for name, column in columns.items()} for number in range(len(indices))]


def _check_value(path: tuple[str | int, ...], index: int, value: object, errors: list[FieldError]) -> None:
    if len(errors) >= MAX_ERRORS:
        return
    if not isinstance(value, str):
        hint = 'write it as text, as SageMaker takes it, e.g. "0.1"'
        errors.append(_wrong(path_text(path), f"of task {index} is no text", hint))
    elif len(value) > MOST_VALUE_CHARACTERS:
        message = f"of task {index} has {len(value)} characters"
        errors.append(_wrong(path_text(path), message, f"use at most {MOST_VALUE_CHARACTERS}"))


def _tasks(body: Mapping[str, Any], errors: list[FieldError]) -> WrittenIndices:
    text = body.get("tasks")
    if not isinstance(text, str):
        problem = "is missing" if text is None else "is no text"
        errors.append(_wrong("tasks", problem, 'send for example "0-63", "1-7:2" or "1,3,5"'))
        return WrittenIndices(indices=())
    try:
        return read_indices(text)
    except BadIndexSetError as error:
        errors.append(_wrong("tasks", error.message, error.hint))
        return WrittenIndices(indices=())


def _whole(
    body: Mapping[str, Any], name: str, errors: list[FieldError], *, least: int, most: int | None
) -> int | None:
    value = body.get(name)
    if value is None:
        return None
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if is_whole and value >= least and (most is None or value <= most):
        return int(value)
    bounds = f"from {least} to {most}" if most is not None else f"of at least {least}"
    errors.append(_wrong(name, f"is no whole number {bounds}", f"send a number {bounds}, or leave it out"))
    return None


def _tag_keys(request: Mapping[str, Any]) -> Iterator[str]:
    tags = request.get("Tags")
    for tag in tags if isinstance(tags, list) else []:
        if isinstance(tag, dict) and isinstance(tag.get("Key"), str):
            yield tag["Key"]


def _unknown(key: str) -> FieldError:
    known = ", ".join(FIELDS)
    return FieldError(field=path_text((key,)), message=f"{quoted(key)} is unknown", hint=f"use {known}")


def _wrong(field: str, message: str, hint: str) -> FieldError:
    return FieldError(field=field, message=message, hint=hint)
