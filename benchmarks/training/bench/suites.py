"""The suites: which cases each has, by the worth of their figures."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.training.bench.cases import Case, Kind

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


_MLP: Mapping[str, Mapping[str, str]] = {
    "mlp-fp32": {"precision": "fp32"},
    "mlp-bf16": {"precision": "bf16"},
    "mlp-recompute": {"precision": "bf16", "activation-checkpointing": "full"},
    "mlp-prefetch": {"precision": "bf16", "prefetch-blocks": "1"},
    "mlp-bf16-pure": {"precision": "bf16_pure"},
    "mlp-offload": {"precision": "bf16", "cpu-offload": "true"},
}
"""Options that the FSDP articles switch on one by one. One GPU gathers nothing, so prefetching gains nothing
there, and should cost nothing."""
_LARGE_MLP = {"layers": "8", "width": "20480", "batch-size": "1024", "lr": "1e-4"}
"""8 matrices of 20,480 x 20,480 are 3.36 billion weights: 54 GB in fp32, with gradients and moments."""
_SMALL_MLP = {"layers": "3", "width": "128", "batch-size": "32", "lr": "1e-3", **_SHORT}
MLP_ROWS = tuple(_MLP)


def _mlp_rows(size: Mapping[str, str], *, needs: float, limit: float) -> tuple[Case, ...]:
    """Return the cases of the row of matrices; on a CPU they show that the command works, and no figure."""
    common = {**size, **_EAGER}
    return tuple(
        Case(id=row, kind=Kind.MLP, needs=needs, limit=limit, options={**common, **changed})
        for row, changed in _MLP.items()
    )


VIT_PRECISIONS = ("bf16", "float8")


def _vit_cases(
    preset: str, precisions: Sequence[str], *, sizes: tuple[int, int], modes: str
) -> tuple[Case, ...]:
    """Return for each precision the largest batch and the steps with it, as the FP8 articles compare them."""
    cases = []
    for precision in precisions:
        options = {"preset": preset, "lr": "3e-4", "precision": precision, "modes": modes}
        options["batch-size"] = str(sizes[0])
        if modes == "eager":
            options |= _SHORT
        name = precision.partition("_")[0]
        search = Case(
            id=f"{name}-batch", kind=Kind.BATCH, needs=60, limit=120, options=options, batches=sizes
        )
        steps = Case(id=name, kind=Kind.STEPS, needs=70, limit=240, options=options, batch_of=search.id)
        cases += [replace(search, memory_gib=0.5 if preset == "vit-nano" else 0.0), steps]
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
            *_mlp_rows(_LARGE_MLP, needs=20, limit=90),
        )
    if name == "vit-huge":
        return _vit_cases("vit-huge", VIT_PRECISIONS, sizes=(32, 512), modes="compiled")
    if name == "cpu-vit":
        return _vit_cases("vit-nano", ("bf16", "float8_emulated"), sizes=(16, 64), modes="eager")
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
        *_mlp_rows(_SMALL_MLP, needs=15, limit=60),
    )


SUITES = ("h200", "vit-huge", "cpu", "cpu-vit", "cpu-precision", "cpu-levers")
