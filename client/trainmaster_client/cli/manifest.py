"""``trainmaster manifest``: a CreateTrainingJob request as a job for Kubernetes. Asks nobody."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from trainmaster_client.cli.command_options import with_options
from trainmaster_client.cli.screen import print_json, say
from trainmaster_client.cli.submit import RequestFile, parse_request
from trainmaster_client.cli.written_files import write_text
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.manifests import Channels, Kind, Manifest, ManifestOptions, manifest, pod_start
from trainmaster_client.manifests.crd_schema import crd_mistakes, read_crd

OutputFile = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write it there, not to standard output."),
]
CrdFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Hold the job against this CustomResourceDefinition first."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """The kind, and what the request does not say of the cluster."""

    kind: Annotated[Kind, typer.Option("--kind", help="PyTorchJob, TrainJob, or HyperPodPyTorchJob.")]
    channels: Annotated[Channels, typer.Option(help="How channels of S3 come into the pods.")] = (
        Channels.S3_CSI
    )
    claim: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A volume claim that all pods may write: FSx for Lustre, EFS."),
    ] = None
    service_account: Annotated[
        str | None, typer.Option(metavar="NAME", help="Whose AWS rights the pods have.")
    ] = None
    priority_class: Annotated[str | None, typer.Option(metavar="NAME", help="Of the pods.")] = None
    queue: Annotated[str | None, typer.Option(metavar="NAME", help="A local queue of Kueue.")] = None
    runtime: Annotated[
        str, typer.Option(metavar="NAME", help="The ClusterTrainingRuntime of a TrainJob.")
    ] = "torch-distributed"
    namespace: Annotated[str, typer.Option(metavar="NAME", help="Where the job runs.")] = "default"


@with_options
def print_manifest(
    file: RequestFile,
    *,
    options: ClusterOptions,
    output: OutputFile = None,
    crd: CrdFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print documents and notes as JSON.")] = False,
) -> None:
    """Print a training job as a manifest for Kubernetes; what has no counterpart is said."""
    request = parse_request(file.read(), source=file.name)
    written = manifest(request, ManifestOptions(**asdict(options)), start_program=_start_program())
    if crd is not None:
        _require_valid(written, crd)
    if as_json:
        print_json({"documents": written.documents, "notes": written.notes})
        return
    if output is None:
        print(as_yaml(written), end="")
    else:
        write_text(output, as_yaml(written), option="--output")
    say("\n".join(f"Note: {note}" for note in written.notes))


def _start_program() -> str:
    return Path(pod_start.__file__).read_text(encoding="utf-8")


def _require_valid(written: Manifest, crd: Path) -> None:
    mistakes = crd_mistakes(written.job, read_crd(crd))
    if mistakes:
        raise InvalidArgumentError(
            "\n".join([f"The manifest is not valid by {crd}:", *(f"  {mistake}" for mistake in mistakes)]),
            hint="\nThe cluster's version may be another one. Nothing was written.",
        )


class _Blocks(yaml.SafeDumper):
    """Programs and files as lines that a person can read."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ANN401, ARG002  yaml's
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Blocks.add_representer(str, _text)


def as_yaml(written: Manifest) -> str:
    """Write the documents for ``kubectl apply -f``, with the notes as comments before them."""
    comments = "".join(f"# {note}\n" for note in written.notes)
    return comments + yaml.dump_all(
        written.documents, Dumper=_Blocks, sort_keys=False, explicit_start=True, width=110
    )
