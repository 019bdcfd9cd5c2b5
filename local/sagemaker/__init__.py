"""A faithful twin of SageMaker training: its API, its status machine, and jobs that really run."""

from local.sagemaker.container import Outside
from local.sagemaker.sagemaker_twin import SageMakerTwin

__all__ = ["Outside", "SageMakerTwin"]
