"""The stack's template after the SAM transform, with the values of its parameters."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.deployment.deployment_errors import DeploymentError, TemplateError
from local.deployment.parameters import parameter_values
from local.deployment.sam import expand
from local.deployment.template_yaml import read_template

_KNOWN_SECTIONS = frozenset(
    {
        "AWSTemplateFormatVersion",
        "Conditions",
        "Description",
        "Mappings",
        "Metadata",
        "Outputs",
        "Parameters",
        "Resources",
    }
)
_KNOWN_RESOURCE_KEYS = frozenset(
    {"Condition", "DeletionPolicy", "DependsOn", "Metadata", "Properties", "Type", "UpdateReplacePolicy"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """Plain CloudFormation, intrinsics not yet resolved."""

    folder: Path
    """Folder that holds the code of functions and layers."""
    parameters: Mapping[str, str | list[str]]
    conditions: Mapping[str, Any]
    mappings: Mapping[str, Any]
    resources: Mapping[str, Mapping[str, Any]]
    outputs: Mapping[str, Mapping[str, Any]]


def load_template(
    path: Path, *, defaults: Mapping[str, str], given: Mapping[str, str], region: str
) -> Template:
    """Read and expand the template.

    Args:
        path: The SAM template.
        defaults: The twin's own values; used for those parameters that the template declares.
        given: The user's values; each must be declared.
        region: Where the stack is deployed.

    Raises:
        TemplateError: SAM or the twin does not accept the template.
        ParameterError: A parameter is unknown, missing or not allowed.
    """
    document = read_template(_text_of(path))
    declared = document.get("Parameters", {})
    own = {name: value for name, value in defaults.items() if name in declared}
    parameters = parameter_values(declared, own | dict(given))
    expanded = expand(document, parameters=parameters, region=region)
    _refuse_unknown(expanded)
    return Template(
        folder=path.resolve().parent,
        parameters=parameters,
        conditions=expanded.get("Conditions", {}),
        mappings=expanded.get("Mappings", {}),
        resources=expanded.get("Resources", {}),
        outputs=expanded.get("Outputs", {}),
    )


def _text_of(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as error:
        raise DeploymentError(f"template {path}: {error.strerror}") from error


def _refuse_unknown(expanded: Mapping[str, Any]) -> None:
    for section in expanded:
        if section not in _KNOWN_SECTIONS:
            raise TemplateError(section, "the twin does not know this section")
    for name, resource in expanded.get("Resources", {}).items():
        for key in resource:
            if key not in _KNOWN_RESOURCE_KEYS:
                raise TemplateError(f"{name}.{key}", "the twin does not know this attribute")
