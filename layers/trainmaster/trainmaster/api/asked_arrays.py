"""Read what a caller wants an array to be: the body of POST /add-array, or a request with the tag."""

import json
from dataclasses import dataclass, replace
from hashlib import sha256

from trainmaster.api.request_context import RequestContext
from trainmaster.api.submitting import made_by
from trainmaster.core.arrays.array_model import Numbering
from trainmaster.core.arrays.tasks import without_array_tag
from trainmaster.core.arrays.wanted import WantedArray, read_array, request_mistakes, tagged_array
from trainmaster.core.errors import FieldError, PayloadTooLargeError, invalid
from trainmaster.core.request.completion import in_whole_numbers
from trainmaster.core.request.strict_json import MAX_BODY_BYTES, parse_object
from trainmaster.core.request.validation import check_request
from trainmaster.core.submission.admission import Submission
from trainmaster.core.submission.repeats import hash_of_key

MOST_READ_BYTES = 6_000_000
"""Bytes of a body that is read to say how much of it would fit. Source: Lambda quotas, payload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArraySubmission:
    """One valid request of an array."""

    submission: Submission
    """The request of its tasks, without the tag, for one team."""
    wanted: WantedArray
    prefix: str = ""
    """Path of the request in what was sent, with its dot."""
    rerun_of: str | None = None
    first_numbering: Numbering | None = None
    folder: str | None = None


def array_submission(
    submission: Submission,
    wanted: WantedArray,
    *,
    prefix: str = "",
    rerun_of: str | None = None,
    folder: str | None = None,
) -> ArraySubmission:
    """Make the submission of an array; its identity is that of the request with all that makes it an array.

    Args:
        submission: Of the request of its tasks.
        wanted: The tasks.
        prefix: As ``ArraySubmission.prefix``.
        rerun_of: The array whose tasks it has again; None: of none.
        folder: As ``Array.folder``.
    """
    parts = [wanted.indices, wanted.values, wanted.at_most, wanted.stop_after_failures, rerun_of, folder]
    text = json.dumps(parts, sort_keys=True)
    known = replace(submission, tasks_hash=sha256(text.encode()).hexdigest())
    return ArraySubmission(submission=known, wanted=wanted, prefix=prefix, rerun_of=rerun_of, folder=folder)


def tagged(submission: Submission) -> ArraySubmission | None:
    """Return the array that a plain request's tag asks for; None if it has none.

    Raises InvalidRequestError if the request has no room for what a task adds.
    """
    written = submission.ask.options.array
    if written is None:
        return None
    wanted = tagged_array(written)
    request = replace(
        submission,
        body=without_array_tag(submission.body),
        sent=None if submission.sent is None else without_array_tag(submission.sent),
    )
    mistakes = request_mistakes(request.body, wanted)
    if mistakes:
        raise invalid(mistakes)
    return array_submission(request, wanted)


def read_submission(context: RequestContext) -> ArraySubmission:
    call = context.call
    key_hash = hash_of_key(call.idempotency_key)
    try:
        body = parse_object(call.body, base64=call.is_base64, content_type=call.content_type)
    except PayloadTooLargeError as error:
        raise too_large(call.body or "", error) from error
    read = read_array(body)
    request = in_whole_numbers(read.request) if isinstance(read.request, dict) else {}
    errors = list(read.errors)
    if request:
        errors += [replace(error, field=f"request.{error.field}") for error in check_request(request)]
    if not errors and read.wanted is not None:
        errors += request_mistakes(request, read.wanted, prefix="request.")
    if errors or read.wanted is None:
        raise invalid(errors)
    made = made_by(context, request)
    return array_submission(replace(made, key_hash=key_hash), read.wanted, prefix="request.")


def too_large(text: str, error: PayloadTooLargeError) -> PayloadTooLargeError:
    """Say how many tasks of a body that is too large would have fitted, if its values can be read."""
    fitting = _tasks_that_fit(text) if len(text) <= MOST_READ_BYTES else None
    if fitting is None:
        return error
    message = f"is larger than {MAX_BODY_BYTES} bytes; with values of this length {fitting} tasks would fit"
    hint = "split the array, or shorten what all tasks share into the request"
    return PayloadTooLargeError(
        f"body: {message}", errors=[FieldError(field="body", message=message, hint=hint)]
    )


def _tasks_that_fit(text: str) -> int | None:
    try:
        body = json.loads(text)
    except ValueError:
        return None
    values = body.get("values") if isinstance(body, dict) else None
    if isinstance(values, dict):
        columns = [column for column in values.values() if isinstance(column, list)]
        count = min((len(column) for column in columns), default=0)
    else:
        count = len(values) if isinstance(values, list) else 0
    if not count:
        return None
    of_values = len(json.dumps(values, ensure_ascii=False).encode())
    rest = len(text.encode("utf-8", "surrogatepass")) - of_values
    return max(0, min(count, (MAX_BODY_BYTES - max(rest, 0)) * count // of_values))
