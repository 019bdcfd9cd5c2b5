"""Audits what must hold of every replay: broken rules as sentences, none if all is well."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise

from trainmaster_client.simulate.comparison.outcomes import Fate, JobOutcome, seconds
from trainmaster_client.simulate.engine.past_jobs import PastWidths
from trainmaster_client.simulate.engine.replays import Replay, ReplayedAttempt

MOST_NAMED = 20
ROUNDING_S = 2
"""Seconds that rounding may add up to in an attempt: times are whole seconds."""

Place = tuple[str, str, str]
"""Pool, capacity type, instance type."""


def most_held(replay: Replay) -> dict[Place, int]:
    """Return the most instances that attempts and warm pools held at one instant."""
    steps: dict[Place, list[tuple[int, int]]] = defaultdict(list)
    for attempt in replay.attempts:
        place = (attempt.pool, attempt.capacity_type, attempt.instance_type)
        steps[place] += [(attempt.start_s, attempt.instances), (attempt.end_s, -attempt.instances)]
    for idle in replay.warm:
        place = (idle.pool, "on-demand", idle.instance_type)
        steps[place] += [(idle.since_s, idle.instances), (idle.until_s, -idle.instances)]
    return {place: highest(found) for place, found in steps.items()}


def over_capacity(replay: Replay) -> list[str]:
    """Places that held more than there was."""
    return [
        f"{pool}, {instance_type} ({capacity_type}): {held} of {there}"
        for (pool, capacity_type, instance_type), held in sorted(most_held(replay).items())
        if held > (there := _there(replay, (pool, capacity_type, instance_type)))
    ]


def _there(replay: Replay, place: Place) -> int:
    pool, capacity_type, instance_type = place
    on_plans = {(plan.pool, plan.capacity_type, plan.instance_type): plan.most for plan in replay.plans}
    return on_plans.get(place) or replay.capacity.get(pool, {}).get(capacity_type, {}).get(instance_type, 0)


def outside_windows(replay: Replay) -> list[str]:
    """Return attempts that trained on a plan while SageMaker gave it no instances."""
    windows = {(plan.pool, plan.capacity_type): plan.windows for plan in replay.plans}
    return [
        f"{attempt.job}, attempt {attempt.attempt}: on {attempt.capacity_type} at second {attempt.start_s}"
        for attempt in replay.attempts
        if attempt.is_on_plan
        and not any(
            window.since_s <= attempt.start_s and attempt.end_s - attempt.stopping_s <= window.ends_s
            for window in windows[attempt.pool, attempt.capacity_type]
        )
    ][:MOST_NAMED]


def lost_jobs(outcomes: Mapping[str, JobOutcome], replay: Replay) -> list[str]:
    """Return jobs whose attempts do not follow from each other, and attempts that are of no job."""
    return list(islice(_lost(outcomes, replay), MOST_NAMED))


def wrong_training(outcomes: Mapping[str, JobOutcome]) -> list[str]:
    """Return jobs that completed after more or less training than they had to have."""
    return list(islice(_wrong(outcomes), MOST_NAMED))


def highest(steps: Sequence[tuple[int, int]]) -> int:
    """Return the most that is held at one instant, at which ends go before begins."""
    held = highest = 0
    for _, change in sorted(steps):
        held += change
        highest = max(highest, held)
    return highest


def _lost(outcomes: Mapping[str, JobOutcome], replay: Replay) -> Iterator[str]:
    for name in sorted({attempt.job for attempt in replay.attempts} - outcomes.keys()):
        yield f"{name}: attempts of a job that was never submitted"
    for name, outcome in outcomes.items():
        problem = _out_of_order(outcome)
        if problem:
            yield f"{name}: {problem}"


def _out_of_order(outcome: JobOutcome) -> str | None:
    attempts = outcome.attempts
    if not attempts:
        return None
    if [attempt.attempt for attempt in attempts] != list(range(len(attempts))):
        return f"its attempts are {', '.join(str(attempt.attempt) for attempt in attempts)}"
    if attempts[0].start_s < outcome.submit_s:
        return "started before it was submitted"
    if any(not attempt.start_s <= attempt.train_s <= attempt.end_s for attempt in attempts):
        return "an attempt ends before it starts or trains"
    if any(after.start_s < before.end_s for before, after in pairwise(attempts)):
        return "two of its attempts overlap"
    return None


def _wrong(outcomes: Mapping[str, JobOutcome]) -> Iterator[str]:
    for name, outcome in outcomes.items():
        if outcome.fate is not Fate.COMPLETED or outcome.job.breaks:
            continue
        lasting = sum(_lasting_s(attempt, outcome.job.elastic) for attempt in outcome.attempts)
        wanted = seconds(outcome.job.trains_for)
        if abs(lasting - wanted) > ROUNDING_S * len(outcome.attempts):
            yield f"{name}: trained {lasting} s that lasted, has to train {wanted} s"


def _lasting_s(attempt: ReplayedAttempt, elastic: PastWidths | None) -> int:
    """Return the training that lasted, of an elastic job as if at its largest width."""
    lasted = attempt.end_s - attempt.stopping_s - attempt.train_s - attempt.lost_s
    return lasted if elastic is None else round(lasted * elastic.speeds[attempt.instances])
