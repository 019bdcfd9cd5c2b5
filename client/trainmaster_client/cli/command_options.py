"""Options of a command in one value: a dataclass, each field an option of its own on the command line."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """For typer: in the place of each parameter that is a dataclass come the dataclass's fields."""
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {
        name: one.annotation for name, one in signature.parameters.items() if is_dataclass(one.annotation)
    }

    @wraps(command)
    def run(**given: Any) -> None:  # noqa: ANN401  as typer parsed it
        for name, group in groups.items():
            given[name] = group(**{one.name: given.pop(one.name) for one in fields(group)})
        command(**given)

    parameters = [each for one in signature.parameters.values() for each in _flattened(one)]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # what typer reads
    return run


def _flattened(parameter: inspect.Parameter) -> Iterator[inspect.Parameter]:
    if not is_dataclass(parameter.annotation):
        yield parameter
        return
    hints = get_type_hints(parameter.annotation, include_extras=True)
    for one in fields(parameter.annotation):
        default = inspect.Parameter.empty if one.default is MISSING else one.default
        yield inspect.Parameter(
            one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[one.name]
        )
