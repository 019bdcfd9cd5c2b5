"""``trainmaster simulate``: a history replayed under several policies, compared."""

from trainmaster_client.cli.command_options import with_options
from trainmaster_client.cli.simulation_options import OutputOptions, PolicyOptions, SourceOptions


@with_options
def simulate(*, source: SourceOptions, compared: PolicyOptions, output: OutputOptions) -> None:
    """Replay past jobs under other policies or capacities, by the very planner, and compare."""
    from trainmaster_client.cli.simulation_run import run  # noqa: PLC0415  the planner and all that reads histories

    run(source, compared, output)
