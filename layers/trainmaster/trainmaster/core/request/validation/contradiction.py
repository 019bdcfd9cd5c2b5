"""Two parts of a request that contradict each other: AWS refuses them at once, whatever each says by itself.

The queue refuses them with advice, the twin's SageMaker in AWS's words; both read the same lists. Words with
a source are AWS's own, the others say in the same manner what its documentation rules out.
"""

from dataclasses import dataclass

from trainmaster.core.errors import Path
from trainmaster.core.request.strict_json import Mistake

_LONGEST_SHOWN = 64
"""Characters of a name: as long as a channel's may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    mistake: Mistake
    aws: str
    """Text that CreateTrainingJob answers, as a ValidationException."""


def contradiction(path: Path, message: str, hint: str, *, aws: str) -> Contradiction:
    return Contradiction(mistake=Mistake(path, message, hint), aws=aws)


def names_text(names: list[str]) -> str:
    """Join names that nothing has checked yet, in one line of bounded length."""
    return ", ".join(name if len(name) <= _LONGEST_SHOWN else f"{name[:_LONGEST_SHOWN]}..." for name in names)
