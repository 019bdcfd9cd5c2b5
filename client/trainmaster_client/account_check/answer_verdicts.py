"""Verdicts on answers of calls (groups 1 to 4), each from what was recorded and nothing else."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeAlias

from trainmaster_client.account_check.assumed_answers import ANSWERS, LEAST_PER_SECOND, rate_id
from trainmaster_client.account_check.facts import Verdict, agrees, differs, held_to, skipped
from trainmaster_client.account_check.product_reading import (
    LIMIT,
    NAME_TAKEN,
    NOTHING_THERE,
    REFUSED_FOR_GOOD,
    TAKEN,
    THROTTLED,
    Answer,
    is_for_later,
    product_reading,
)

Records: TypeAlias = Mapping[str, Any]
"""The facts of a report, as the looks wrote them."""

_CREATE = "CreateTrainingJob"
_READINGS: Mapping[str, frozenset[str]] = {
    "refused-instances": frozenset({LIMIT, TAKEN}),
    "refused-run-time": frozenset({LIMIT, TAKEN}),
    "refused-quota-zero": frozenset({LIMIT}),
    "refused-keep-alive": frozenset({LIMIT, REFUSED_FOR_GOOD, TAKEN}),
    **dict.fromkeys(
        ("pending-cpu", "pending-gpu", "pending-spot", "pending-preferences"),
        frozenset({LIMIT, REFUSED_FOR_GOOD, TAKEN}),
    ),
}
_BAD_REQUEST = frozenset({REFUSED_FOR_GOOD, TAKEN})
"""What is found wrong later is a failure of the job, with its reason."""
LONGEST_CALL_SECONDS = 10.0
"""Read time-out of the functions' clients."""
LONGEST_READ_SECONDS = 60.0
"""After which the start protocol believes that a name is taken."""
_NEARLY = 0.8
"""Of a rate: a burst of a few seconds does not measure it better."""


def quoted(operation: str, answer: Answer) -> str:
    """What AWS said, and what the product makes of it."""
    if answer["code"] is None:
        return TAKEN
    return f"{answer['code']} -> {product_reading(operation, answer)}: {answer['text']}"


def _probe(fact_id: str, records: Records) -> Verdict | None:
    answer = records.get("probes", {}).get(fact_id)
    if answer is None:
        return None
    said = quoted(_CREATE, answer)
    if answer["code"] == "" or is_for_later(_CREATE, answer):
        return skipped(f"no answer but {said}")
    return held_to(said, holds=product_reading(_CREATE, answer) in _READINGS.get(fact_id, _BAD_REQUEST))


def is_only_the_quota(fact_id: str, answer: Answer) -> bool:
    """The answer is that too much runs, which would be said of any request."""
    allowed = _READINGS.get(fact_id, _BAD_REQUEST)
    return LIMIT not in allowed and product_reading(_CREATE, answer) == LIMIT


def _rate(operation: str, records: Records) -> Verdict | None:
    burst = records.get("bursts", {}).get(operation)
    if burst is None:
        return None
    tried = f"{burst['calls']} calls in {burst['seconds']:.1f} s"
    if not burst["throttled"]:
        return agrees(f"{tried}, none throttled")
    said = f"{tried}, {burst['throttled']} throttled, {burst['admitted_per_second']:.1f}/s admitted"
    unknown = [one for one in burst["refusals"] if not is_for_later(operation, one)]
    if unknown:
        return differs(f"{said}; {quoted(operation, unknown[0])}")
    texts = "; ".join(quoted(operation, one) for one in burst["refusals"])
    enough = burst["admitted_per_second"] >= _NEARLY * LEAST_PER_SECOND[operation]
    return held_to(f"{said}; {texts}", holds=enough)


def percentile(values: Iterable[float], share: float) -> float:
    """The value that this share of them does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def call_seconds(records: Records) -> list[float]:
    """Of calls about training jobs that were answered; a throttled one is turned away at once."""
    return [
        one["seconds"]
        for one in records.get("calls", ())
        if "TrainingJob" in one["operation"] and one["code"] != "" and one["code"] not in THROTTLED
    ]


def _latency(records: Records) -> Verdict | None:
    seconds = call_seconds(records)
    if not seconds:
        return None
    p50, p99 = percentile(seconds, 0.5), percentile(seconds, 0.99)
    said = f"p50 {p50:.2f} s, p99 {p99:.2f} s, {len(seconds)} calls"
    return held_to(said, holds=p99 <= LONGEST_CALL_SECONDS)


def _read_after_create(records: Records) -> Verdict | None:
    first = records.get("first_read_seconds")
    if not first:
        return None
    said = ", ".join(
        f"{operation} {'never' if seconds is None else f'after {seconds:.1f} s'}"
        for operation, seconds in first.items()
    )
    late = [one for one in first.values() if one is None or one > LONGEST_READ_SECONDS]
    return held_to(said, holds=not late)


def _unknown_name(records: Records) -> Verdict | None:
    answers = records.get("unknown_name")
    if not answers:
        return None
    said = "; ".join(f"{operation}: {quoted(operation, one)}" for operation, one in answers.items())
    readings = {product_reading(operation, one) for operation, one in answers.items()}
    return held_to(said, holds=readings == {NOTHING_THERE})


def _used_name(records: Records) -> Verdict | None:
    answer = records.get("used_name")
    if answer is None:
        return None
    return held_to(quoted(_CREATE, answer), holds=product_reading(_CREATE, answer) == NAME_TAKEN)


ANSWER_VERDICTS: Mapping[str, Callable[[Records], Verdict | None]] = {
    **{one.id: partial(_probe, one.id) for one in ANSWERS if one.id.startswith(("refused-", "pending-"))},
    **{rate_id(operation): partial(_rate, operation) for operation in LEAST_PER_SECOND},
    "latency": _latency,
    "read-after-create": _read_after_create,
    "unknown-name": _unknown_name,
    "used-name": _used_name,
}
"""None: nothing was recorded."""
