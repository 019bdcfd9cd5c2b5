"""What an array's row should say, by the jobs that its tasks became."""

from dataclasses import replace

import pytest
from trainmaster.core.arrays.array_model import Array, TaskEnds, TaskJobs
from trainmaster.core.arrays.task_recounts import existing_names, recount_tasks
from trainmaster.core.arrays.tasks import task_job
from trainmaster.core.jobs.model import Job, JobState

from tests.arrays import array_of

S = JobState


def array(**fields: int) -> Array:
    """Tasks 0 to 3 are jobs, 4 and 5 are none yet."""
    return array_of(
        "s", tuple(range(6)), unexpanded=0b110000, jobs=TaskJobs(waiting=4), ends=TaskEnds(**fields)
    )


def jobs_of(of: Array, *states: JobState) -> dict[str, Job]:
    made = (replace(task_job(of, place), state=state) for place, state in enumerate(states))
    return {job.name: job for job in made}


def test_jobs_are_counted_where_they_stand() -> None:
    of = array()
    counted = recount_tasks(of, jobs_of(of, S.RUNNING, S.HELD, S.PREEMPTED, S.STOPPING))
    assert counted.after.jobs == TaskJobs(waiting=1, held=1, running=2)
    assert counted.after.ends == of.ends
    assert counted.linked == ()


def test_ends_are_added_to_those_that_are_known() -> None:
    of = array(failed=0b1)
    assert sorted(existing_names(of)) == ["s-1", "s-2", "s-3"]
    counted = recount_tasks(of, jobs_of(of, S.COMPLETED, S.COMPLETED, S.FAILED, S.STOPPED))
    assert counted.after.ends == TaskEnds(completed=0b10, failed=0b101, stopped=0b1000)
    assert counted.after.jobs == TaskJobs()
    assert counted.after.unexpanded == of.unexpanded


def test_a_job_that_forgot_its_array_is_its_task_by_its_submission() -> None:
    of = array()
    jobs = jobs_of(of, S.RUNNING, S.RUNNING, S.RUNNING, S.RUNNING)
    forgot = {name: replace(job, spec=replace(job.spec, array=None)) for name, job in jobs.items()}
    counted = recount_tasks(of, {**jobs, "s-2": forgot["s-2"]})
    assert counted.linked == (jobs["s-2"],)
    assert counted.after.jobs == TaskJobs(running=4)


@pytest.mark.parametrize("is_there", [True, False], ids=["another submission", "no job"])
def test_a_task_whose_job_is_gone_counts_as_stopped(is_there: bool) -> None:  # noqa: FBT001
    of = array()
    jobs = jobs_of(of, S.RUNNING, S.RUNNING, S.RUNNING, S.RUNNING)
    later = jobs.pop("s-3")
    if is_there:
        jobs["s-3"] = replace(later, spec=replace(later.spec, entry_id="another", array=None))
    counted = recount_tasks(of, jobs)
    assert counted.after.ends == TaskEnds(stopped=0b1000)
    assert (counted.after.jobs, counted.linked) == (TaskJobs(running=3), ())
