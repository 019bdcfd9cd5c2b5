"""Plays histories and says how to play one again."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from tests.histories.harsh import HarshHistory
from tests.histories.history import History
from tests.histories.stage import Stage

STAGE = Stage()
"""Of this process: its threads are used again by each history."""


HistoryT = TypeVar("HistoryT", bound=History)


KINDS: Mapping[str, type[History]] = {"kind": History, "harsh": HarshHistory}
"""By the world that they are played in."""


def play(seed: int, *, tell: Callable[[str], None] = lambda _: None, world: str = "kind") -> History:
    """One history from its first step until all is settled. Says its seed when an invariant breaks."""
    there = "" if world == "kind" else f" --world {world}"
    again = f"; again: python -m tests.histories --seed {seed} --trace{there}"
    return played(KINDS[world](seed=seed, stage=STAGE, tell=tell), again=again)


def played(history: HistoryT, *, again: str = "") -> HistoryT:
    """The same for a history of another kind; ``again`` says how to play it again."""
    try:
        history.play()
        history.settle()
    except BaseException as error:
        error.add_note(f"seed {history.seed}{again}")
        raise
    return history
