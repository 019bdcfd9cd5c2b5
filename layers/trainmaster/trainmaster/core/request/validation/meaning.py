"""What the model cannot say: fields that need, exclude or bound each other."""

from collections.abc import Iterator

from trainmaster.core.request.validation.sections import Section, elements, section, whole_number
from trainmaster.core.request_errors import Mistake


def meaning_mistakes(body: Section) -> Iterator[Mistake]:
    yield from _algorithm(body)
    yield from _time(body)
    yield from _rule_instances(body)
    if "ServerlessJobConfig" in body:
        hint = "remove it and say which instances to use in ResourceConfig"
        yield Mistake(("ServerlessJobConfig",), "cannot be queued: a serverless job has no instances", hint)


def _algorithm(body: Section) -> Iterator[Mistake]:
    algorithm = section(body, "AlgorithmSpecification")
    if algorithm is None:
        return
    given = [name for name in ("TrainingImage", "AlgorithmName") if name in algorithm]
    if not given:
        path = ("AlgorithmSpecification", "TrainingImage") if algorithm else ("AlgorithmSpecification",)
        yield Mistake(
            path, "is required", "name the image to train with in TrainingImage (or an AlgorithmName)"
        )
    elif len(given) > 1:
        path = ("AlgorithmSpecification", "AlgorithmName")
        yield Mistake(path, "cannot be used together with TrainingImage", "keep one of the two")


def _time(body: Section) -> Iterator[Mistake]:
    stopping = section(body, "StoppingCondition")
    if stopping is None:
        return
    if "MaxRuntimeInSeconds" not in stopping:
        path = ("StoppingCondition", "MaxRuntimeInSeconds")
        yield Mistake(path, "is required", "give the seconds after which SageMaker is to stop the job")
    spot = body.get("EnableManagedSpotTraining") is True
    path = ("StoppingCondition", "MaxWaitTimeInSeconds")
    if not spot and "MaxWaitTimeInSeconds" in stopping:
        hint = "remove it, or set EnableManagedSpotTraining to true"
        yield Mistake(path, "is for managed spot training alone", hint)
    elif spot and "MaxWaitTimeInSeconds" not in stopping:
        yield Mistake(path, "is required for managed spot training", _WAIT_HINT)
    elif spot:
        wait, run = (whole_number(stopping, f"Max{name}InSeconds") for name in ("WaitTime", "Runtime"))
        if wait is not None and run is not None and wait < run:
            yield Mistake(path, f"is {wait}, less than MaxRuntimeInSeconds, {run}", _WAIT_HINT)


_WAIT_HINT = (
    "give at least MaxRuntimeInSeconds: it is the time to run plus the time to wait for spot instances"
)


def _rule_instances(body: Section) -> Iterator[Mistake]:
    """Rules on their own machines run beside the job, under its role, and no capacity counts them."""
    for name in ("DebugRuleConfigurations", "ProfilerRuleConfigurations"):
        for index, rule in elements(body, name):
            if "InstanceType" in rule:
                message = "starts an instance of its own, which no pool counts"
                yield Mistake((name, index, "InstanceType"), message, "leave InstanceType out of the rule")
