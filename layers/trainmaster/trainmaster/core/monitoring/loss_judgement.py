"""Decide by the policy's rule what the loss of a running job shows.

The newest 9 values of the metric are read, where there are at least 3. Their level is the median of those
that are finite, so that single spikes do not count. The loss

- is *not finite* if each of the newest 3 values is infinite or no number;
- has *diverged* if ``level > factor * lowest`` and ``lowest > 0``;
- is on a *plateau* if ``now - lowest_at >= for``.

``lowest`` is the first level, and becomes each later one with ``level < lowest - min_delta``; ``lowest_at``
is when it was seen. Both are of one attempt: a job that resumes begins again.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from statistics import median
from typing import Any

from trainmaster.core.errors import FieldError
from trainmaster.core.jobs.attempts import LossWatch, Reason
from trainmaster.core.jobs.model import Job
from trainmaster.core.jobs.reason_codes import Code, ReasonCode
from trainmaster.core.lifecycle import steps
from trainmaster.core.monitoring.alarm_reactions import is_watched
from trainmaster.core.monitoring.metric_lines import MetricValue, metric_definition, metric_names
from trainmaster.core.policy.kinds import duration_text
from trainmaster.core.policy.loss_rule import LossReaction, LossRule

VALUES = 9
"""Newest values that are read."""
_LEAST = 3
"""Values without which nothing is judged, and that must all be bad for a loss that is not finite."""
_FIELD = "AlgorithmSpecification.MetricDefinitions"
_EXAMPLE = "loss=([0-9.]+)"


def judged(job: Job, values: Sequence[MetricValue], rule: LossRule, *, now: datetime) -> Job:
    """Return the job with what its loss shows, stopped if that was announced, is due and still holds.

    Args:
        job: Any job; only one that trains is judged.
        values: Newest values of its loss, the oldest first.
        rule: Rule in force.
        now: UTC.
    """
    if not is_watched(job) or len(values) < _LEAST:
        return job
    live = job.live_attempt
    loss = _watch(live.loss or LossWatch(), values, rule, now=now)
    after = replace(job, live=replace(live, loss=loss))
    if loss.finding is None or loss.stop_due is None or loss.stop_due > now:
        return after
    return steps.stopped_by_rule(after, loss.finding, requeues=False)


def unjudged_loss(body: Mapping[str, Any], rule: LossRule | None) -> Iterator[FieldError]:
    """Yield a warning if the policy's rule on the loss will not judge this job.

    Args:
        body: A valid request.
        rule: The policy's rule; None: there is none, and nothing is missed.
    """
    if rule is None or metric_definition(body, rule.metric) is not None:
        return
    names = metric_names(body)
    if rule.metric in names:
        yield FieldError(
            field=f"{_FIELD}[{names.index(rule.metric)}].Regex",
            message="cannot be read by the rule `loss` of the policy, so the job's loss is not judged",
            hint=f"put plain text, classes such as [0-9] and \\s, \\d, \\w before the group: {_EXAMPLE}",
        )
        return
    has = f"; the request has {', '.join(names)}" if names else ""
    yield FieldError(
        field=_FIELD,
        message=f"lacks {rule.metric}, which the rule `loss` of the policy reads: the job is not judged{has}",
        hint=f'add {{"Name": "{rule.metric}", "Regex": "{_EXAMPLE}"}}, as your program prints it',
    )


def _watch(known: LossWatch, values: Sequence[MetricValue], rule: LossRule, *, now: datetime) -> LossWatch:
    """Note the level, the breach if there is one, and when that is to end the job."""
    finite = [seen.value for seen in values if math.isfinite(seen.value)]
    level = median(finite) if finite else None
    loss = _levelled(known, level, rule, now=now)
    finding = _finding(loss, level, values, rule, now=now)
    if finding is None:
        return replace(loss, finding=None, stop_due=None)
    if known.finding is not None and known.finding.code == finding.code:
        finding = known.finding  # the value and the step at which it began
    stops = _reactions(rule).get(finding.code) is LossReaction.STOP
    due = (known.stop_due or now + rule.warn_first) if stops else None
    return replace(loss, finding=finding, stop_due=due)


def _levelled(known: LossWatch, level: float | None, rule: LossRule, *, now: datetime) -> LossWatch:
    if level is None:
        return known
    min_delta = rule.plateau.min_delta if rule.plateau else 0
    if known.lowest is None or level < float(known.lowest) - min_delta:
        return replace(known, lowest=repr(level), lowest_at=now)
    return known


def _finding(
    loss: LossWatch, level: float | None, values: Sequence[MetricValue], rule: LossRule, *, now: datetime
) -> Reason | None:
    newest, metric = values[-_LEAST:], rule.metric
    if not any(math.isfinite(seen.value) for seen in newest):
        message = f"{metric} is {newest[0].value}{_at_step(newest[0])}: it is not finite"
        return Reason(code=ReasonCode.LOSS_NOT_FINITE, message=message)
    if level is None or loss.lowest is None or loss.lowest_at is None:
        return None
    lowest, rise, rest = float(loss.lowest), rule.divergence, rule.plateau
    if rise is not None and lowest > 0 and level > rise.factor * lowest:
        message = (
            f"{metric} is {level:.6g}{_at_step(newest[-1])}: above {rise.factor:g} times "
            f"its lowest level, {lowest:.6g}"
        )
        return Reason(code=ReasonCode.LOSS_DIVERGED, message=message)
    if rest is not None and now - loss.lowest_at >= rest.for_:
        message = (
            f"{metric} is {level:.6g}{_at_step(newest[-1])}: "
            f"not lower than {lowest:.6g} for {duration_text(rest.for_)}"
        )
        return Reason(code=ReasonCode.LOSS_PLATEAU, message=message)
    return None


def _at_step(seen: MetricValue) -> str:
    return "" if seen.step is None else f" at step {seen.step}"


def _reactions(rule: LossRule) -> Mapping[Code, LossReaction | None]:
    return {
        ReasonCode.LOSS_NOT_FINITE: rule.non_finite,
        ReasonCode.LOSS_DIVERGED: rule.divergence.then if rule.divergence else None,
        ReasonCode.LOSS_PLATEAU: rule.plateau.then if rule.plateau else None,
    }
