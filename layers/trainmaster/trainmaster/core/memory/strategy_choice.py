"""The strategies that a run could have on the same instances: what each needs, moves, and lets through."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from trainmaster.core.memory.footprint import Cluster, Estimate, estimate, shards, tensor_ranks
from trainmaster.core.memory.program_shapes import OptimizerName, Precision, Strategy
from trainmaster.core.memory.scaling_bound import UTILISATION_PERCENT, Bound, Speeds, bound
from trainmaster.core.memory.step_traffic import StepTraffic, step_traffic
from trainmaster.core.memory.training_runs import Run

_GIB, _GB = 2**30, 10**9
_DIVISIBLE = (Precision.FP32, Precision.BF16, Precision.BF16_PURE)
"""Precisions that the program takes with tensor parallel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    run: Run
    estimate: Estimate
    traffic: StepTraffic
    bound: Bound | None
    """Bound of the scaling; None if a speed of the instance is not known."""
    is_asked: bool

    @property
    def name(self) -> str:
        tensor = f" tp {self.run.tensor_parallel}" if self.run.tensor_parallel > 1 else ""
        return f"{self.run.strategy}{tensor}"


def choices(run: Run, cluster: Cluster, speeds: Speeds | None) -> Sequence[Choice]:
    """Return the run as asked and the other ones that fit and that the program takes, the best bound first.

    Where no bound is known, the one that leaves most memory comes first.
    """
    run = run.on(gpus_with_bf16=cluster.multiplies_bf16)
    others = [other for other in _others(run, cluster) if other != run]
    candidates = [
        _choice(candidate, cluster, speeds, is_asked=candidate is run) for candidate in (run, *others)
    ]
    kept = [choice for choice in candidates if choice.is_asked or choice.estimate.fits]
    return sorted(kept, key=_rank, reverse=True)


def _rank(choice: Choice) -> tuple[bool, float, float, int]:
    bounds = (choice.bound.at_most, choice.bound.unhidden) if choice.bound else (0.0, 0.0)
    return (choice.estimate.fits, *bounds, choice.estimate.headroom_bytes)


def _choice(run: Run, cluster: Cluster, speeds: Speeds | None, *, is_asked: bool) -> Choice:
    return Choice(
        run=run,
        estimate=estimate(run, cluster),
        traffic=step_traffic(run, cluster),
        bound=bound(run, cluster, speeds),
        is_asked=is_asked,
    )


def _others(run: Run, cluster: Cluster) -> Iterator[Run]:
    """Yield the run divided otherwise: its matrices among the ranks of a host, or not at all."""
    for tensor in sorted({1, cluster.ranks_per_host, run.tensor_parallel}):
        for strategy in Strategy:
            group = run.shard_group_size if strategy.is_hybrid else 0
            changed = replace(run, strategy=strategy, tensor_parallel=tensor, shard_group_size=group)
            if _is_taken(changed, cluster):
                yield changed


def _is_taken(run: Run, cluster: Cluster) -> bool:
    """Tell whether the program takes the run, and it is not another strategy under a second name."""
    tensor, copy, ranks = tensor_ranks(run, cluster), shards(run, cluster), cluster.world_size
    match run.strategy:
        case Strategy.TP:
            is_itself = run.tensor_parallel == 1 < ranks
        case Strategy.NO_SHARD:
            is_itself = tensor < ranks and not run.cpu_offload
        case Strategy.FULL_SHARD | Strategy.SHARD_GRAD_OP:
            is_itself = tensor < ranks or ranks == 1
        case Strategy.HYBRID_SHARD | Strategy.HYBRID_SHARD_ZERO2:
            is_itself = tensor < copy < ranks and not (ranks % copy or copy % tensor)
    is_in_host = not cluster.ranks_per_host % tensor
    return is_itself and is_in_host and _has_even_parts(run, ranks // tensor) and _is_divisible(run, tensor)


def _has_even_parts(run: Run, groups: int) -> bool:
    return not run.batch_size % (groups * run.accumulation)


def _is_divisible(run: Run, tensor: int) -> bool:
    if tensor == 1:
        return True
    is_offered = (
        not run.lora_rank and run.optimizer is not OptimizerName.ADAMW_8BIT and run.precision in _DIVISIBLE
    )
    return is_offered and not run.shape.indivisible(tensor)


def choice_json(choice: Choice) -> dict[str, object]:
    """Return a choice as JSON, in bytes of a rank.

    ``at_most`` and ``unhidden`` are shares of the full speed.
    """
    scaling = None
    if choice.bound:
        scaling = {**asdict(choice.bound), "at_most": choice.bound.at_most, "unhidden": choice.bound.unhidden}
    return {
        "strategy": choice.run.strategy,
        "tensor_parallel": choice.run.tensor_parallel,
        "is_asked": choice.is_asked,
        "fits": choice.estimate.fits,
        "bytes_per_rank": choice.estimate.bytes_per_rank.total,
        "received_bytes": asdict(choice.traffic),
        "scaling": scaling,
    }


def choice_lines(strategies: Sequence[Choice]) -> Iterator[str]:
    """Yield a table of less than 80 columns, and the meaning of its columns."""
    yield f"{'strategies':<26}{'GiB':>8}{'GB in host':>12}{'GB network':>12}{'at most':>10}{'unhidden':>10}"
    for choice in strategies:
        moved, name = choice.traffic.total, f"{'*' if choice.is_asked else ' '} {choice.name}"
        shares = (choice.bound.at_most, choice.bound.unhidden) if choice.bound else (None, None)
        yield (
            f"{name:<26}{choice.estimate.bytes_per_rank.total / _GIB:>8.1f}"
            f"{moved.inside_host / _GB:>12.2f}{moved.between_hosts / _GB:>12.2f}"
            f"{_percent(shares[0]):>10}{_percent(shares[1]):>10}"
        )
    yield ""
    yield "* as asked. GB that a GPU receives in a step, inside its host and from others."
    if all(choice.bound for choice in strategies):
        yield f"A model, not a measurement: computing at {UTILISATION_PERCENT} % of the peak, bytes at stated"
        yield "bandwidths, at most this share of the speed without communication is left;"
        yield "unhidden: if nothing is hidden behind computing."
    else:
        yield "No bound of the scaling: these instances, this precision or offload have no speed here."


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f} %"
