"""Plays histories and says how to play one again."""

from collections.abc import Callable

from tests.histories.history import History
from tests.histories.stage import Stage

STAGE = Stage()
"""Of this process: its threads are used again by each history."""


def play(seed: int, *, tell: Callable[[str], None] = lambda _: None) -> History:
    """One history from its first step until all is settled. Says its seed when an invariant breaks."""
    history = History(seed=seed, stage=STAGE, tell=tell)
    try:
        history.play()
        history.settle()
    except BaseException as error:
        error.add_note(f"seed {seed}; again: python -m tests.histories --seed {seed} --trace")
        raise
    return history
