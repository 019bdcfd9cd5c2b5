"""Reads the text of a policy, YAML or JSON, into its document: no key occurs twice, all of it is JSON."""

import json
from typing import Any

import yaml

from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.files.yaml_documents import read_yaml
from trainmaster_client.files.yaml_mistakes import yaml_mistake

_HINT = "Give YAML or JSON with keys such as pools: at its top; quote dates. Nothing was changed."
_UNCHANGED = "Nothing was changed."


def parse_policy(text: bytes, *, source: str) -> dict[str, Any]:
    """Read from YAML or JSON; raises InvalidArgumentError for the mistakes that only the file shows."""
    if text.lstrip().startswith(b"{"):  # JSON may be indented with tabs, YAML may not
        text = text.replace(b"\t", b" ")
    try:
        document = read_yaml(text)
        json.dumps(document, allow_nan=False)
    except yaml.YAMLError as error:
        raise InvalidArgumentError(yaml_mistake(error, text=text, source=source), hint=_UNCHANGED) from error
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"{source}: {error}.", hint=_HINT) from error
    if not isinstance(document, dict):
        raise InvalidArgumentError(f"{source} holds no policy document.", hint=_HINT)
    return document
