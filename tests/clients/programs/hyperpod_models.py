"""Reads HyperPodPyTorchJobs as JSON from standard input; prints the mistakes of each by AWS's models."""

import json
import sys
from typing import Any

from pydantic import ValidationError
from sagemaker.hyperpod.training.hyperpod_pytorch_job import (
    API_VERSION,
    KIND,
    TRAINING_GROUP,
    HyperPodPytorchJob,
)


def mistakes(document: dict[str, Any]) -> list[str]:
    if (document["apiVersion"], document["kind"]) != (f"{TRAINING_GROUP}/{API_VERSION}", KIND):
        return [f"apiVersion, kind: not {TRAINING_GROUP}/{API_VERSION}, {KIND}"]
    try:
        job = HyperPodPytorchJob.model_validate(
            {"metadata": document["metadata"], **document["spec"]}, by_name=True
        )
        HyperPodPytorchJob.allocate_quotas_if_applicable(job)
    except ValidationError as error:
        return [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
    except ValueError as error:  # accelerators and EFA that the instance type does not have
        return [str(error)]
    return []


json.dump([mistakes(one) for one in json.load(sys.stdin)], sys.stdout)
