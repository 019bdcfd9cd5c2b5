"""Training job requests as people keep them: JSON or YAML, cloned from an answer of SageMaker, wrapped.

A request is what boto3's ``create_training_job`` takes. What ``DescribeTrainingJob`` answers is one, once the
fields that only an answer has are dropped. A request that another tool keeps within its own document is named
by its place there, in one sentence, instead of a list of everything that the wrapper lacks.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

import yaml
from trainmaster.core.request.request_shapes import ROOT, SHAPES

from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.files.yaml_documents import read_yaml
from trainmaster_client.files.yaml_mistakes import yaml_mistake

ANSWER_FIELDS = frozenset(
    {
        *("TrainingJobArn", "TuningJobArn", "LabelingJobArn", "AutoMLJobArn", "OutputModelPackageArn"),
        *("TrainingJobStatus", "SecondaryStatus", "SecondaryStatusTransitions", "FailureReason"),
        *("CreationTime", "TrainingStartTime", "TrainingEndTime", "LastModifiedTime"),
        *("TrainingTimeInSeconds", "BillableTimeInSeconds", "BillableTokenCount"),
        *("ModelArtifacts", "FinalMetricDataList", "ProgressInfo", "MlflowDetails", "WarmPoolStatus"),
        *("DebugRuleEvaluationStatuses", "ProfilerRuleEvaluationStatuses", "ProfilingStatus"),
        "ResponseMetadata",  # boto3's own, beside every answer
    }
)
"""Fields of an answer that no request has. Source: SageMaker API reference, DescribeTrainingJob."""

_ANSWER_MARKS = frozenset({"TrainingJobArn", "TrainingJobStatus", "SecondaryStatus", "ResponseMetadata"})
"""Fields of which every answer has one, and which people do not write into a request by hand."""
_REQUEST_FIELDS = frozenset(SHAPES[ROOT]["members"])
_CORE_FIELDS = frozenset(
    name.lower() for name in (*SHAPES[ROOT]["required"], "AlgorithmSpecification", "ResourceConfig")
)
_LEAST_CORE_FIELDS = 2
"""Fields that make a mapping a request; a name or a role alone stands in many documents."""
_DEEPEST_WRAPPER = 12
"""Levels. A state machine has its request below ``States``, a state's name and ``Parameters``."""
_MOST_PLACES = 3
_FROM_INPUT = ".$"
"""The end of a key whose value Step Functions takes from the input of the state."""
_HINT = (
    'Give a request as boto3 takes it, JSON like {"TrainingJobName": ...} or the same as YAML. '
    "Nothing was sent."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestDocument:
    """A request, and what was done to the document that it was read from."""

    request: dict[str, Any]
    notes: tuple[str, ...] = ()
    """A sentence for each thing that its author should know."""


def read_request(text: bytes, *, source: str) -> RequestDocument:
    """Read a request from JSON or YAML.

    Args:
        text: A whole file.
        source: What messages call it.

    Raises:
        InvalidArgumentError: It is neither, no mapping, holds what JSON cannot say, or wraps the request.
    """
    document = _parsed(text, source=source)
    if not isinstance(document, dict):
        if place := _wrapped(document, source=source):
            raise place
        raise InvalidArgumentError(f"{source} holds no request.", hint=_HINT)
    return request_of(document, source=source)


def request_of(document: Mapping[str, Any], *, source: str) -> RequestDocument:
    """Take a request from a mapping, which is one, or what DescribeTrainingJob answered.

    Raises:
        InvalidArgumentError: The request stands within the mapping, or cannot be sent as it is.
    """
    dropped = [key for key in document if key in ANSWER_FIELDS] if _ANSWER_MARKS & document.keys() else []
    request = {key: value for key, value in document.items() if key not in dropped}
    try:
        if not _is_request(document) and (refusal := _wrapped(document, source=source)):
            raise refusal
        _refuse_other_spelling(request, source=source)
        _refuse_unsendable(request, source=source)
    except RecursionError as error:
        raise InvalidArgumentError(f"{source} is nested too deeply for a request.", hint=_HINT) from error
    return RequestDocument(request=request, notes=(_answer_note(source, dropped),) if dropped else ())


def _answer_note(source: str, dropped: list[str]) -> str:
    return (
        f"{source} is what DescribeTrainingJob answers. It is taken as a request without "
        f"{', '.join(dropped)}. Such an answer has no tags: add those that the job needs."
    )


def _parsed(text: bytes, *, source: str) -> Any:  # noqa: ANN401  any JSON or YAML
    try:
        return json.loads(text, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        looks_like_json = text.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"["))
        is_yaml = source.lower().endswith((".yaml", ".yml")) or not looks_like_json
        if isinstance(error, UnicodeDecodeError) or not is_yaml:
            raise InvalidArgumentError(f"{source}: {error}.", hint=_HINT) from error
    try:
        return read_yaml(text)
    except yaml.YAMLError as error:
        raise InvalidArgumentError(yaml_mistake(error, text=text, source=source), hint=_HINT) from error


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a mapping, refusing equal keys: JSON's parser would let the last of them win."""
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        (repeated, _), *_others = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the key {repeated!r} is written twice")
    return mapping


def _is_request(document: Mapping[Any, Any]) -> bool:
    """Tell a request by its fields, however a tool spells their case, and with fields filled in later."""
    names = {str(key).removesuffix(_FROM_INPUT).lower() for key in document}
    return len(names & _CORE_FIELDS) >= _LEAST_CORE_FIELDS


def _wrapped(document: object, *, source: str) -> InvalidArgumentError | None:
    """Say where within a document the request is; None if there is none."""
    places = dict(_places(document, "", _DEEPEST_WRAPPER))
    if not places:
        return None
    shown = [*list(places)[:_MOST_PLACES], *(["..."] if len(places) > _MOST_PLACES else [])]
    if len(places) > 1:
        message = f"{source}: {len(places)} requests are in {', '.join(shown)}: give one of these parts."
    else:
        message = f"{source}: the request is in {shown[0]}: give that part."
    later = sorted({key for request in places.values() for key in _keys_from_input(request)})
    values = f"Write values in place of {', '.join(later)}. " if later else ""
    return InvalidArgumentError(message, hint=f"{values}Nothing was sent.")


def _places(value: object, path: str, deeper: int) -> Iterator[tuple[str, Mapping[Any, Any]]]:
    """Yield each request within a document with its path; what is within a request is part of it."""
    if isinstance(value, Mapping):
        if path and _is_request(value):
            yield path, value
            return
        children: Iterator[tuple[str, object]] = (
            (f"{path}.{key}" if path else str(key), child) for key, child in value.items()
        )
    elif isinstance(value, list):
        children = ((f"{path}[{index}]", child) for index, child in enumerate(value))
    else:
        return
    if deeper:
        for child_path, child in children:
            yield from _places(child, child_path, deeper - 1)


def _keys_from_input(value: object) -> Iterator[str]:
    """Yield keys that Step Functions fills in when the state runs, wherever they stand in a request."""
    if isinstance(value, Mapping):
        for key, child in value.items():
            if isinstance(key, str) and key.endswith(_FROM_INPUT):
                yield key
            yield from _keys_from_input(child)
    elif isinstance(value, list):
        for child in value:
            yield from _keys_from_input(child)


def _refuse_other_spelling(document: Mapping[str, Any], *, source: str) -> None:
    """Refuse keys as CloudTrail and operators for Kubernetes write them, and those of a state machine."""
    if later := sorted(set(_keys_from_input(document))):
        raise InvalidArgumentError(
            f"{source}: Step Functions fills in {', '.join(later)} when the state runs.",
            hint="Write the fields without .$, with their values. Nothing was sent.",
        )
    named = {name.lower(): name for name in _REQUEST_FIELDS}
    other = [key for key in document if key not in named.values() and str(key).lower() in named]
    if len(other) >= _LEAST_CORE_FIELDS:
        wanted = ", ".join(f"{named[key.lower()]} for {key}" for key in other[:_MOST_PLACES])
        raise InvalidArgumentError(
            f"{source}: its fields are not spelled as boto3 spells them.",
            hint=f"Write {wanted} and so on. Nothing was sent.",
        )


def _refuse_unsendable(value: object, *, source: str, path: str = "") -> None:
    """Refuse what YAML can say and JSON cannot, naming its place."""
    if isinstance(value, Mapping):
        for key, child in value.items():
            here = f"{path}.{key}" if path else str(key)
            if not isinstance(key, str):
                raise _unsendable(source, here, "its key is not text", f"write '{key}' in quotes")
            _refuse_unsendable(child, source=source, path=here)
    elif isinstance(value, list):
        for index, child in enumerate(value):
            _refuse_unsendable(child, source=source, path=f"{path}[{index}]")
    elif isinstance(value, date):
        raise _unsendable(source, path, "YAML reads it as a date", "write it in quotes")
    elif isinstance(value, bytes | set) or (isinstance(value, float) and value - value != 0):
        raise _unsendable(source, path, "it is no value of a request", "write text or a number")


def _unsendable(source: str, path: str, what: str, do: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"{source}: {path}: {what}: {do}.", hint="Nothing was sent.")
