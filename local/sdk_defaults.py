"""The file of defaults with which programs of the SageMaker SDK run at the twin as they are.

Without a bucket of its own the SDK asks STS for the account, at an address that no variable changes; and its
telemetry is for AWS. Both SDKs, v2 and v3, read the file that ``SAGEMAKER_USER_CONFIG_OVERRIDE`` names.

Source: SageMaker Python SDK, "Configuring and using defaults with the SageMaker Python SDK".
"""

import json
from pathlib import Path

from trainmaster_client.files.private_files import write_private

_NAME = "sagemaker-sdk-defaults.yaml"


def write_defaults(state: Path, *, bucket: str, role_arn: str) -> Path:
    """Write the defaults as JSON, which is YAML too; ``role_arn`` is for training that names none.

    Raises OSError.
    """
    session = {"DefaultS3Bucket": bucket}
    defaults = {
        "SchemaVersion": "1.0",
        "SageMaker": {
            "PythonSDK": {"Modules": {"Session": session, "TelemetryOptOut": True}},
            "TrainingJob": {"RoleArn": role_arn},
        },
    }
    file = state / _NAME
    write_private(file, json.dumps(defaults, indent=2))
    return file
