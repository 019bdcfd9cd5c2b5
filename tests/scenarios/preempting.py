"""Stories of who makes room: for whom, who is chosen, and what was said before."""

import re
from datetime import UTC, datetime

from tests.e2e.plane import INSTANCE_TYPE
from tests.scenarios.stage import A_MOMENT, Stage, StoryError, policy_of

ONE = policy_of(capacity={INSTANCE_TYPE: 1})
TWO = policy_of(capacity={INSTANCE_TYPE: 2})
PRICED = policy_of(
    capacity={INSTANCE_TYPE: 1},
    preemption={"cost": {"enabled": True, "lost_work": 3, "unsaved": "1h", "longest_wait": "off"}},
)
BOUNDED = policy_of(
    capacity={INSTANCE_TYPE: 2},
    preemption={"cost": {"enabled": True, "lost_work": 100, "longest_wait": "5m"}},
)
"""Lost work is so dear that nothing but the bound stops a job that saves nothing."""
SPARING = policy_of(capacity={INSTANCE_TYPE: 2}, preemption={"cost": {"enabled": True, "lost_work": 1}})
LOOKS_EVERY = 300.0
"""Seconds between two looks for a job's checkpoints, while jobs wait."""


def priority_preempts(stage: Stage) -> None:
    """A waiting job is given a higher priority than the running one, and takes its place."""
    stage.submit("runs", priority=5)
    stage.until_state(runs="running")
    stage.submit("waits", priority=1)
    stage.advance(A_MOMENT)
    stage.check("nobody was stopped yet", expected=[], actual=stage.stopped())
    view = stage.did("PATCH", "/jobs/waits", {"priority": 9})
    stage.check("the answer has the new priority", expected=9, actual=view["priority"])
    stage.until_state(waits="running", runs="preempted")
    stage.check("the running job made room", expected=["runs"], actual=stage.stopped())
    stage.finish("waits")
    stage.until_state(runs="running")
    back = stage.look("runs")
    stage.check("and came back after it", expected=[1, 1], actual=[back["attempt"], back["preemptions"]])


def hold_release(stage: Stage) -> None:
    """A held job lets others pass, whatever its priority, until it is released."""
    stage.submit("runs", priority=5)
    stage.until_state(runs="running")
    refused = stage.api("PATCH", "/jobs/runs", {"held": True})
    stage.check("a running job cannot be held", expected=409, actual=refused.status)
    stage.submit("held", priority=3)
    stage.submit("behind", priority=1)
    held = stage.did("PATCH", "/jobs/held", {"held": True})
    stage.check("it is held", expected=["held", None], actual=[held["state"], held["position"]])
    stage.check("its reason says so", expected="held", actual=stage.why("held"))
    stage.finish("runs")
    stage.until_state(behind="running")
    stage.check("the one behind it went first", expected="held", actual=stage.look("held")["state"])
    released = stage.did("PATCH", "/jobs/held", {"held": False})
    stage.check("released it waits in its turn", expected="pending", actual=released["state"])
    stage.until_state(held="running", behind="preempted")
    stage.check("and its priority counts again", expected=["behind"], actual=stage.stopped())


def victim_by_checkpoint(stage: Stage) -> None:
    """Of two equal jobs the one whose checkpoint is younger makes room: it loses less work."""
    for name in ("saved-late", "saved-early"):  # of equals the last to come would be stopped
        stage.submit(name, priority=1, **stage.checkpoints_of(name))
        stage.advance(A_MOMENT)
    stage.submit("spectator", priority=0)
    stage.until_state(saved_early="running", saved_late="running")
    stage.advance(600)
    stage.save_checkpoint("saved-early")
    stage.advance(600)
    stage.save_checkpoint("saved-late")
    stage.advance(LOOKS_EVERY + 60)
    stage.submit("urgent", priority=9)
    stage.until_state(urgent="running")
    stage.check("the one saved late made room", expected=["saved-late"], actual=stage.stopped())
    wasted = stage.look("saved-late")["wasted_seconds"].get("preemption")
    stage.check(
        "what it lost is the time since its checkpoint",
        expected="from 360 to 400 s",
        actual=wasted,
        ok=wasted is not None and 360 <= wasted <= 400,
    )


def dry_run_comes_true(stage: Stage) -> None:
    """What a dry run says of a job is what happens when it is submitted."""
    stage.submit("runs", priority=5)
    stage.until_state(runs="running")
    stage.advance(A_MOMENT)
    lowly, urgent = stage.request("lowly", priority=1), stage.request("urgent", priority=9)
    said = {
        one["TrainingJobName"]: stage.did("POST", "/add-job?dry_run=true", one) for one in (lowly, urgent)
    }
    stage.check("both are valid", expected=[True, True], actual=[one["valid"] for one in said.values()])
    unknown = [stage.api("GET", f"/jobs/{name}").status for name in said]
    stage.check("nothing was stored", expected=[404, 404], actual=unknown)
    estimates = {name: one["estimated_start"] for name, one in said.items()}
    ordered = [one is not None and one["p50"] <= one["p90"] for one in estimates.values()]
    stage.check("each has an estimate of its start", expected="p50 <= p90", actual=estimates, ok=all(ordered))
    stage.check("the first would stop nobody", expected=[], actual=said["lowly"]["would_preempt"])
    stage.check(
        "the other would stop the running one", expected=["runs"], actual=said["urgent"]["would_preempt"]
    )
    stage.did("POST", "/add-job", lowly)
    stage.advance(A_MOMENT)
    waits = stage.look("lowly")
    stage.check("the first stopped nobody", expected=[], actual=stage.stopped())
    stage.check(
        "and waits where it was said",
        expected=[said["lowly"]["pool"], said["lowly"]["position"]],
        actual=[waits["pool"], waits["position"]],
    )
    stage.did("POST", "/add-job", urgent)
    stage.until_state(urgent="running")
    stage.check(
        "the other stopped whom it said", expected=said["urgent"]["would_preempt"], actual=stage.stopped()
    )


def price_of_preemption(stage: Stage) -> None:
    """A job that never saves would lose two hours for a short wait; later that is worth it, and once more."""
    stage.submit("taught", priority=0, minutes=150)  # what nobody knows the length of is stopped at once
    stage.until_state(taught="running")
    stage.advance(145 * 60)
    stage.finish("taught")
    stage.submit("long", priority=0, minutes=150)
    stage.until_state(long="running")
    stage.advance(2 * 3600)
    stage.submit("urgent", priority=40)
    stage.advance(A_MOMENT)
    why = stage.look("urgent")["waiting"]
    stage.check("it waits for capacity", expected="capacity", actual=why["code"])
    stage.check(
        "and hears what its preemption would cost, for how much of its wait",
        expected="stopping long would lose 2.0 h of work for 0.... h of your wait: not worth it until ...",
        actual=why["message"],
        ok=re.search(
            r"; stopping long would lose 2.0 h of work for 0\.\d h of your wait: not worth it until ",
            why["message"],
        )
        is not None,
    )
    worth_at = _minute_in(why["message"])
    half_way = (worth_at - stage.now).total_seconds() / 2
    stage.advance(half_way)
    stage.check("half-way there nobody was stopped", expected=[], actual=stage.stopped())
    stage.check("and it waits", expected="pending", actual=stage.look("urgent")["state"])
    stage.advance(half_way + 60)
    stage.until_state(urgent="running")
    stage.check("then the other made room", expected=["long"], actual=stage.stopped())
    at = next(one["clock"] for one in stage.plane.calls("StopTrainingJob"))
    late = (datetime.fromisoformat(at) - worth_at).total_seconds()
    stage.check(  # the longer it trains, the longer it is expected to go on: the wait is worth it sooner
        "by the minute that was said",
        expected="no more than 60 s later",
        actual=late,
        ok=-half_way <= late <= 60,
    )
    stage.finish("urgent")
    stage.until_state(long="running")
    stage.advance(5 * 60)
    _second_preemption(stage)


def _second_preemption(stage: Stage) -> None:
    stage.submit("urgent-too", priority=40)
    stage.advance(A_MOMENT)
    why = stage.look("urgent-too")["waiting"]["message"]
    stage.check("who was stopped lately is not stopped at once", expected=["long"], actual=stage.stopped())
    stage.check(
        "though little would be lost",
        expected="stopping long would lose 0.1 h of work, once more within a day, for ...",
        actual=why,
        ok=re.search(r"; stopping long would lose 0\.[12] h of work, once more within a day, for ", why)
        is not None,
    )
    stage.advance((_minute_in(why) - stage.now).total_seconds() + 60)
    stage.until_state(urgent_too="running")
    stage.check(
        "but by the minute that was said",
        expected=["long", "long-again"],
        actual=[name if name == "long" else "long-again" for name in stage.stopped()],
    )


def price_bounded(stage: Stage) -> None:
    """One of the highest priority waits five minutes for a price, others until it is worth it."""
    stage.submit("taught", priority=0, minutes=400)  # what nobody knows the length of is stopped at once
    stage.until_state(taught="running")
    stage.advance(300 * 60)
    stage.finish("taught")
    stage.submit("top", priority=90, minutes=400)
    stage.submit("long", priority=0, minutes=400)
    stage.until_state(long="running", top="running")
    stage.advance(2 * 3600)
    stage.submit("middle", priority=40)
    stage.advance(8 * 60)
    stage.check("one of a lower priority than another waits on", expected=[], actual=stage.stopped())
    stage.did("DELETE", "/jobs/middle")
    stage.submit("urgent", priority=90)
    stage.advance(A_MOMENT)
    why, came = stage.look("urgent")["waiting"], stage.now
    stage.check(
        "the urgent one hears what its preemption would cost",
        expected="stopping long would lose 2.1 h of work for ... of your wait: not worth it until ...",
        actual=why["message"],
        ok="; stopping long would lose 2." in why["message"] and "not worth it until" in why["message"],
    )
    told = (_minute_in(why["message"]) - came).total_seconds()
    stage.check("for no more than five minutes", expected="<= 360 s", actual=told, ok=0 < told <= 360)
    stage.advance(3 * 60)
    stage.check("after three minutes nobody was stopped", expected=[], actual=stage.stopped())
    stage.advance(2 * 60)
    stage.until_state(urgent="running")
    stage.check("then the other made room", expected=["long"], actual=stage.stopped())
    at = next(one["clock"] for one in stage.plane.calls("StopTrainingJob"))
    waited = (datetime.fromisoformat(at) - came).total_seconds()
    stage.check("after the bound", expected="240 to 420 s", actual=waited, ok=240 <= waited <= 420)


def no_thrash(stage: Stage) -> None:
    """A job that has only begun is spared, and so is one that has only come back from a stop."""
    stage.submit("taught", minutes=400)  # what nobody knows the length of is stopped at once
    stage.until_state(taught="running")
    stage.advance(300 * 60)
    stage.finish("taught")
    stage.submit("settled", minutes=400, **stage.checkpoints_of("settled"))
    stage.submit("old", minutes=400)
    stage.until_state(settled="running", old="running")
    stage.advance(60)  # jobs of one instant are ordered by name
    stage.submit("begins", minutes=400)
    stage.advance(1200)
    stage.save_checkpoint("settled")
    stage.advance(LOOKS_EVERY + 60)
    stage.finish("old")
    stage.until_state(begins="running")
    stage.submit("urgent", priority=40)
    stage.until_state(urgent="running")
    stage.check("the one that had settled made room", expected=["settled"], actual=stage.stopped())
    stage.check("the one that began goes on", expected=0, actual=stage.look("begins")["preemptions"])
    stage.finish("urgent")
    stage.until_state(settled="running")
    stage.advance(6 * 60)
    stage.submit("urgent-too", priority=40)
    stage.until_state(urgent_too="running")
    stage.check(
        "now the other did, although it loses more: nobody is stopped twice in a row",
        expected=["settled", "begins"],
        actual=stage.stopped(),
    )
    stops = [stage.look(name)["preemptions"] for name in ("settled", "begins")]
    stage.check("each was stopped once", expected=[1, 1], actual=stops)


def _minute_in(told: str) -> datetime:
    found = re.search(r"until (\d{4}-\d\d-\d\d \d\d:\d\d) UTC", told)
    if found is None:
        raise StoryError(f"no minute in: {told}")
    return datetime.strptime(found[1], "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
