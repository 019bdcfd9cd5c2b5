"""Does a model of the training program fit into the GPUs that its job asks for?"""

from collections.abc import Iterator

from trainmaster.core.memory.accelerators import BY_TYPE, Accelerators
from trainmaster.core.memory.footprint import Cluster, cluster_of, estimate
from trainmaster.core.memory.memory_remedies import remedy
from trainmaster.core.memory.training_runs import Run, run_of
from trainmaster.core.policy.rules import Rules
from trainmaster.core.request.validation.sections import Section, section
from trainmaster.core.rules.forms import Form, forms_of
from trainmaster.core.rules.violation import Violation

_GIB = 2**30


def check_memory(body: Section, rules: Rules) -> Iterator[Violation]:
    """Only of hyperparameters that name a known model, and of GPUs whose memory is known."""
    mode = rules.must_fit
    run = run_of(section(body, "HyperParameters") or {}) if mode is not None else None
    if mode is None or run is None:
        return
    for form in forms_of(body):
        cluster = _cluster(form)
        if cluster is None or (found := estimate(run, cluster)).fits:
            continue
        yield Violation(
            rule="must_fit",
            field=form.asked[0].type_field,
            message=(
                f"needs {found.bytes_per_rank.total / _GIB:.1f} GiB on each of {found.world_size} GPUs,"
                f" {-found.headroom_bytes / _GIB:.1f} GiB more than {form.asked[0].instance_type} has"
            ),
            hint=_hint(run, cluster),
            mode=mode,
        )


def _cluster(form: Form) -> Cluster | None:
    known: list[tuple[Accelerators, int]] = []
    for one in form.asked:
        accelerators = BY_TYPE.get(one.instance_type)
        if accelerators is None or not accelerators.are_gpus or one.count < 1:
            return None
        known.append((accelerators, one.count))
    return cluster_of(known)


def _hint(run: Run, cluster: Cluster) -> str:
    found = remedy(run, cluster)
    return f"{found} would do" if found else "use instances with larger GPUs, or a smaller model"
