"""The notice of jobs that cannot run any more because another one ended: one for each root and team."""

from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.lifecycle.dependents import root_text
from trainmaster.core.outbox.messages import Notice, NoticeKind
from trainmaster.core.outbox.texts.wording import quoted


def dependents_ended_notice(first: Job) -> Notice:
    """Tell a team that its jobs behind a root end.

    Args:
        first: The first of them as it is now: stopped, or held if its owner wanted that.
    """
    assert first.after is not None, first.name
    root, team = first.after.root, first.spec.team
    assert root is not None, first.name
    own = {"root": root.name} if root.team == team else {}
    ending = "held" if first.state is JobState.HELD else "stopped"
    return Notice(
        kind=NoticeKind.DEPENDENTS_ENDED,
        team=team,
        job=first.name,
        what=f"Job {first.name} is {ending}, and so are those behind it: they were to run after a job that "
        "did not end as they need it.",
        why=quoted(root_text(first.after, team=team)),
        todo=f"`trainmaster tree {root.name if root.team == team else first.name}` shows all of them. Queue "
        "them again once the cause is fixed.",
        undo="The tag trainmaster:after-failed=hold has a job held instead until its conditions are changed; "
        "afterany and afternotok are conditions that such an end fulfils.",
        detail={"state": first.state.value, "root_team": root.team, **own},
    )
