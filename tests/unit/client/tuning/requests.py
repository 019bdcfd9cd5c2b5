"""CreateHyperParameterTuningJob requests for tests."""

from typing import Any

Document = dict[str, Any]


def request(name: str = "tune", strategy: str = "Random", **changes: Any) -> Document:
    """``changes`` are of the HyperParameterTuningJobConfig; None leaves a member out."""
    config: Document = {
        "Strategy": strategy,
        "HyperParameterTuningJobObjective": {"Type": "Minimize", "MetricName": "loss"},
        "ResourceLimits": {"MaxNumberOfTrainingJobs": 4, "MaxParallelTrainingJobs": 2},
        "ParameterRanges": numbers(rate=("0.001", "1", "Logarithmic")),
        "TrainingJobEarlyStoppingType": "Off",
    }
    return {
        "HyperParameterTuningJobName": name,
        "HyperParameterTuningJobConfig": {
            key: value for key, value in (config | changes).items() if value is not None
        },
        "TrainingJobDefinition": {
            "StaticHyperParameters": {"steps": "3"},
            "AlgorithmSpecification": {
                "TrainingImage": "image:1",
                "TrainingInputMode": "File",
                "MetricDefinitions": [{"Name": "loss", "Regex": "loss=(.*)"}],
            },
            "RoleArn": "arn:aws:iam::123456789012:role/training",
            "OutputDataConfig": {"S3OutputPath": "s3://bucket/out/"},
            "ResourceConfig": {"InstanceType": "ml.m5.xlarge", "InstanceCount": 1, "VolumeSizeInGB": 10},
            "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
        },
        "Tags": [{"Key": "priority", "Value": "3"}],
    }


def numbers(**ranges: tuple[str, str, str]) -> Document:
    """Continuous: smallest, largest, scaling."""
    return {
        "ContinuousParameterRanges": [
            {"Name": name, "MinValue": low, "MaxValue": high, "ScalingType": scaling}
            for name, (low, high, scaling) in ranges.items()
        ]
    }


def choices(**values: list[str]) -> Document:
    return {"CategoricalParameterRanges": [{"Name": name, "Values": one} for name, one in values.items()]}
