"""All options of the training program; their meanings are in ``sections``."""

from dataclasses import dataclass, field, fields

from training.config.sections import BatchOptions, CheckpointOptions, MonitoringOptions, StepOptions


# Fields of the last base come first, in `--help` as well: model, run, data, optimizer, and so on.
@dataclass(frozen=True, kw_only=True)
class TrainConfig(MonitoringOptions, CheckpointOptions, StepOptions, BatchOptions):
    """All sections of options at once, for the modules that put the parts of a job together."""

    translations: tuple[str, ...] = field(default=())
    """Lines for the log about options of FSDP1 that were translated."""

    @property
    def options(self) -> dict[str, object]:
        """Values of all options by name, without what was read beside them."""
        return {option.name: getattr(self, option.name) for option in fields(self) if option.metadata}
