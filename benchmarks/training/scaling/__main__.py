"""Trains on several numbers of ranks and shows how the speed grows with them."""

import argparse
import json
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.training.scaling.efficiency import caveat, draw, facts
from benchmarks.training.scaling.worlds import Plan, Seats, measured
from training.config import TrainConfig, read_config
from training.errors import ConfigError

_BAD_ARGUMENTS = 2


def main(arguments: Sequence[str]) -> int:
    """Measure; return 0 if every world was measured, 1 if one failed, 2 for wrong usage."""
    options = _parser().parse_args(arguments)
    try:
        worlds = _worlds(options.worlds)
        given = _given(options)
        config = read_config([f"--{name}={text}" for name, text in given.items()], os.environ)
    except (ConfigError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return _BAD_ARGUMENTS
    plan = Plan(
        options=given,
        tokens_of_a_rank=config.batch_size * config.shape.sequence_length,
        warmup=options.warmup,
        steps=options.steps,
        timeout_seconds=options.timeout_seconds,
    )
    return _measure(plan, config, worlds, options.json)


def _measure(plan: Plan, config: TrainConfig, worlds: Sequence[int], path: Path) -> int:
    seats, results, report = Seats.of(os.environ, worlds), [], dict[str, Any]()
    device, cores = _device() if seats.is_first else "", len(os.sched_getaffinity(0))
    warning = caveat(worlds, device=device, cores=cores)
    circumstances = {
        "model": config.model_name,
        "precision": _precision(config) if seats.is_first else config.precision,
        "strategy": config.strategy
        + (f" x tp {config.tensor_parallel}" if config.tensor_parallel > 1 else ""),
        "options": dict(plan.options),
        "device": device,
        "cores": cores,
        "warmup_steps_left_out": plan.warmup,
    }
    with tempfile.TemporaryDirectory() as place:
        for number, world in enumerate(worlds):
            result = measured(plan, world, number, seats, Path(place) / f"world-{world}")
            if result is None:
                continue
            results.append(result)
            report = facts(results, told=circumstances, warning=warning)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(report, indent=1) + "\n")  # each world as it comes
            print(_line(report["worlds"][-1]), flush=True)
    if not seats.is_first:
        return 0
    if warning:
        print(f"note: {warning}")
    try:
        draw(report, path.with_suffix(".png"))
    except ModuleNotFoundError as error:
        print(f"no chart: pip install {error.name}, then draw it of the JSON", file=sys.stderr)
    return int(any(result.error for result in results))


def _line(world: dict[str, Any]) -> str:
    if not world["ok"]:
        return f"{world['world']} ranks failed: {world['error']}"
    share = world["communication_share"]
    collectives = "no trace" if share is None else f"collectives under way {share:.0%} of a step"
    return (
        f"{world['world']} ranks: {world['tokens_per_second']:,.0f} tokens/s, "
        f"efficiency {world['efficiency']:.0%}, {collectives}"
    )


def _device() -> str:
    import torch  # noqa: PLC0415  wrong arguments end before it is loaded

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"


def _precision(config: TrainConfig) -> str:
    """Name what ``auto`` comes to on this host; all hosts are taken to be alike."""
    from training.config.choices import DeviceName  # noqa: PLC0415  as above
    from training.models.precision import choose  # noqa: PLC0415
    from training.ranks.devices import accelerator  # noqa: PLC0415

    kind = accelerator(config.device)
    device = kind.device(0)
    lacks = kind.slow_bf16(device)
    return choose(config.precision, device=DeviceName(device.type), slow=[lacks], kept=None).precision


def _worlds(text: str) -> list[int]:
    """Raises ValueError."""
    words = text.split(",")
    if not all(word.isdecimal() and int(word) for word in words) or len(set(words)) < len(words):
        raise ValueError(
            f"--worlds {text!r} must be different numbers of ranks with commas between, as 1,2,4"
        )
    return sorted(int(word) for word in words)


def _given(options: argparse.Namespace) -> dict[str, str]:
    """Raises ValueError."""
    if wrong := [option for option in options.option if "=" not in option.strip("=")]:
        raise ValueError(f"--option has {wrong[0]!r}; wanted is NAME=VALUE")
    named = {"preset": options.model, "strategy": options.strategy, "precision": options.precision}
    given = {name: text for name, text in named.items() if text is not None}
    return (
        given
        | {"batch_size": str(options.batch_of_a_rank)}
        | dict(option.split("=", 1) for option in options.option)
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training.scaling", description=__doc__)
    parser.add_argument("--worlds", default="1,2,4,8", help="numbers of ranks (%(default)s)")
    parser.add_argument("--steps", type=int, default=10, help="measured of each world (%(default)s)")
    parser.add_argument("--warmup", type=int, default=5, help="steps before them, left out (%(default)s)")
    parser.add_argument(
        "--batch-of-a-rank", type=int, default=8, help="sequences of each rank, in every world (%(default)s)"
    )
    parser.add_argument("--timeout-seconds", type=float, default=1800.0, help="of one world (%(default)g)")
    parser.add_argument(
        "--json",
        type=Path,
        default=Path("build/scaling.json"),
        help="the figures; the chart goes beside it (%(default)s)",
    )
    program = parser.add_argument_group("passed on to the program")
    program.add_argument("--model", metavar="PRESET", help="the preset (tiny)")
    program.add_argument("--precision")
    program.add_argument("--strategy")
    program.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="any other, as often as needed"
    )
    return parser


if __name__ == "__main__":
    # As an exception, or what was started would go on alone.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.exit(main(sys.argv[1:]))
