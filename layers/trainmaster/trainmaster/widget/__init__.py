"""The queue as a custom widget of a CloudWatch dashboard: static HTML, or the widget's description.

It only reads.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainmaster.core.errors import TrainmasterError, quoted
from trainmaster.ports import PolicyStore
from trainmaster.services.policy_in_force import policy_in_force
from trainmaster.widget.page import html, notice
from trainmaster.widget.queue_picture import Reads, picture

__all__ = ["DESCRIPTION", "Reads", "Widget"]

DESCRIPTION = """## The queue of trainmaster

Shows, for each pool of the policy, how many instances are used and warm, the jobs that hold them, and those
that wait in their turn, each with the reason. It reads the table and changes nothing.

Jobs and teams have no names here unless the stack's parameter `WidgetShowsNames` is `true`: the function does
not know who looks. `trainmaster queue` shows you all that you may see.

### Parameters

| name | means |
|---|---|
| `pool` | shows this pool alone; without it the first 20 |

``` yaml
pool: main
```
"""
"""Markdown that CloudWatch shows beside the widget's settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Widget:
    policies: PolicyStore
    reads: Reads
    stack: str

    def __call__(self, event: Mapping[str, Any]) -> str:
        """Answer any input in words, since CloudWatch shows the text of an error to its viewers."""
        if event.get("describe"):
            return DESCRIPTION
        wanted = event.get("pool")
        if wanted is not None and not isinstance(wanted, str):
            return notice("pool: must be the name of a pool; write it as text in the widget's parameters")
        try:
            return self._queue(wanted or None)
        except TrainmasterError:
            return notice("The queue cannot be read at the moment; the next refresh tries again.")

    def _queue(self, wanted: str | None) -> str:
        in_force = policy_in_force(self.policies, self.reads.clock())
        pools = [pool for pool in in_force.policy.pools if wanted in {None, pool.name}]
        if wanted is not None and not pools:
            return notice(f"pool: there is no pool {quoted(wanted)}; remove the parameter to see all pools")
        return html(picture(pools, paused=in_force.stored.paused, reads=self.reads), stack=self.stack)
