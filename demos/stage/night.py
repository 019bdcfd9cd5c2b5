"""Events in the demo's world: a preemption, a spot interruption, a failure, a warm pool, a queue, a sweep."""

from demos.programs.ordered_job import MOST_STEPS
from demos.stage import sweep
from demos.stage.two_teams import SMALL, World, WorldJob

LLAMA = WorldJob(name="llama-7b-pretrain", team="vision", hours=6, priority=2)
TRANSLATE = WorldJob(name="pytorch-training-2026-11-22-04-11-09-318", team="language", hours=5, priority=3)
URGENT = WorldJob(name="urgent-eval", team="language", priority=9, hours=1)
SPOT = WorldJob(name="clip-sweep-spot", team="vision", instance_type=SMALL, is_spot=True, hours=8)
BROKEN = WorldJob(name="vit-huge-batch-64", team="language", instance_type=SMALL, hours=2)
SHORT = WorldJob(name="resnet-baseline", team="vision", instance_type=SMALL, hours=3)
FIRST = (LLAMA, TRANSLATE, SPOT, BROKEN, SHORT)
WAITING = tuple(
    WorldJob(
        name=f"pytorch-training-2026-11-22-06-{minute:02d}-17-{minute * 37 % 1000:03d}",
        team="vision" if minute % 2 else "language",
        hours=1 + minute % 4,
    )
    for minute in range(4, 10)
)


def play(world: World) -> None:
    """Play more than an hour of the twin's clock in half a minute of this machine's."""
    for job in FIRST:
        world.add(job)
    world.clock(6)
    for job in FIRST:
        world.until_trains(job.name)
    world.clock(36)
    world.fail(BROKEN.name)
    world.control("POST", "/spot", training_job=world.training_job(SPOT.name), action="interrupt")
    world.end(SHORT.name)
    world.until_prints(LLAMA.name, f"step={MOST_STEPS} ")  # so that its curve is the same each time
    for job in WAITING:
        world.add(job)
    world.add(URGENT)
    world.clock(6)
    world.until_trains(URGENT.name)
    world.clock(12)
    sweep.play(world)
