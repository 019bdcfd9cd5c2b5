"""Changes of rows of sums, collected from several places before one transaction makes them."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from trainmaster.adapters.dynamodb.layout import Key


@dataclass(slots=True)
class Update:
    """Collects one UpdateItem from several places."""

    add: Counter[str] = field(default_factory=Counter)
    put: dict[str, Any] = field(default_factory=dict)
    shift: list[tuple[str, str, Any]] = field(default_factory=list)
    """Attribute, the attribute whose old value it takes, and the value if there is none."""
    remove: list[str] = field(default_factory=list)
    conditions: list[tuple[str, str, Any]] = field(default_factory=list)
    """Template over ``#n`` and ``:v``, attribute, value; all must hold."""
    any_of: list[list[tuple[str, str, Any]]] = field(default_factory=list)
    """Groups of such conditions; one of each group is enough."""
    append: dict[str, list[Any]] = field(default_factory=dict)
    """Elements to be put behind those of a list, by attribute; a list that is missing is begun."""

    @property
    def says_something(self) -> bool:
        return bool(any(self.add.values()) or self.put or self.append or self.remove or self.conditions)


Updates = defaultdict[Key, Update]
