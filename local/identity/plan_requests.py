"""Which IAM permissions AWS asks for when a call is about a training plan.

Source: Service Authorization Reference, Amazon SageMaker. That CreateTrainingJob asks for the plan that it
names, with the tags of the request, as it does for the job, is assumed.
"""

from collections.abc import Mapping, Sequence

from local.identity.checks import Check, Checks, Operation

Context = Mapping[str, str | Sequence[str]]


def training_plans(operation: Operation, tags: Context) -> Checks:
    """Return the checks of an operation on plans; None for any other."""
    match operation.name:
        case "DescribeTrainingPlan" | "CreateTrainingPlan":
            name = operation.params.get("TrainingPlanName", "")
            return [Check(action=f"sagemaker:{operation.name}", resource=_arn(operation, name), context=tags)]
        case "ListTrainingPlans" | "SearchTrainingPlanOfferings":
            return [Check(action=f"sagemaker:{operation.name}", resource="*")]
        case _:
            return None


def on_training_plan(arn: str, tags: Context) -> Check:
    """Return the check of CreateTrainingJob on the plan that its request names."""
    return Check(action="sagemaker:CreateTrainingJob", resource=arn, context=tags)


def _arn(operation: Operation, name_or_arn: str) -> str:
    if name_or_arn.startswith("arn:"):
        return name_or_arn
    return operation.arn("sagemaker", f"training-plan/{name_or_arn}")
