"""Prints a line of the log that machines read once for all ranks."""

from training.metrics import Event, event_line
from training.ranks.world import World


def tell(world: World, event: Event, **details: float | str | None) -> None:
    """Print an event's line on the first rank; every rank may call, as the others do nothing."""
    if world.is_first:
        print(event_line(event, **details), flush=True)
