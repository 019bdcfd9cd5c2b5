"""Creates the resources of a template, each after those it names, as CloudFormation does."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from local.deployment.deployment_errors import TemplateError
from local.deployment.intrinsics import Node, Resolver
from local.deployment.resources import access, compute, messaging, rest_api, storage, triggers, watching
from local.deployment.resources.kinds import Kind, Made, Site
from local.deployment.template import Template
from local.deployment.wiring import Wiring

KINDS: Mapping[str, Kind] = {
    **access.KINDS,
    **compute.KINDS,
    **messaging.KINDS,
    **rest_api.KINDS,
    **storage.KINDS,
    **triggers.KINDS,
    **watching.KINDS,
}
_API_HOST = re.compile(r"https://([a-z0-9]{10})(-vpce-[a-z0-9]+)?\.execute-api\.[a-z0-9-]+\.amazonaws\.com")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """A deployed template."""

    wiring: Wiring
    outputs: Mapping[str, str]


def deploy(template: Template, site: Site, *, api_root: str) -> Stack:
    """Create every resource.

    Args:
        template: What to create.
        site: Where.
        api_root: What stands in the twin for ``https://<api>.execute-api...``: this and the API's id.

    Raises:
        TemplateError: A type, property or intrinsic function that the twin does not know.
    """
    deployment = _Deployment(template=template, site=site, api_root=api_root)
    for logical_id in template.resources:
        deployment.ensure(logical_id)
    return Stack(wiring=site.wiring, outputs=deployment.outputs())


@dataclass(slots=True, kw_only=True)
class _Deployment:
    template: Template
    site: Site
    api_root: str
    resolver: Resolver = field(init=False)
    _made: dict[str, Made | None] = field(default_factory=dict)
    _under_way: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.resolver = Resolver(
            names=self, conditions=self.template.conditions, mappings=self.template.mappings
        )

    def ensure(self, logical_id: str) -> Made | None:
        """Create the resource unless that is done; None when its condition does not hold."""
        if logical_id not in self._made:
            if logical_id in self._under_way:
                raise TemplateError(" -> ".join([*self._under_way, logical_id]), "a circle of references")
            self._under_way.append(logical_id)
            self._made[logical_id] = self._create(logical_id)
            self._under_way.pop()
        return self._made[logical_id]

    def outputs(self) -> dict[str, str]:
        return {
            name: self._local(self.resolver.resolve(output["Value"]))
            for name, output in self.template.outputs.items()
            if "Condition" not in output or self.resolver.condition(output["Condition"])
        }

    def ref(self, name: str) -> Node:
        if name in self.template.parameters:
            return self.template.parameters[name]
        pseudo = {
            "AWS::AccountId": self.site.account_id,
            "AWS::Partition": "aws",
            "AWS::Region": self.site.region,
            "AWS::StackId": self.site.arn("cloudformation", f"stack/{self.site.stack}/twin"),
            "AWS::StackName": self.site.stack,
            "AWS::URLSuffix": "amazonaws.com",
        }
        return pseudo[name] if name in pseudo else self._existing(name).ref

    def attribute(self, name: str, attribute: str) -> str:
        made = self._existing(name)
        if attribute not in made.attributes:
            raise TemplateError(name, f"the twin does not know attribute {attribute}")
        return made.attributes[attribute]

    def _existing(self, logical_id: str) -> Made:
        made = self.ensure(logical_id)
        if made is None:
            raise TemplateError(logical_id, "is named, but its condition does not hold")
        return made

    def _create(self, logical_id: str) -> Made | None:
        if logical_id not in self.template.resources:
            raise TemplateError(logical_id, "no such parameter or resource")
        resource = self.template.resources[logical_id]
        if "Condition" in resource and not self.resolver.condition(resource["Condition"]):
            return None
        for other in _as_list(resource.get("DependsOn", [])):
            self.ensure(other)
        kind = KINDS.get(resource["Type"])
        if kind is None:
            raise TemplateError(logical_id, f"the twin does not know type {resource['Type']}")
        properties = self._local(self.resolver.resolve(resource.get("Properties", {})))
        return kind.make(self.site, logical_id, properties)

    def _local(self, value: Node) -> Node:
        """Let URLs of the stack's API point into the twin: the template can only name AWS's hosts."""
        match value:
            case str():
                return _API_HOST.sub(lambda match: f"{self.api_root}{match[1]}", value)
            case list():
                return [self._local(child) for child in value]
            case dict():
                return {key: self._local(child) for key, child in value.items()}
            case _:
                return value


def _as_list(value: Any) -> list[str]:  # noqa: ANN401  a name or a list of names
    return value if isinstance(value, list) else [value]
