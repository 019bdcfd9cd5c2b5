"""Paths of a request's fields, which a refusal names."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from trainmaster.core.field_paths import Path, path_text
from trainmaster.core.jobs.instances import Choice
from trainmaster.core.request.options import ALTERNATIVES
from trainmaster.core.request.request import Ask


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The paths of one request."""

    RUNTIME: ClassVar[str] = "StoppingCondition.MaxRuntimeInSeconds"

    body: Mapping[str, Any]
    ask: Ask

    def tag(self, key: str) -> str:
        """Return the path of the value of a tag that is there."""
        tags = self.body.get("Tags", [])
        index = next(index for index, tag in enumerate(tags) if tag["Key"] == key)
        return path_text(("Tags", index, "Value"))

    def type_of(self, instance_type: str) -> str:
        """Return the path of the first field that names the type."""
        return self._first_naming(instance_type, "InstanceType")

    def count_of(self, number: int, instance_type: str) -> str:
        """Return the path of the instance count of the job's shape of this number."""
        preferences = self.body["ResourceConfig"].get("InstancePreferences", [])
        if self.ask.choice is Choice.SAGEMAKER and "InstanceCount" in preferences[number]:
            return path_text(("ResourceConfig", "InstancePreferences", number, "InstanceCount"))
        return self._first_naming(instance_type, "InstanceCount")

    def _first_naming(self, instance_type: str, field: str) -> str:
        if self.ask.options.alternatives:
            return self.tag(ALTERNATIVES)
        resources = self.body["ResourceConfig"]
        path: Path = ("ResourceConfig",)
        for key in ("InstanceGroups", "InstancePreferences"):
            for index, part in enumerate(resources.get(key, [])):
                if part["InstanceType"] == instance_type and (field in part or field not in resources):
                    return path_text((*path, key, index, field))
        return path_text((*path, field))
