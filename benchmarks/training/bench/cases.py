"""Defines what a suite consists of, and decides what comes next, from records and seconds alone."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any


class State(StrEnum):
    OK = "ok"
    OUT_OF_MEMORY = "out-of-memory"
    COMPILE_ERROR = "compile-error"
    FAILED = "failed"
    """It said why."""
    CRASHED = "crashed"
    """It could not: a signal ended it, or the whole suite ended with it."""
    TIME_LIMIT = "time-limit"
    """Its own."""
    SKIPPED = "skipped"
    """It cannot be measured here."""
    NO_TIME = "no-time-left"
    """The suite's seconds were used up; ``--resume`` makes up for it."""
    RUNNING = "running"


UNSETTLED = frozenset({State.NO_TIME, State.RUNNING})
MOST_STARTS = 2
"""A case during which the suite itself was ended this many times is what ends it."""


class Kind(StrEnum):
    DEVICE = "device"
    STEPS = "steps"
    BATCH = "batch"
    CHECKPOINT = "checkpoint"
    DATA = "data"
    TRACE = "trace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    id: str
    kind: Kind
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of train.py and of ``benchmarks.training.bench``."""
    env: Mapping[str, str] = field(default_factory=dict)
    needs: float
    """Seconds that must be left for it to begin."""
    limit: float
    """Seconds after which it is given up; of each probe, where it is a search."""
    batch_of: str | None = None
    """The search whose batch it takes; where none was found, ``options`` has one."""
    memory_gib: float = 0.0
    """Host memory beyond what the program takes at the start, GiB; 0 means all."""
    batches: tuple[int, int] = (0, 0)
    """A search: the first batch tried, and the largest."""

    def task(self, batch: int | None = None) -> dict[str, Any]:
        """Return what the case's process gets."""
        size = {} if batch is None else {"batch-size": str(batch)}
        return {
            "id": self.id,
            "kind": self.kind,
            "options": {**self.options, **size},
            "env": dict(self.env),
            "memory_gib": self.memory_gib,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Record of a case, as the report has it."""

    id: str
    state: State
    seconds: float = 0.0
    reason: str = ""
    result: Mapping[str, Any] = field(default_factory=dict)
    starts: int = 1

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "seconds": round(self.seconds, 3)}

    @classmethod
    def of_json(cls, document: Mapping[str, Any]) -> "Record":
        return cls(**{**document, "state": State(document["state"])})


def unsettled(cases: Sequence[Case], records: Mapping[str, Record]) -> list[Case]:
    """Return the cases that have no outcome yet, in the suite's order."""
    return [case for case in cases if case.id not in records or records[case.id].state in UNSETTLED]


def begun(case: Case, before: Record | None) -> Record:
    """Return the record while a case runs; or that it is given up, as it took the whole suite with it."""
    starts = before.starts if before and before.state is State.RUNNING else 0
    result = before.result if before else {}
    if starts >= MOST_STARTS:
        why = f"the suite was ended {starts} times while it ran"
        return Record(id=case.id, state=State.CRASHED, reason=why, result=result, starts=starts)
    return Record(id=case.id, state=State.RUNNING, result=result, starts=starts + 1)


def out_of_time(case: Case, left: float, before: Record | None) -> Record | None:
    """Return the record of a case for which too little time is left; None if it may begin."""
    if left >= case.needs:
        return None
    why = f"needs {case.needs:.0f} s of {max(0.0, left):.0f} s that are left: continue with --resume"
    return Record(
        id=case.id, state=State.NO_TIME, reason=why, result=before.result if before else {}, starts=0
    )


def next_batch(tried: Mapping[int, State], *, first: int, most: int) -> int | None:
    """Return the batch to try next: doubled until one does not fit, then between; None if it is known."""
    fits = largest(tried) or 0
    too_large = min((size for size, state in tried.items() if state is not State.OK), default=None)
    if too_large is None:
        return None if fits >= most else min(most, fits * 2 or first)
    if fits == 0:
        return too_large // 2 or None
    middle = (fits + too_large) // 2
    return middle if middle - fits >= max(1, fits // 8) else None


def largest(tried: Mapping[int, State]) -> int | None:
    return max((size for size, state in tried.items() if state is State.OK), default=None)


def batch_for(case: Case, records: Mapping[str, Record]) -> int | None:
    """Return the batch of the search it refers to; None leaves it to the case's options."""
    search = records.get(case.batch_of or "")
    batch = search.result.get("batch") if search else None
    return None if batch is None else int(batch)


_ON_GPU = {"preset": "llama-1b", "sequence-length": "4096", "batch-size": "8", "lr": "3e-4"}
_ON_CPU = {"preset": "tiny", "sequence-length": "256", "batch-size": "4", "lr": "3e-4"}
_SHORT = {"warm-up": "1", "lap": "2", "laps": "3"}
_CHUNK = {"loss-chunk": "8192"}
_COMPILED = {"modes": "compiled"}
_EAGER = {"modes": "eager"}
_FLOAT8 = {"precision": "float8"}


def _gpu(case_id: str, kind: Kind, needs: float, limit: float, **options: str) -> Case:
    given = {name.replace("_", "-"): text for name, text in options.items()}
    return Case(id=case_id, kind=kind, needs=needs, limit=limit, options=_ON_GPU | given, batch_of="batch")


def _cpu(case_id: str, kind: Kind, *options: Mapping[str, str], threads: int = 1) -> Case:
    env = {"OMP_NUM_THREADS": str(threads)}
    merged = {name: text for group in options for name, text in group.items()}
    return Case(id=case_id, kind=kind, needs=20, limit=100, options=_ON_CPU | _SHORT | merged, env=env)


CPU_ROWS = ("fp32-one-thread", "fp32-all-cores", "bf16-all-cores", "bf16-compiled")
"""Rows that show what a CPU gains by its cores, by bf16 and by compiling; compared with the first."""


def _cpu_rows(threads: int) -> tuple[Case, ...]:
    fp32, bf16 = {"precision": "fp32"}, {"precision": "bf16"}
    kinds = ((_EAGER, fp32, 1), (_EAGER, fp32, threads), (_EAGER, bf16, threads), (_COMPILED, bf16, threads))
    return tuple(
        replace(_cpu(row, Kind.STEPS, mode, precision, threads=number), limit=200)
        for row, (mode, precision, number) in zip(CPU_ROWS, kinds, strict=True)
    )


_WIDE_LLAMA = str(Path(__file__).parent / "wide_llama")
MODELS = {
    "vit-tiny": {"preset": "vit-tiny", "lr": "3e-4"},
    "wide-llama": {"model-config": _WIDE_LLAMA, "sequence-length": "256", "lr": "3e-4"},
}
"""Models that the levers are tried on: a vision transformer of 192 columns, and a Llama of 1,024."""
GLIBC_KEEPS_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": "1073741824",
    "MALLOC_TRIM_THRESHOLD_": "1073741824",
    "MALLOC_TOP_PAD_": "67108864",
}
LEVERS: tuple[tuple[str, Mapping[str, str], Mapping[str, str]], ...] = (
    ("as-it-comes", {"precision": "fp32", "batch-size": "1", "modes": "eager"}, {"OMP_NUM_THREADS": "1"}),
    ("batch", {"batch-size": "8"}, {}),
    ("precision", {"precision": "auto"}, {}),
    ("compile", {"modes": "compiled"}, {}),
    ("allocator", {}, GLIBC_KEEPS_MEMORY),
    ("threads", {}, {}),
)
"""Levers in the order of the article, each on top of those before: its options and variables. The last
one has the threads of the launcher, one a core."""


def lever_rows(model: str) -> tuple[str, ...]:
    """Return the ids of a model's rows, in their order."""
    return tuple(f"{model}-{lever}" for lever, _, _ in LEVERS)


def _levers(threads: int) -> tuple[Case, ...]:
    cases = []
    for model, shape in MODELS.items():
        options, env = {**shape, **_SHORT}, dict[str, str]()
        for row, (lever, changed, variables) in zip(lever_rows(model), LEVERS, strict=True):
            options, env = {**options, **changed}, {**env, **variables}
            if lever == "threads":
                env = {**env, "OMP_NUM_THREADS": str(threads)}
            cases.append(Case(id=row, kind=Kind.STEPS, needs=30, limit=300, options=options, env=env))
    return tuple(cases)


def suite_of(name: str, *, host_threads: int) -> tuple[Case, ...]:
    """Return the cases by the worth of their figures, as the seconds may not suffice.

    ``host_threads`` is the number of threads that ``launch.py`` gives.
    """
    if name == "h200":
        search = replace(_gpu("batch", Kind.BATCH, 60, 60, modes="eager"), batches=(8, 64), batch_of=None)
        compiled = _gpu("compiled", Kind.STEPS, 70, 180, **_COMPILED)
        return (
            replace(_gpu("device", Kind.DEVICE, 20, 60), batch_of=None),
            search,
            compiled,
            _gpu("eager", Kind.STEPS, 40, 90, **_EAGER),
            _gpu("compiled-float8", Kind.STEPS, 70, 180, **_COMPILED, **_FLOAT8),
            _gpu("compiled-chunked-loss", Kind.STEPS, 70, 180, **_COMPILED, **_CHUNK),
            _gpu("checkpoint", Kind.CHECKPOINT, 60, 240),
            _gpu("data", Kind.DATA, 25, 60),
            _gpu("trace", Kind.TRACE, 40, 90, **_EAGER),
        )
    if name == "cpu-levers":
        return _levers(host_threads)
    rows = _cpu_rows(host_threads)
    if name == "cpu-precision":
        return rows
    search = replace(_cpu("batch", Kind.BATCH, _EAGER), batches=(8, 64), memory_gib=0.5, limit=40)
    return (
        _cpu("device", Kind.DEVICE),
        search,
        _cpu("eager", Kind.STEPS, _EAGER),
        _cpu("eager-chunked-loss", Kind.STEPS, _EAGER, {"loss-chunk": "512"}),
        _cpu("compiled", Kind.STEPS, _COMPILED),
        _cpu("compiled-float8", Kind.STEPS, _COMPILED, _FLOAT8),
        _cpu("checkpoint", Kind.CHECKPOINT),
        _cpu("data", Kind.DATA),
        _cpu("trace", Kind.TRACE, _EAGER),
        *rows,
    )


SUITES = ("h200", "cpu", "cpu-precision", "cpu-levers")
