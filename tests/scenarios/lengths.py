"""A story of jobs whose like have ended before."""

from tests.e2e.plane import INSTANCE_TYPE
from tests.scenarios.stage import A_MOMENT, Stage, policy_of

LENGTHS_POLICY = policy_of(capacity={INSTANCE_TYPE: 1}, order={"shortest_first": True})
AN_HOUR = 3600.0


def learned_durations(stage: Stage) -> None:
    """Of two programs one trains for an hour, the other for a moment: its next run goes first."""
    for name, trains in (("slow-1", AN_HOUR), ("quick-1", 0.0)):
        stage.submit(name, minutes=600)
        stage.until_state(**{name.replace("-", "_"): "running"})
        stage.advance(trains)
        stage.finish(name)
    stage.submit("blocker", minutes=600)
    stage.until_state(blocker="running")
    for name in ("slow-2", "quick-2"):
        stage.submit(name, minutes=600)
        stage.advance(A_MOMENT)
    places = [stage.look(name)["position"] for name in ("slow-2", "quick-2")]
    stage.check("the run that came later and asks for the same goes first", expected=[2, 1], actual=places)
    stage.finish("blocker")
    stage.until_state(quick_2="running")
    stage.finish("quick-2")
    stage.until_state(slow_2="running")
    order = [name for name in stage.created() if name.endswith("-2")]
    stage.check("so they were started", expected=["quick-2", "slow-2"], actual=order)
