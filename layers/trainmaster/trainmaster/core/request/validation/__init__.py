"""Find all that keeps a CreateTrainingJob request from being queued, at once, each with its field."""

from collections.abc import Iterator
from itertools import chain, islice

from trainmaster.core.errors import FieldError, invalid
from trainmaster.core.request.strict_json import MAX_ERRORS, JsonObject, JsonValue, Mistake
from trainmaster.core.request.validation.channels import channel_contradictions
from trainmaster.core.request.validation.containers import container_contradictions
from trainmaster.core.request.validation.elastic import elastic_mistakes
from trainmaster.core.request.validation.fields import Contradiction, place_mistakes
from trainmaster.core.request.validation.held_containers import hold_open_mistakes
from trainmaster.core.request.validation.meaning import (
    meaning_mistakes,
    plan_mistakes,
    resource_mistakes,
    tag_mistakes,
)
from trainmaster.core.request.validation.sections import Section
from trainmaster.core.request.validation.shape import shape_mistakes

__all__ = ["Contradiction", "check_request", "check_shape", "contradictions", "require_valid"]


def require_valid(body: JsonObject) -> None:
    """Raises InvalidRequestError, which lists every mistake."""
    errors = check_request(body)
    if errors:
        raise invalid(errors)


def check_request(body: JsonValue) -> list[FieldError]:
    """Return all mistakes of shape and of meaning, up to MAX_ERRORS."""
    shape = shape_mistakes(body)
    meaning = _meaning(body) if isinstance(body, dict) else []
    explained = {mistake.path for mistake in meaning}  # where both found one, meaning says it better
    kept = [mistake for mistake in shape if mistake.path not in explained]
    return [mistake.as_field_error() for mistake in (kept + meaning)[:MAX_ERRORS]]


def check_shape(body: JsonValue) -> list[FieldError]:
    """Return departures from the service's model alone."""
    return [mistake.as_field_error() for mistake in shape_mistakes(body)]


def _meaning(body: JsonObject) -> list[Mistake]:
    mistakes = chain(
        meaning_mistakes(body),
        resource_mistakes(body),
        plan_mistakes(body),
        elastic_mistakes(body),
        hold_open_mistakes(body),
        tag_mistakes(body),
        place_mistakes(body),
        (clash.mistake for clash in contradictions(body)),
    )
    return list(islice(mistakes, MAX_ERRORS))


def contradictions(body: Section) -> Iterator[Contradiction]:
    """Yield parts that exclude each other; parts that are not of the model's shape are reported elsewhere."""
    yield from channel_contradictions(body)
    yield from container_contradictions(body)
