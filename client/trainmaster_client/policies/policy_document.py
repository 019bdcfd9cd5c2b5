"""From the text of a policy, YAML or JSON, to its document: no key is written twice, all of it is JSON."""

import json
from typing import Any

import yaml

from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.files.yaml_documents import read_yaml

_HINT = "Give YAML or JSON with keys such as pools: at its top; quote dates. Nothing was changed."


def parse_policy(text: bytes, *, source: str) -> dict[str, Any]:
    """Read from YAML or JSON; raises InvalidArgumentError for the mistakes that only the file shows."""
    if text.lstrip().startswith(b"{"):  # JSON may be indented with tabs, YAML may not
        text = text.replace(b"\t", b" ")
    try:
        document = read_yaml(text)
        json.dumps(document, allow_nan=False)
    except yaml.MarkedYAMLError as error:
        place = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise InvalidArgumentError(f"{source}{place}: {error.problem}.", hint=_HINT) from error
    except (yaml.YAMLError, TypeError, ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"{source}: {error}.", hint=_HINT) from error
    if not isinstance(document, dict):
        raise InvalidArgumentError(f"{source} holds no policy document.", hint=_HINT)
    return document
