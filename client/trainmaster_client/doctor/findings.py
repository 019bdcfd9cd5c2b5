"""What a look at one thing found."""

from dataclasses import dataclass
from typing import Any

from trainmaster_client.errors.troubles import ADVICE, Advice, Trouble


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    ok: bool | None
    """None: neither passed nor failed; ``why`` says why."""
    actual: Any
    trouble: Trouble | None = None
    why: str = ""
    blocks: bool = False
    """True when what needs this cannot be looked at."""

    @property
    def advice(self) -> Advice | None:
        return None if self.trouble is None else ADVICE[self.trouble]

    @property
    def word(self) -> str:
        if self.ok is None:
            return "skip" if self.trouble is None else "warn"
        return "ok" if self.ok else "FAIL"


def good(actual: Any) -> Finding:  # noqa: ANN401  JSON
    return Finding(ok=True, actual=actual)


def bad(trouble: Trouble, actual: Any) -> Finding:  # noqa: ANN401  JSON
    return Finding(ok=False, actual=actual, trouble=trouble, blocks=True)


def worth_a_warning(trouble: Trouble, actual: Any) -> Finding:  # noqa: ANN401  JSON
    """Nothing is broken, but somebody may want to act."""
    return Finding(ok=None, actual=actual, trouble=trouble, why=f"warning: {ADVICE[trouble].cause}")


def skipped(why: str) -> Finding:
    """It cannot be known here, which is no fault."""
    return Finding(ok=None, actual=None, why=why)


def blocked(by: str) -> Finding:
    return Finding(ok=None, actual=None, why=f"{by} comes first", blocks=True)
