"""From the text of a policy, YAML or JSON, to its document: no key is written twice, all of it is JSON."""

import json
from collections.abc import Hashable
from typing import Any

import yaml

from trainmaster_client.errors import InvalidArgumentError

_HINT = "Give YAML or JSON with keys such as pools: at its top; quote dates. Nothing was changed."


class _StrictLoader(yaml.SafeLoader):
    """YAML's parser lets the last of two equal keys win; half a policy would vanish without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002  PyYAML's
        keys = [self.construct_object(key) for key, _ in node.value]
        for number, key in enumerate(keys):
            if key in keys[:number]:
                mark = node.value[number][0].start_mark
                raise yaml.MarkedYAMLError(problem=f"the key {key!r} is written twice", problem_mark=mark)
        return super().construct_mapping(node, deep=deep)


def parse_policy(text: bytes, *, source: str) -> dict[str, Any]:
    """Read from YAML or JSON; raises InvalidArgumentError for the mistakes that only the file shows."""
    if text.lstrip().startswith(b"{"):  # JSON may be indented with tabs, YAML may not
        text = text.replace(b"\t", b" ")
    try:
        document = yaml.load(text, _StrictLoader)  # noqa: S506  a SafeLoader
        json.dumps(document, allow_nan=False)
    except yaml.MarkedYAMLError as error:
        place = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise InvalidArgumentError(f"{source}{place}: {error.problem}.", hint=_HINT) from error
    except (yaml.YAMLError, TypeError, ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"{source}: {error}.", hint=_HINT) from error
    if not isinstance(document, dict):
        raise InvalidArgumentError(f"{source} holds no policy document.", hint=_HINT)
    return document
