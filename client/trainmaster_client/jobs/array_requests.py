"""An array as it is sent: the request, the indices of its tasks, and their values. Pure.

What is cheap to see is refused here, with the index and the name of the value; the API checks all.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeAlias

from trainmaster_client.errors import FieldProblem, InvalidOptionsError
from trainmaster_client.http.array_routes import Values
from trainmaster_client.jobs.job_conditions import Conditions, with_conditions

if TYPE_CHECKING:
    from trainmaster.core.jobs.index_sets import WrittenIndices

GivenValues: TypeAlias = Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Any]]
"""A row a task, or a column a hyperparameter, as a program has them."""
Encode: TypeAlias = Callable[[str, Any], str]
"""Writes the value of a hyperparameter, given its name, as the text that SageMaker takes."""

ARRAY_TAG = "trainmaster:array"
MOST_PROBLEMS = 20
"""Mistakes that one message names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSelection:
    """The tasks that are wanted of a request."""

    tasks: str | None = None
    """Indices, such as ``0-63%8`` or ``1,3,5``; None: one for each row of values, from 0 on."""
    values: GivenValues | None = None
    """Hyperparameters of each task, in the order in which ``tasks`` names the indices."""
    at_most: int | None = None
    """Tasks that may run at once; None: what ``tasks`` says behind ``%``, or as many as fit."""
    stop_after_failures: int | None = None
    """Equal failures in a row after which the array is held; None: the API's default; 0: never."""
    after: Conditions | None = None
    """Jobs and arrays that it waits for, instead of those of the request; None: those of the request."""


def array_body(
    request: Mapping[str, Any], selection: TaskSelection, encode: Encode | None = None
) -> dict[str, Any]:
    """Return the body of ``POST /add-array``.

    Args:
        request: A CreateTrainingJob request, whose HyperParameters have a default for each value.
        selection: The tasks.
        encode: Writes the values; None: as ``plain_text`` does.

    Raises:
        InvalidOptionsError: Lists what is wrong with the tasks and their values.
    """
    rows = [] if selection.values is None else rows_of(selection.values)
    written = _indices(selection, len(rows))
    problems = [*_counts(selection, written, rows), *_throttles(selection, written)]
    texts = list(_encoded(rows, written.indices, encode or plain_text, problems))
    problems += _unknown_names(request, rows, written.indices)
    if problems:
        raise InvalidOptionsError(tuple(problems[:MOST_PROBLEMS]))
    at_most = selection.at_most if selection.at_most is not None else written.at_most
    options: dict[str, int | None] = {
        "at_most": at_most,
        "stop_after_failures": selection.stop_after_failures,
    }
    body: dict[str, Any] = {
        "request": with_conditions(request, selection.after),
        "tasks": _without_throttle(selection.tasks) or f"0-{len(rows) - 1}",
    }
    body |= {name: value for name, value in options.items() if value is not None}
    return body | ({"values": shortest(texts)} if texts else {})


def rows_of(values: GivenValues) -> list[Mapping[str, Any]]:
    """Return the values as a row a task.

    Raises:
        InvalidOptionsError: Columns differ in length, or a row is none.
    """
    if not isinstance(values, Mapping):
        rows = list(values)
        wrong = [number for number, row in enumerate(rows) if not isinstance(row, Mapping)]
        if wrong:
            raise _refused(
                f"values[{wrong[0]}]", "is not a mapping of hyperparameters", 'give e.g. {"lr": 0.1}'
            )
        return rows
    columns = {name: list(column) for name, column in values.items()}
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        counted = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise _refused(
            "values", f"has columns of different lengths: {counted}", "give one value a task in each"
        )
    count = max(lengths.values(), default=0)
    return [{name: column[number] for name, column in columns.items()} for number in range(count)]


def plain_text(name: str, value: Any) -> str:  # noqa: ANN401  whatever a program has
    """Write a text, a number or a truth value as text. Raises ValueError for anything else."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise ValueError(f"{name} is of type {type(value).__name__}; give text or a number")


def shortest(rows: Sequence[Mapping[str, str]]) -> Values:
    """Return the values as columns where all rows have the same names, which is shorter; else as rows."""
    names = list(rows[0])
    if names and all(list(row) == names for row in rows):
        return {name: [row[name] for row in rows] for name in names}
    return [dict(row) for row in rows]


def _indices(selection: TaskSelection, row_count: int) -> "WrittenIndices":
    # The hooks also work in programs of another environment, which have this package alone.
    from trainmaster.core.jobs import index_sets  # noqa: PLC0415

    if selection.tasks is None:
        if not row_count:
            raise _refused("tasks", "is missing, and so are values", 'give tasks="0-63", or a list of values')
        return index_sets.WrittenIndices(indices=tuple(range(row_count)))
    try:
        return index_sets.read_indices(selection.tasks)
    except index_sets.BadIndexSetError as error:
        raise _refused("tasks", error.message, error.hint) from error


def _counts(
    selection: TaskSelection, written: "WrittenIndices", rows: Sequence[Mapping[str, Any]]
) -> Iterator[FieldProblem]:
    if selection.values is not None and len(rows) != len(written.indices):
        message = f"has {len(rows)} rows for {len(written.indices)} tasks"
        yield FieldProblem(field="values", message=message, hint="give one row a task")


def _throttles(selection: TaskSelection, written: "WrittenIndices") -> Iterator[FieldProblem]:
    if selection.at_most is not None and selection.at_most < 1:
        yield FieldProblem(
            field="at_most", message=f"is {selection.at_most}", hint="let at least 1 task run at once"
        )
    elif selection.at_most and written.at_most and selection.at_most != written.at_most:
        message = f"is {selection.at_most}, and tasks says {written.at_most}"
        yield FieldProblem(field="at_most", message=message, hint="give one of them")


def _encoded(
    rows: Sequence[Mapping[str, Any]], indices: Sequence[int], encode: Encode, problems: list[FieldProblem]
) -> Iterator[dict[str, str]]:
    """Yield each row as texts; what cannot be written is added to the problems."""
    for number, row in enumerate(rows):
        texts = {}
        for name, value in row.items():
            try:
                texts[str(name)] = encode(str(name), value)
            except (ValueError, TypeError) as error:
                field = f"values[{number}].{name}"
                message = f"of task {_index(indices, number)} cannot be written: {error}"
                problems.append(FieldProblem(field=field, message=message))
        yield texts


def _unknown_names(
    request: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], indices: Sequence[int]
) -> Iterator[FieldProblem]:
    """Yield each name that the request has no default for, with the first task that has it."""
    known = list(request.get("HyperParameters") or {})
    first = {str(name): number for number in reversed(range(len(rows))) for name in rows[number]}
    for name, number in sorted(first.items(), key=lambda entry: entry[1]):
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else "give it a default in HyperParameters first"
            message = f"of task {_index(indices, number)} is no hyperparameter of the request"
            yield FieldProblem(field=f"values[{number}].{name}", message=message, hint=hint)


def _index(indices: Sequence[int], number: int) -> str:
    return str(indices[number]) if number < len(indices) else "?"


def _without_throttle(tasks: str | None) -> str:
    return "" if tasks is None else tasks.replace("@", "%").partition("%")[0].strip()


def _refused(field: str, message: str, hint: str) -> InvalidOptionsError:
    return InvalidOptionsError((FieldProblem(field=field, message=message, hint=hint),))
