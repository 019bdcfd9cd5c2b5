"""A warning at submission: the policy has a rule on the loss, and this job's loss cannot be read."""

from collections.abc import Iterator, Mapping
from typing import Any

from trainmaster.core.errors import FieldError
from trainmaster.core.monitoring.metric_lines import metric_definition, metric_names
from trainmaster.core.policy.loss_rule import LossRule

_FIELD = "AlgorithmSpecification.MetricDefinitions"
_EXAMPLE = "loss=([0-9.]+)"


def loss_warning(body: Mapping[str, Any], rule: LossRule | None) -> Iterator[FieldError]:
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
