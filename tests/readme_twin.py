"""``python -m tests.readme_twin`` records what a twin's API says of two teams' morning, for README's test."""

import json
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from demos.stage.two_teams import World, WorldJob, policy, running_world

RECORDED = Path(__file__).parent / "unit/docs/readme_twin.json"
WAITS = "llama-pretrain"
"""The job that README asks about."""
_PRETRAIN = WorldJob(name=WAITS, team="vision", priority=2, hours=6)
_TRANSLATE = WorldJob(name="translate-en-de", team="language", priority=3, hours=2)
_URGENT = WorldJob(name="urgent-eval", team="language", priority=9, hours=1)
_WAITING = (
    WorldJob(name="vit-ablation", team="vision", priority=2, hours=3),
    WorldJob(name="bert-distill", team="language", hours=1),
)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, running_world(Path(folder)) as world:
        _play(world)
        RECORDED.write_text(json.dumps(_answers(world), indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _play(world: World) -> None:
    both = policy(world.twin.ready["account_id"])
    world.api.put_policy({**both, "pools": both["pools"][:1]})
    for job in (_PRETRAIN, _TRANSLATE):
        world.add(job)
    world.clock(6)
    for job in (_PRETRAIN, _TRANSLATE):
        world.until_trains(job.name)
    world.clock(42)
    for job in (*_WAITING, _URGENT):
        world.add(job)
    world.clock(6)
    world.until_trains(_URGENT.name)
    world.clock(4)


def _answers(world: World) -> dict[str, Any]:
    api = world.api
    return {
        "now": world.now().astimezone(UTC).isoformat(),
        "recorded": f"{datetime.now(UTC):%Y-%m-%d}",
        "answers": {
            "/jobs": api.jobs(),
            "/pools": {"pools": api.pools()["pools"]},
            "/estimates": api.estimates(),
            f"/jobs/{WAITS}": api.job(WAITS),
        },
    }


if __name__ == "__main__":
    main()
