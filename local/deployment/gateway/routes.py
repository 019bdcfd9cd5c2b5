"""Which resource of the API a path belongs to."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

_VARIABLE = re.compile(r"\{([^}+]+)(\+?)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    resource: str
    function_arn: str
    variables: Mapping[str, str]
    """Path parameters, decoded once."""


class Routes:
    """The routes of an API; what is written out goes before what is a variable."""

    def __init__(self, routes: Mapping[tuple[str, str], str]) -> None:
        ordered = sorted(routes.items(), key=lambda item: _VARIABLE.sub("\uffff", item[0][1]))
        self._routes = [(method, path, _expression(path), arn) for (method, path), arn in ordered]

    def find(self, method: str, raw_path: str) -> Route | None:
        """Match the path as it was sent: an encoded slash does not separate."""
        for route_method, resource, expression, function_arn in self._routes:
            if route_method == method and (match := expression.fullmatch(raw_path)):
                variables = {name: unquote(value) for name, value in match.groupdict().items()}
                return Route(resource=resource, function_arn=function_arn, variables=variables)
        return None


def _expression(path: str) -> re.Pattern[str]:
    parts: list[str] = []
    end = 0
    for match in _VARIABLE.finditer(path):
        name, greedy = match.groups()
        parts += [re.escape(path[end : match.start()]), f"(?P<{name}>{'.+' if greedy else '[^/]+'})"]
        end = match.end()
    return re.compile("".join([*parts, re.escape(path[end:])]))
