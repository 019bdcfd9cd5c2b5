"""Reads CloudFormation's YAML, whose short tags (``!Ref``) stand for intrinsic functions."""

from typing import Any

import yaml
from trainmaster_client.files.yaml_documents import StrictLoader, read_yaml

from local.deployment.deployment_errors import TemplateError

_WITHOUT_PREFIX = ("Ref", "Condition")


class _TemplateLoader(StrictLoader):
    """Knows the short tags besides."""


def read_template(text: str) -> dict[str, Any]:
    """Answer the document with each short tag written out.

    Raises:
        TemplateError: The text is not YAML or not a map.
    """
    try:
        document = read_yaml(text, loader=_TemplateLoader)
    except yaml.YAMLError as error:
        raise TemplateError("YAML", " ".join(str(error).split())) from error
    if not isinstance(document, dict):
        raise TemplateError("YAML", "not a map")
    return document


def _intrinsic(loader: Any, tag: str, node: yaml.Node) -> dict[str, Any]:  # noqa: ANN401  a C or Python loader
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_mapping(node, deep=True)
    if tag == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {tag if tag in _WITHOUT_PREFIX else f"Fn::{tag}": value}


_TemplateLoader.add_multi_constructor("!", _intrinsic)
