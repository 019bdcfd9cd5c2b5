"""The jobs that a job waits for: looked up by the names that a caller wrote, and shown with their states."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from trainmaster.api.request_context import RequestContext
from trainmaster.api.views import View
from trainmaster.core.errors import invalid, path_text
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.end_conditions import Condition
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.policy import PoolPolicy
from trainmaster.core.request.options import AFTER_TAGS, WantedCondition, read_conditions
from trainmaster.core.submission.admission import Submission, Verdict
from trainmaster.core.submission.parents import (
    NO_PARENTS,
    Child,
    Parents,
    WrittenCondition,
    after_itself,
    judge_parents,
)

MOST_LOOKED_UP = 200
"""Names of one request that are looked up; the pool allows far fewer parents."""
MOST_STATES = 200
"""Parents whose states are read for one list; of further ones the list shows no state."""


def parents_of(context: RequestContext, submission: Submission, pool: PoolPolicy | None) -> Parents:
    """Look up what the tags of a submission name, as it is now; costs nothing where there are none.

    Args:
        context: Who asks.
        submission: What was sent.
        pool: Where the job would wait; None: its types have no common pool, which is refused anyway.
    """
    options = submission.ask.options
    if not options.after or pool is None:
        return NO_PARENTS
    written = tuple(_written(submission))
    own = tuple(after_itself(written, submission.ask.name))
    if own:
        return Parents(errors=own)
    child = Child(
        name=submission.ask.name,
        team=submission.team,
        most_parents=pool.limits.max_parents,
        hold_when_impossible=options.holds_after_failure,
    )
    return judge_parents(written, look_up(context, options.after), child)


def _written(submission: Submission) -> Iterable[WrittenCondition]:
    for index, tag in enumerate(submission.body.get("Tags", [])):
        if tag["Key"] in AFTER_TAGS:
            field = path_text(("Tags", index, "Value"))
            for wanted in read_conditions(tag["Value"]):
                yield WrittenCondition(field=field, wanted=wanted)


def look_up(context: RequestContext, wanted: Sequence[WantedCondition]) -> dict[str, Job]:
    """Return by its name each job that is there and that the caller may see; any attempt's name will do."""
    names = list(dict.fromkeys(condition.job for condition in wanted))[:MOST_LOOKED_UP]
    reader = context.outside.reader
    jobs = dict(reader.jobs(names))
    for name in names:
        if name not in jobs and (alias := reader.alias(name)) is not None:
            job = reader.job(alias.job)
            if job is not None and job.spec.entry_id == alias.entry_id:
                jobs[name] = job
    return {name: job for name, job in jobs.items() if context.sees(job.spec.team)}


def require_known(parents: Parents) -> None:
    """Raise InvalidRequestError with every condition that says nothing."""
    if parents.errors:
        raise invalid(parents.errors)


def with_violations(verdict: Verdict, parents: Parents) -> Verdict:
    return replace(verdict, violations=(*verdict.violations, *parents.violations))


States = Mapping[str, JobState]
"""States of parents that have not ended, by entry id."""


def states_of(context: RequestContext, jobs: Iterable[Job]) -> States:
    """Read the states of the parents that these jobs wait for, in a call or two for all of them."""
    open_conditions = (condition for job in jobs for condition in _open(job))
    names = list(dict.fromkeys(condition.job for condition in open_conditions))[:MOST_STATES]
    if not names:
        return {}
    return {job.spec.entry_id: job.state for job in context.outside.reader.jobs(names).values()}


def _open(job: Job) -> tuple[Condition, ...]:
    return job.after.open if job.after is not None and job.waits_for_others else ()


def parent_views(job: Job, context: RequestContext, states: States) -> tuple[View, ...]:
    """Return ``JobView.after``; a job of a team that the caller may not see has no name."""
    conditions = () if job.after is None else job.after.conditions
    return tuple(
        {
            "job": condition.job if context.sees(condition.team) else None,
            "type": condition.kind.value,
            "state": _state(condition, states),
        }
        for condition in conditions
    )


def _state(condition: Condition, states: States) -> str | None:
    if condition.end is not None:
        return condition.end.value
    state = states.get(condition.entry_id)
    return None if state is None else state.value


def waits_for_parents(job: Job, states: States, ends: Mapping[str, datetime] | None = None) -> Reason | None:
    """Name the parents that a job waits for, with their states and likely ends; None: it waits for none.

    Args:
        job: Any.
        states: Of its parents.
        ends: When each is likely to end, by entry id, as far as that was worked out.
    """
    if not _open(job) or not job.is_waiting:
        return None
    texts = [_waits_text(condition, job, states, ends or {}) for condition in _open(job)]
    return Reason(code=ReasonCode.DEPENDENCY, message=f"waits for {'; '.join(texts)}")


def _waits_text(condition: Condition, job: Job, states: States, ends: Mapping[str, datetime]) -> str:
    state, end = states.get(condition.entry_id), ends.get(condition.entry_id)
    is_now = "" if state is None else f", which is {state}"
    likely = "" if end is None else f" and likely ends {end:%Y-%m-%d %H:%M} UTC"
    return f"{condition.text(to=job.spec.team)}{is_now}{likely}"
