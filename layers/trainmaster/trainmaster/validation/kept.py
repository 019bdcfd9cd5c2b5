"""What is valid and stored with the job, but not acted on yet: said at submission, so nobody relies on it."""

from collections.abc import Iterator

from trainmaster.errors import FieldError
from trainmaster.request_errors import Mistake
from trainmaster.user_options import ON_OOM, RETRIES
from trainmaster.validation.sections import Section, elements, text

_LATER = (RETRIES, ON_OOM)
_HINT = "do not rely on it yet"


def kept_options(body: Section) -> list[FieldError]:
    """Warnings for the answer to a valid request."""
    return [mistake.as_field_error() for mistake in _kept(body)]


def _kept(body: Section) -> Iterator[Mistake]:
    for index, tag in elements(body, "Tags"):
        key = text(tag, "Key")
        if key in _LATER:
            yield Mistake(("Tags", index), f"{key} is kept, but this version does not act on it", _HINT)
