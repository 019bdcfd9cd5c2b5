"""The global batch, kept on every number of ranks: each step of a job sees the same samples."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DataWidth:
    """How a job's batches are split."""

    ranks: int
    """Ranks that get different samples."""
    batch: int
    """Samples of one batch over all ranks, before gradients are accumulated."""


def share_of(batch: int, ranks: int, *, tried_with: int) -> int:
    """Split a global batch over this many ranks.

    Args:
        batch: Samples over all ranks, as the job began.
        ranks: Of this attempt.
        tried_with: Ranks of the attempt before, for the message.

    Raises:
        ValueError: The batch does not divide; it names the numbers of ranks that divide it.
    """
    if batch % ranks == 0:
        return batch // ranks
    raise ValueError(
        f"{ranks} ranks cannot share the global batch of {batch} samples that this job began with "
        f"(the attempt before had {ranks_in_words(tried_with)}): run it on {_listed(batch)}"
    )


def only_on(ranks: int, *, now: int, why: str) -> ValueError:
    """Make the refusal of a job whose data can only go on on the number of ranks that it had."""
    return ValueError(
        f"this attempt has {ranks_in_words(now)}, the one before had {ranks_in_words(ranks)}, and {why}: "
        f"run it on {ranks_in_words(ranks)} again"
    )


def check_workers(now: int | None, *, before: int | None) -> None:
    """Refuse another number of workers where they decide the order.

    Args:
        now: Workers that make batches of a stream in this attempt; None: none do.
        before: Of the attempt before.

    Raises:
        ValueError: They differ.
    """
    if now != before:
        raise ValueError(
            f"this attempt has num_workers={now}, the one before had {before}, and the order of a stream "
            f"follows from it: set it to {before} again"
        )


def _listed(batch: int) -> str:
    divisors = [str(ranks) for ranks in range(1, batch + 1) if batch % ranks == 0]
    return "1 rank" if len(divisors) == 1 else f"{', '.join(divisors[:-1])} or {divisors[-1]} ranks"


def ranks_in_words(ranks: int) -> str:
    return "1 rank" if ranks == 1 else f"{ranks} ranks"
