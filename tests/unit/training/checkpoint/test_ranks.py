from training.checkpoint.ranks import Failure
from training.checkpoint.saver import described


def test_ranks_that_say_the_same_are_named_together() -> None:
    full = Failure(message="no space left", is_of_store=True)
    other = Failure(message="not allowed", is_of_store=True)
    assert described({3: full, 0: full, 2: other}) == "ranks 0, 3: no space left; rank 2: not allowed"
