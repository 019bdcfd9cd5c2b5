"""Plays histories and says how to play one again."""

from collections.abc import Callable
from typing import TypeVar

from tests.histories.history import History
from tests.histories.stage import Stage

STAGE = Stage()
"""Of this process: its threads are used again by each history."""


HistoryT = TypeVar("HistoryT", bound=History)


def play(seed: int, *, tell: Callable[[str], None] = lambda _: None) -> History:
    """One history from its first step until all is settled. Says its seed when an invariant breaks."""
    again = f"; again: python -m tests.histories --seed {seed} --trace"
    return played(History(seed=seed, stage=STAGE, tell=tell), again=again)


def played(history: HistoryT, *, again: str = "") -> HistoryT:
    """The same for a history of another kind; ``again`` says how to play it again."""
    try:
        history.play()
        history.settle()
    except BaseException as error:
        error.add_note(f"seed {history.seed}{again}")
        raise
    return history
