"""The section of the policy about jobs whose loss shows that they fail."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from trainmaster.core.policy.keys import Keys, Section, key, optional
from trainmaster.core.policy.kinds import Duration, Number, Word, plain_text

# As long as a job may run at most: SageMaker API reference, StoppingCondition.
_LONGEST_RUN = timedelta(days=28)
_LEAST_PLATEAU = timedelta(minutes=15)  # logs are read every five minutes
_METRIC = plain_text(
    # SageMaker API reference, MetricDefinition, Name.
    r"[^\r\n]{1,255}",
    "is not the name of a metric definition",
    "write one, e.g. train:loss",
)


class LossReaction(StrEnum):
    """Choices for a job whose loss breaks the rule."""

    NOTIFY = "notify"
    STOP = "stop"


_THEN = Word(LossReaction)
_CHOICES = "`notify`: the owner is notified; `stop`: the job is stopped after `loss.warn_first`."


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence(Section):
    factor: float = key(
        Number(least=1.1, most=1e6),
        3,
        "A loss has diverged above this many times its lowest level, if that is above 0.",
    )
    then: LossReaction = key(_THEN, "notify", _CHOICES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plateau(Section):
    for_: timedelta = key(
        Duration(least=_LEAST_PLATEAU, most=_LONGEST_RUN),
        "6h",
        "How long an attempt may train without a lower level of its loss.",
    )
    min_delta: float = key(
        Number(least=0, most=1e6), 0, "How much lower a level has to be; 0: anything lower counts."
    )
    then: LossReaction = key(_THEN, "notify", _CHOICES)


@dataclass(frozen=True, slots=True, kw_only=True)
class LossRule(Section):
    metric: str = key(
        _METRIC,
        "train:loss",
        "Name of the metric definition that finds the loss in the log; jobs without it are not judged.",
    )
    non_finite: LossReaction = key(_THEN, "notify", f"A loss that is infinite or no number. {_CHOICES}")
    divergence: Divergence | None = optional(Keys(Divergence), "A loss that rises. Without it: not judged.")
    plateau: Plateau | None = optional(Keys(Plateau), "A loss that falls no more. Without it: not judged.")
    warn_first: timedelta = key(
        Duration(most=_LONGEST_RUN), "10m", "Time from the notice to the stop, where one follows."
    )
