"""What the outside does to a plane at work, in words."""

from typing import Any

from tests.integration.world import World


def trains(world: World, *names: str) -> None:
    for name in names:
        world.sagemaker.train(name)
        world.tell(name)


def ends(world: World, name: str, status: str = "Completed", **fields: Any) -> None:
    """A training job ends, and its event arrives."""
    world.sagemaker.end(name, status, **fields)
    world.tell(name)
    world.schedule()


def code_of(world: World, name: str) -> str | None:
    view: dict[str, Any] = world.api("GET", f"/jobs/{name}")
    reason = view["waiting"] or view["reason"]
    return None if reason is None else str(reason["code"])
