"""Half the batch for an attempt after one whose GPUs ran out of memory, with its effect kept where possible.

Hyperparameters are texts. The SDKs write a number as ``8`` and a text as ``"8"``, both as JSON; what is
changed keeps its form.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trainmaster.core.policy.governing import OnOom

SMALLEST = 2
"""The least that can be halved."""
_WHOLE = re.compile(r'(?P<quote>"?)(?P<number>[1-9][0-9]{0,8})(?P=quote)')


@dataclass(frozen=True, slots=True, kw_only=True)
class Halving:
    rewritten: Mapping[str, str]
    """Hyperparameters that change, with their new values."""
    says: str
    """What changes, for people: ``batch_size 8 to 4``."""


def halve(hyperparameters: Mapping[str, str], names: OnOom) -> Halving | None:
    """Halve the first batch that the request has, and double the first accumulation; None: nothing to halve.

    A request without an accumulation does not get one: a script that does not know the name would not start.
    """
    batch = _first(hyperparameters, names.batch, least=SMALLEST)
    if batch is None:
        return None
    changes = [(batch, _number(hyperparameters[batch]) // 2)]
    accumulation = _first(hyperparameters, names.accumulation, least=1)
    if accumulation is not None:
        changes.append((accumulation, _number(hyperparameters[accumulation]) * 2))
    texts = [f"{name} {_number(hyperparameters[name])} to {value}" for name, value in changes]
    kept = "" if accumulation else ", which makes each step smaller"
    return Halving(
        rewritten={name: _like(hyperparameters[name], value) for name, value in changes},
        says=", ".join(texts) + kept,
    )


def _first(hyperparameters: Mapping[str, str], names: Iterable[str], *, least: int) -> str | None:
    return next((name for name in names if _number(hyperparameters.get(name, "")) >= least), None)


def _number(text: str) -> int:
    """0 for what is not a whole number."""
    match = _WHOLE.fullmatch(text)
    return int(match["number"]) if match else 0


def _like(text: str, value: int) -> str:
    match = _WHOLE.fullmatch(text)
    assert match is not None, text
    return f"{match['quote']}{value}{match['quote']}"
