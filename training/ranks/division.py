"""Divides the batch of a step among the ranks, and a rank's share into parts, at each width of a job.

The batch of a step is the same at every width, so that losses, learning rate and order of samples are, too. A
narrower attempt cuts its larger shares into more parts, none larger than at the largest width: what fits the
memory of a rank there fits here, apart from weights that fewer ranks divide.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from training.config.elastic import Widths
from training.config.sections import BatchOptions
from training.errors import ConfigError
from training.ranks.meshes import with_shares
from training.ranks.world import World

_LISTED_WIDTHS = 12
"""The most widths that a message lists; it has to fit into the 1,024 characters of a FailureReason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """How the batch of a step is divided in this attempt."""

    world: World
    """The ranks, with how many of them work on the same sequences."""
    parts: int
    """Parts that a rank's share of a step is cut into."""
    notes: tuple[str, ...] = ()
    """Lines for the log: what differs from the largest width, and which widths could not train."""


def divided(config: BatchOptions, world: World, env: Mapping[str, str]) -> Division:
    """Divide the batch of a step for this attempt.

    Args:
        config: Its ``gradient_accumulation_steps`` are those of the largest width.
        world: The ranks of this attempt.
        env: The environment, which tells the widths of an elastic job.

    Raises:
        ConfigError: The ranks cannot share the batch, or the model. Where the job is elastic, it names the
            widths that can.
    """
    widths = Widths.of(env, world.hosts)
    refused = {
        width: problem for width in widths.counts if (problem := _problem(config, world, width, widths))
    }
    if problem := refused.get(world.hosts, ""):
        raise ConfigError([problem + _advice(widths, refused)])
    shared = with_shares(world, config)
    parts, notes = _parts(config, shared, widths), list[str]()
    if widths.is_elastic:
        notes.append(f"width: {world.hosts} of at most {widths.largest}, gradient_accumulation_steps {parts}")
    if refused:
        others = _listed([str(width) for width in refused])
        notes.append(f"warning: width {others} would end with exit code 1{_advice(widths, refused)}")
    return Division(world=shared, parts=parts, notes=tuple(notes))


def _problem(config: BatchOptions, world: World, width: int, widths: Widths) -> str:
    """Say why an attempt of this width could not divide the model or the batch; empty if it can."""
    try:
        shared = with_shares(replace(world, size=width * world.ranks_per_host), config)
    except ConfigError as error:
        return "; ".join(error.problems)
    # A narrower attempt chooses its parts; at the largest width they are those of the option.
    parts = config.gradient_accumulation_steps if width == widths.largest else 1
    divisor = shared.data_ranks * parts
    if config.batch_size % divisor == 0:
        return ""
    by = _shares(shared)
    by += f" x {parts} gradient_accumulation_steps" if width == widths.largest else f" of width {width}"
    below = config.batch_size // divisor * divisor
    near = " or ".join(str(size) for size in (below, below + divisor) if size)
    instead = "" if widths.is_elastic else _ranks_that_divide(config, shared.ranks_per_share)
    return f"batch_size {config.batch_size} does not divide by {by}; take {near}{instead}"


def _ranks_that_divide(config: BatchOptions, ranks_per_share: int) -> str:
    shares, remainder = divmod(config.batch_size, config.gradient_accumulation_steps)
    if remainder:
        return ""
    numbers = [str(count * ranks_per_share) for count in range(1, shares + 1) if shares % count == 0]
    return f", or train on {_listed(numbers)} ranks"


def _advice(widths: Widths, refused: Mapping[int, str]) -> str:
    """Name the widths of the job that can divide its batch; empty if the job has but one width."""
    if not widths.is_elastic:
        return ""
    fitting = [str(width) for width in widths.counts if width not in refused]
    return f"; widths of this job that do: {_listed(fitting) if fitting else 'none'}"


def _listed(numbers: list[str]) -> str:
    if len(numbers) > _LISTED_WIDTHS:
        return f"{', '.join(numbers[:_LISTED_WIDTHS])} and {len(numbers) - _LISTED_WIDTHS} more"
    return " or ".join([", ".join(numbers[:-1]), numbers[-1]] if len(numbers) > 1 else numbers)


def _parts(config: BatchOptions, world: World, widths: Widths) -> int:
    """Return the fewest parts of a rank's share that are no larger than those of the largest width."""
    if world.hosts == widths.largest:
        return config.gradient_accumulation_steps
    share = config.batch_size // world.data_ranks
    widest = with_shares(replace(world, size=widths.largest * world.ranks_per_host), config)
    largest_part = max(1, config.batch_size // (widest.data_ranks * config.gradient_accumulation_steps))
    return next(
        parts for parts in range(1, share + 1) if share % parts == 0 and share // parts <= largest_part
    )


def _shares(world: World) -> str:
    """Name the ranks, or groups of ranks, that share a batch's sequences."""
    if world.ranks_per_share == 1:
        return f"{world.size} ranks"
    return f"{world.data_ranks} groups of {world.ranks_per_share} ranks"
