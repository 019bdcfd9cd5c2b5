"""The stack's name and parameters as ``sam deploy --guided`` saved them in samconfig.toml."""

import re
import shlex
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainmaster_client.errors import InvalidArgumentError

_SECTIONS = ("global", "deploy")
_OVERRIDE = re.compile(r"([A-Za-z0-9]+)=(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    stack: str | None = None
    region: str | None = None
    parameters: dict[str, str] = field(default_factory=dict)


def read_saved(file: Path) -> Saved:
    """Read the default environment of a samconfig.toml; a file that is not there has nothing.

    Raises:
        InvalidArgumentError: It is not TOML, or its overrides are not NAME=VALUE.
    """
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Saved()
    except (OSError, ValueError) as error:
        hint = "It is what `sam deploy --guided` writes; name another with --config."
        raise InvalidArgumentError(f"{file} cannot be read: {error}.", hint=hint) from error
    values: dict[str, Any] = {}
    for section in _SECTIONS:
        values |= document.get("default", {}).get(section, {}).get("parameters", {})
    written = values.get("parameter_overrides") or ()
    overrides = shlex.split(written) if isinstance(written, str) else [str(line) for line in written]
    return Saved(
        stack=values.get("stack_name"), region=values.get("region"), parameters=parsed(overrides, str(file))
    )


def parsed(overrides: Iterable[str], source: str) -> dict[str, str]:
    """Parse NAME=VALUE texts. Raises InvalidArgumentError naming the source and the text."""
    parameters: dict[str, str] = {}
    for text in overrides:
        match = _OVERRIDE.fullmatch(text)
        if match is None:
            hint = "Write for example ApiReservedConcurrency=50."
            raise InvalidArgumentError(f"{source}: {text!r} is not NAME=VALUE.", hint=hint)
        parameters[match[1]] = match[2].strip().strip("\"'")
    return parameters
