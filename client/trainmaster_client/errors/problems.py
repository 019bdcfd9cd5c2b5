"""The problems of a request: one field at a time, and as an answer of the API."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldProblem:
    """A mistake in one field, or a warning about it."""

    field: str
    message: str
    hint: str = ""
    rule: str = ""

    def __str__(self) -> str:
        where = f"{self.field}: " if self.field else ""
        rule = f" [{self.rule}]" if self.rule else ""
        hint = f"; {self.hint}" if self.hint else ""
        return f"{where}{self.message}{rule}{hint}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The API's refusal: a problem document (RFC 9457), or the gateway's bare message."""

    status: int
    title: str
    detail: str
    errors: tuple[FieldProblem, ...] = ()
    retry_after: str = ""
    """Seconds, as in the answer's header; empty when there was none."""
    kind: str = ""
    """The last word of its ``type``, for example ``repair-needed``; empty when it had none."""

    def __str__(self) -> str:
        """Write each sentence once: the API repeats its detail in the field's message, its wait in hints."""
        has_hint = any(error.hint for error in self.errors)
        retry = f"; try again in {self.retry_after} s" if self.retry_after and not has_hint else ""
        first = f"{self.title} ({self.status}): {self.detail}{retry}"
        if len(self.errors) == 1:
            only = self.errors[0]
            if self.detail.endswith(only.message):
                return f"{self.title} ({self.status}): {only}{retry}"
            if only.message in self.detail and only.hint in self.detail:
                return first
        return "\n".join([first, *(f"  {error}" for error in self.errors)])
