"""Bounds of the training plans that SageMaker sells, as far as this botocore knows them."""

from botocore.loaders import Loader
from botocore.model import ServiceModel
from trainmaster.core.policy.plan_windows import PLANS_AHEAD

SEARCH = "SearchTrainingPlanOfferings"
MOST_INSTANCES = 256
"""Source: SageMaker service model, ReservedCapacityInstanceCount."""
LONGEST = PLANS_AHEAD
"""Longest plan that is sold at once."""


def types_with_plans() -> frozenset[str]:
    """Return the instance types that training plans are sold for."""
    model = ServiceModel(Loader().load_service_model("sagemaker", "service-2"))
    shape = model.operation_model(SEARCH).input_shape
    assert shape is not None
    return frozenset(shape.members["InstanceType"].metadata["enum"])
