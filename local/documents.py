"""Documents that a user hands over as files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from trainmaster_client.files.yaml_documents import read_yaml

from local.deployment.deployment_errors import DeploymentError


def read_map(path: Path, *, what: str, error_kind: type[DeploymentError]) -> Mapping[str, Any]:
    """Read a map from a YAML or JSON file; an empty file is an empty map.

    Raises:
        DeploymentError: of ``error_kind``, naming ``what`` it is and the file.
    """
    try:
        document = read_yaml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise error_kind(f"{what} {path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise error_kind(f"{what} {path}: {' '.join(str(error).split())}") from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise error_kind(f"{what} {path}: must be a map of keys, not {type(document).__name__}")
    return document
