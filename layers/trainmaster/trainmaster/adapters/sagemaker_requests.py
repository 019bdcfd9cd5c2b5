"""From what DescribeTrainingJob shows back to the request that would make the training job again."""

from collections.abc import Mapping
from typing import Any

from trainmaster.core.request.request_shapes import ROOT, SHAPES

_ONLY_SHOWN = frozenset({"SelectedInstanceType", "SelectedInstanceCount"})
"""Members of ResourceConfig that only Describe has. Source: SageMaker API, ResourceConfig."""


def request_of(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Members that CreateTrainingJob takes, without the empty texts, lists and maps that Describe adds."""
    request: dict[str, Any] = _kept(answer, ROOT)
    resources = request.get("ResourceConfig", {})
    if "InstanceGroups" in resources or "InstancePreferences" in resources:
        # A count of 0 stands for none; with groups it must not be there.
        request["ResourceConfig"] = {name: one for name, one in resources.items() if one != 0}
    return request


def _kept(content: Any, shape_name: str) -> Any:
    shape = SHAPES[shape_name]
    match shape["type"]:
        case "structure":
            members = shape["members"].items()
            kept = {
                name: _kept(content[name], member)
                for name, member in members
                if name in content and name not in _ONLY_SHOWN
            }
            return {name: one for name, one in kept.items() if one not in ("", [], {}, None)}
        case "list":
            return [_kept(part, shape["member"]) for part in content]
        case "map":
            return dict(content)
        case _:
            return content
