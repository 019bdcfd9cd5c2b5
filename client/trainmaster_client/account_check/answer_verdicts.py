"""Verdicts on answers of calls (groups 1 to 4), each derived from the records alone."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from trainmaster_client.account_check.facts import Judge, Records, Verdict, agrees, differs, held_to, skipped
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

LEAST_PER_SECOND: Mapping[str, float] = MappingProxyType(
    {"CreateTrainingJob": 1.0, "DescribeTrainingJob": 2.0, "ListTrainingJobs": 2.0, "StopTrainingJob": 1.0}
)
"""Calls per second, observed by users (ListTrainingJobs) or assumed; the ``harsh`` world has the same."""
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
"""Readings that agree with the code for all other requests; a fault found later fails the job."""
LONGEST_CALL_SECONDS = 10.0
"""Read time-out of the functions' clients."""
LONGEST_READ_SECONDS = 60.0
"""Seconds after which the start protocol believes that a name is taken."""
_NEARLY = 0.8
"""Share of a rate that a burst has to reach: one of a few seconds does not measure it better."""


def quoted(operation: str, answer: Answer) -> str:
    """Quote what AWS answered, with what the product makes of it."""
    if answer["code"] is None:
        return TAKEN
    return f"{answer['code']} -> {product_reading(operation, answer)}: {answer['text']}"


def probe(fact_id: str) -> Judge:
    """Judge the answer to a request that AWS ought to refuse."""

    def judge(records: Records) -> Verdict | None:
        answer = records.get("probes", {}).get(fact_id)
        if answer is None:
            return None
        quote = quoted(_CREATE, answer)
        if answer["code"] == "" or is_for_later(_CREATE, answer):
            return skipped(f"no answer but {quote}")
        allowed = _READINGS.get(fact_id, _BAD_REQUEST)
        return held_to(quote, holds=product_reading(_CREATE, answer) in allowed)

    return judge


def is_only_the_quota(fact_id: str, answer: Answer) -> bool:
    """Tell whether the answer means that too much runs, which any request would get."""
    allowed = _READINGS.get(fact_id, _BAD_REQUEST)
    return LIMIT not in allowed and product_reading(_CREATE, answer) == LIMIT


def rate(operation: str) -> Judge:
    def judge(records: Records) -> Verdict | None:
        burst = records.get("bursts", {}).get(operation)
        return None if burst is None else _rate(operation, burst)

    return judge


def _rate(operation: str, burst: Records) -> Verdict:
    tried = f"{burst['calls']} calls in {burst['seconds']:.1f} s"
    if not burst["throttled"]:
        return agrees(f"{tried}, none throttled")
    summary = f"{tried}, {burst['throttled']} throttled, {burst['admitted_per_second']:.1f}/s admitted"
    unknown = [refusal for refusal in burst["refusals"] if not is_for_later(operation, refusal)]
    if unknown:
        return differs(f"{summary}; {quoted(operation, unknown[0])}")
    texts = "; ".join(quoted(operation, refusal) for refusal in burst["refusals"])
    enough = burst["admitted_per_second"] >= _NEARLY * LEAST_PER_SECOND[operation]
    return held_to(f"{summary}; {texts}", holds=enough)


def percentile(values: Iterable[float], share: float) -> float:
    """Return the smallest of the values that at least this share (0 to 1) of them does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def call_seconds(records: Records) -> list[float]:
    """Return the seconds of each answered call about training jobs.

    Throttled calls are left out: they are turned away at once and say nothing of the latency.
    """
    return [
        call["seconds"]
        for call in records.get("calls", ())
        if "TrainingJob" in call["operation"] and call["code"] != "" and call["code"] not in THROTTLED
    ]


def latency(records: Records) -> Verdict | None:
    seconds = call_seconds(records)
    if not seconds:
        return None
    p50, p99 = percentile(seconds, 0.5), percentile(seconds, 0.99)
    summary = f"p50 {p50:.2f} s, p99 {p99:.2f} s, {len(seconds)} calls"
    return held_to(summary, holds=p99 <= LONGEST_CALL_SECONDS)


def first_reads(first: Mapping[str, float | None]) -> Verdict:
    summary = ", ".join(
        f"{operation} {'never' if seconds is None else f'after {seconds:.1f} s'}"
        for operation, seconds in first.items()
    )
    late = [seconds for seconds in first.values() if seconds is None or seconds > LONGEST_READ_SECONDS]
    return held_to(summary, holds=not late)


def unknown_name(answers: Mapping[str, Answer]) -> Verdict:
    summary = "; ".join(f"{operation}: {quoted(operation, answer)}" for operation, answer in answers.items())
    readings = {product_reading(operation, answer) for operation, answer in answers.items()}
    return held_to(summary, holds=readings == {NOTHING_THERE})


def used_name(answer: Answer) -> Verdict:
    return held_to(quoted(_CREATE, answer), holds=product_reading(_CREATE, answer) == NAME_TAKEN)
