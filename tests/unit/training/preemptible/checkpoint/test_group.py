from training.preemptible.checkpoint.group import Failure, described


def test_ranks_that_say_the_same_are_named_together() -> None:
    full = Failure(message="no space left", is_of_store=True)
    other = Failure(message="not allowed", is_of_store=True)
    assert described({3: full, 0: full, 2: other}) == "ranks 0, 3: no space left; rank 2: not allowed"


def test_of_many_ranks_and_messages_a_few_are_shown() -> None:
    full = Failure(message="no space left", is_of_store=True)
    assert described(dict.fromkeys(range(128), full)) == "ranks 0, 1, 2 and 125 more: no space left"
    denied = {rank: Failure(message=f"__{rank}_0.distcp was denied", is_of_store=True) for rank in range(128)}
    assert described(denied) == (
        "rank 0: __0_0.distcp was denied; rank 1: __1_0.distcp was denied; rank 2: __2_0.distcp was denied "
        "and 125 more"
    )
