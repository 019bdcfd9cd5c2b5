"""How the table calls and groups what the core calls and groups otherwise.

Fields get better names and are put into parts; rows stay as they are.
"""

from collections.abc import Mapping

from trainmaster.core.jobs.model import Job
from trainmaster.core.outbox.messages import OutboxMessage

PARTS: frozenset[type] = frozenset()
"""Dataclasses that are kept among the attributes of their owner, not in an attribute of their own."""
STORED_NAMES: Mapping[type, Mapping[str, str]] = {
    OutboxMessage: {"lease_until": "taken_until"},
    Job: {"checkpointed": "survived"},
}
"""By class and field: attributes that are not called as the field is."""


def stored_name(cls: type, field: str) -> str:
    """The attribute that a field is kept in."""
    return STORED_NAMES.get(cls, {}).get(field, field)
