"""Jobs of a trace with sensible defaults; a test sets only what it is about."""

from trainmaster_client.simulate.histories.trace_draws import Klass

from benchmarks.replay.jobs import TraceJob


def job(job_id: str, *, submit_s: int = 0, duration_s: int = 1000, **fields: object) -> TraceJob:
    values: dict[str, object] = {
        "team": "vision",
        "pool": "g1",
        "instances": 1,
        "klass": Klass.NORMAL,
        "checkpoint_every_s": None,
    }
    known = values | fields
    return TraceJob(job_id=job_id, submit_s=submit_s, duration_s=duration_s, **known)  # type: ignore[arg-type]
