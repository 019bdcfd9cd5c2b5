"""What is seen of an attempt becomes part of its job, one step at a time."""

from trainmaster.core.jobs.instances import Shape
from trainmaster.core.jobs.model import JobState
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.request.request import TAG_ATTEMPT, TAG_JOB, TAG_SPEC
from trainmaster.services.end_policy import EndPolicy
from trainmaster.services.observer import Observer

from tests.bodies import tag_list
from tests.builders import NOON, A, claimed, job, of
from tests.memory.edges import MemoryLogs
from tests.memory.policies import MemoryPolicyStore
from tests.memory.reader import MemoryReader
from tests.memory.sagemaker import MemorySageMaker, TrainingJob
from tests.memory.store import MemoryJobStore
from tests.memory.tables import Tables


def test_a_start_that_is_seen_only_after_too_many_interruptions_runs_first_and_then_leaves_spot() -> None:
    tables = Tables()
    store, reader, policies = MemoryJobStore(tables), MemoryReader(tables), MemoryPolicyStore(tables)
    pool = {"name": "main", "capacity": {A: 1}, "spot_capacity": {A: 1}}
    policies.put({"pools": [pool]}, pools=["main"], replaces=policies.current())
    one = job(shapes=(Shape(vector=of(spot=True)),))
    store.submit(one, b"{}")
    (starting,) = store.commit([Change(before=one, after=claimed(one))], at=NOON)
    assert starting.state is JobState.STARTING
    marks = {TAG_JOB: one.spec.entry_id, TAG_ATTEMPT: "0", TAG_SPEC: one.spec.body_hash}
    training_job = TrainingJob(
        name=one.name,
        request={"Tags": tag_list(marks), "EnableManagedSpotTraining": True},
        created=NOON,
        secondary="Interrupted",
        training_since=NOON,
        interruptions=4,
    )
    sagemaker = MemorySageMaker(clock=lambda: NOON, jobs={one.name: training_job})
    end_policy = EndPolicy(policies=policies, reader=reader, training=sagemaker, logs=MemoryLogs())
    observer = Observer(
        store=store,
        reader=reader,
        training=sagemaker,
        end_policy=end_policy,
        clock=lambda: NOON + steps.LEASE,
    )
    for state in (JobState.RUNNING, JobState.PREEMPTING):
        assert observer.hear(one.name) == "main"
        assert tables.jobs[one.name].state is state
    assert observer.hear(one.name) is None
