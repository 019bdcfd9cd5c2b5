"""Expands a SAM template into plain CloudFormation, in this process and without a network."""

import copy
import functools
import json
import logging
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from local.deployment.deployment_errors import TemplateError
from local.deployment.managed_policies import MANAGED_POLICIES

CHECKOUT_BUCKET = "checkout"
"""The 'bucket' of code that lies in the folder of the template."""
_LOCAL_CODE = ("CodeUri", "ContentUri")
_MANAGED_POLICY_MAP = {arn.rpartition("/")[2]: arn for arn in MANAGED_POLICIES}


def expand(
    template: Mapping[str, Any], *, parameters: Mapping[str, str | list[str]], region: str
) -> dict[str, Any]:
    """Answer the template as CloudFormation sees it after the SAM transform.

    The translator resolves some ``Ref`` on its own, so it needs the parameters; lists go in as lists.

    Raises:
        TemplateError: SAM refuses the template.
    """
    return copy.deepcopy(_expand(json.dumps(template, default=str), json.dumps(parameters), region))


@functools.lru_cache(maxsize=4)
def _expand(template: str, parameters: str, region: str) -> dict[str, Any]:
    # Imported here, not at the top: it costs half a second that only a deployment should pay.
    from samtranslator.model.exceptions import InvalidDocumentException  # noqa: PLC0415
    from samtranslator.parser.parser import Parser  # noqa: PLC0415
    from samtranslator.translator.translator import Translator  # noqa: PLC0415

    # Its feature toggles are the service's own; missing ones are no news to the user.
    logging.getLogger("samtranslator").setLevel(logging.ERROR)
    session = SimpleNamespace(region_name=region)
    translator = Translator(_MANAGED_POLICY_MAP, Parser(), boto_session=session)
    document = _with_checkout_code(json.loads(template))
    try:
        expanded = translator.translate(document, json.loads(parameters))
    except InvalidDocumentException as error:
        raise TemplateError("SAM", error.message) from error
    assert isinstance(expanded, dict)
    return expanded


def _with_checkout_code(template: dict[str, Any]) -> dict[str, Any]:
    """Name local code folders as objects of a bucket: the translator accepts only those."""
    for resource in template.get("Resources", {}).values():
        properties = resource.get("Properties", {})
        for key in _LOCAL_CODE:
            if isinstance(properties.get(key), str):
                properties[key] = {"Bucket": CHECKOUT_BUCKET, "Key": properties[key]}
    return template
