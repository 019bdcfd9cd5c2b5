"""The four jobs: containers that wait for orders, so that the order of the scene does not hang on timing."""

from local.demo_governance.jobs import ONE_GPU, DemoJob

CAPACITY = 2
POLICY = {
    "version": 1,
    "pools": [{"name": "gpu", "capacity": {ONE_GPU: CAPACITY}}],
    "idle": {"gpu_below_percent": 1, "for": "15m", "period": "5m", "then": "stop", "warn_first": "10m"},
}


def _job(name: str, priority: int) -> DemoJob:
    return DemoJob(name=name, tags={"priority": str(priority)}, max_runtime_seconds=3600)


JOB1, JOB2, JOB3, JOB4 = _job("job1", 1), _job("job2", 2), _job("job3", 1), _job("job4", 3)
JOBS = (JOB1, JOB2, JOB3, JOB4)
