"""A request that can be mapped, as documents: files for the pods, volumes, and last the job itself."""

import json
from typing import Any

from trainmaster_client.manifests.job_request import (
    GRACE_MARGIN_SECONDS,
    Document,
    Kind,
    Manifest,
    ManifestOptions,
    Request,
    accelerator,
    entrypoint,
    host_count,
    require_mappable,
    stop_seconds,
    tag_labels,
    widths_of,
)
from trainmaster_client.manifests.network import EFA_RESOURCE, efa_interfaces
from trainmaster_client.manifests.notes import notes
from trainmaster_client.manifests.volumes import START, Storage, config_map_name, sagemaker_files, storage

MOST_RESTARTS = 100
"""Restarts of an elastic PyTorchJob; each change of width is one."""
SNOOZE_SECONDS = 1800
"""Seconds after a restart without growth in HyperPod, as in the queue (``elastic.snooze``)."""
RESTART_PERIOD_SECONDS = 3600
INSTANCE_LABEL = "node.kubernetes.io/instance-type"
"""Label of a node's instance type: with ``ml.`` on HyperPod's nodes, without it on EC2's."""


def manifest(body: Any, options: ManifestOptions, *, start_program: str) -> Manifest:  # noqa: ANN401  a file's
    """Turn any JSON into a manifest. ``start_program`` is the text of ``pod_start.py``.

    Raises:
        InvalidArgumentError: The request cannot be mapped; the message names every mistake.
    """
    require_mappable(body, options)
    volumes = storage(body, options)
    job = {Kind.PYTORCHJOB: _pytorchjob, Kind.TRAINJOB: _trainjob, Kind.HYPERPOD: _hyperpod}[options.kind]
    files = _config_map(body, options, volumes, start_program)
    return Manifest(
        documents=(files, *volumes.documents, job(body, options, volumes)), notes=tuple(notes(body, options))
    )


def _config_map(body: Request, options: ManifestOptions, volumes: Storage, start_program: str) -> Document:
    files = {name: json.dumps(content, indent=1) + "\n" for name, content in sagemaker_files(body).items()}
    if volumes.fetched:
        places = {
            name: {"bucket": place.bucket, "prefix": place.key} for name, place in volumes.fetched.items()
        }
        files["channels.json"] = json.dumps(places, indent=1) + "\n"
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": config_map_name(body), "namespace": options.namespace},
        "data": {"start.py": start_program, **files},
    }


def _pytorchjob(body: Request, options: ManifestOptions, volumes: Storage) -> Document:
    replica = {"restartPolicy": "ExitCode", "template": {"spec": _pod(body, options, volumes)}}
    workers = host_count(body) - 1
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": _metadata(body, options),
        "spec": {
            "runPolicy": {
                "cleanPodPolicy": "None",
                **_deadline(body),
                **_retries(body, "backoffLimit"),
            },
            **_elastic_pytorch(body),
            "pytorchReplicaSpecs": {
                "Master": {"replicas": 1, **replica},
                **({"Worker": {"replicas": workers, **replica}} if workers else {}),
            },
        },
    }


def _hyperpod(body: Request, options: ManifestOptions, volumes: Storage) -> Document:
    return {
        "apiVersion": "sagemaker.amazonaws.com/v1",
        "kind": "HyperPodPyTorchJob",
        "metadata": _metadata(body, options),
        "spec": {
            "nprocPerNode": "1",  # the launcher, which starts a rank for each accelerator
            "replicaSpecs": [
                {
                    "name": "pods",
                    "replicas": host_count(body),
                    "template": {"spec": _pod(body, options, volumes)},
                }
            ],
            "runPolicy": {
                "cleanPodPolicy": "None",
                **_deadline(body),
                **_retries(body, "jobMaxRetryCount"),
                **_snooze(body),
            },
            **_elastic_hyperpod(body),
        },
    }


def _trainjob(body: Request, options: ManifestOptions, volumes: Storage) -> Document:
    """Build a TrainJob; it can change less of its runtime's pods than a pod has: see the notes."""
    container = _container(body, options, volumes, name="node")
    pod = _pod(body, options, volumes)
    patched = (
        "terminationGracePeriodSeconds",
        "nodeSelector",
        "tolerations",
        "serviceAccountName",
        "volumes",
    )
    spec = {name: pod[name] for name in patched if name in pod}
    spec["containers"] = [{"name": "node", "volumeMounts": container["volumeMounts"]}]
    node = {"name": "node", "template": {"spec": {"template": {"spec": spec}}}}
    trainer = {name: container[name] for name in ("image", "command", "args", "env") if name in container}
    resources = {"resourcesPerNode": container["resources"]} if "resources" in container else {}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": _metadata(body, options),
        "spec": {
            "runtimeRef": {"name": options.runtime},
            **_deadline(body),
            "trainer": {"numNodes": host_count(body), **trainer, **resources},
            "runtimePatches": [
                {
                    "manager": "trainmaster/manifest",
                    "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [node]}}},
                }
            ],
        },
    }


def _metadata(body: Request, options: ManifestOptions) -> Document:
    labels, others = tag_labels(body)
    kueue = {
        "kueue.x-k8s.io/queue-name": options.queue,
        "kueue.x-k8s.io/priority-class": options.queue and options.priority_class,
    }
    return {
        "name": body["TrainingJobName"],
        "namespace": options.namespace,
        "labels": {
            "app.kubernetes.io/managed-by": "trainmaster",
            **labels,
            **{name: text for name, text in kueue.items() if text},
        },
        **({"annotations": {"trainmaster/tags": json.dumps(others)}} if others else {}),
    }


def _deadline(body: Request) -> Document:
    seconds = body.get("StoppingCondition", {}).get("MaxRuntimeInSeconds")
    return {} if seconds is None else {"activeDeadlineSeconds": seconds}


def _retries(body: Request, field: str) -> Document:
    attempts = body.get("RetryStrategy", {}).get("MaximumRetryAttempts")
    return {} if attempts is None else {field: attempts}


def _elastic_pytorch(body: Request) -> Document:
    """Return the policy of an elastic PyTorchJob; it knows no steps between its least and its largest."""
    widths = widths_of(body)
    if widths is None:
        return {}
    policy = {"minReplicas": widths.least, "maxReplicas": widths.largest, "rdzvBackend": "c10d"}
    return {"elasticPolicy": {**policy, "maxRestarts": MOST_RESTARTS}}


def _elastic_hyperpod(body: Request) -> Document:
    widths = widths_of(body)
    if widths is None:
        return {}
    policy = {
        "minReplicas": widths.least,
        "maxReplicas": widths.largest,
        "replicaDiscreteValues": list(widths.counts),
        "gracefulShutdownTimeoutInSeconds": stop_seconds(body) + GRACE_MARGIN_SECONDS,
    }
    return {"elasticPolicy": policy}


def _snooze(body: Request) -> Document:
    if widths_of(body) is None:
        return {}
    seconds = {"evalPeriodSeconds": RESTART_PERIOD_SECONDS, "scaleUpSnoozeTimeInSeconds": SNOOZE_SECONDS}
    return {"restartPolicy": seconds}


def _pod(body: Request, options: ManifestOptions, volumes: Storage) -> Document:
    container = _container(body, options, volumes, name="pytorch")
    fetch = {"name": "fetch", "image": container["image"], "command": ["python3", START, "--fetch"]}
    wants = _accelerated(body)
    optional: Document = {
        "serviceAccountName": options.service_account,
        "priorityClassName": options.priority_class,
        "tolerations": [{"key": name, "operator": "Exists", "effect": "NoSchedule"} for name in wants],
        "initContainers": [fetch | {"volumeMounts": container["volumeMounts"]}] if volumes.fetched else None,
    }
    return {
        "terminationGracePeriodSeconds": stop_seconds(body) + GRACE_MARGIN_SECONDS,
        "nodeSelector": _nodes(body, options),
        **{name: value for name, value in optional.items() if value},
        "containers": [container],
        "volumes": list(volumes.volumes),
    }


def _nodes(body: Request, options: ManifestOptions) -> dict[str, str]:
    kind, name = options.kind, body["ResourceConfig"]["InstanceType"]
    if kind is Kind.HYPERPOD:
        return {INSTANCE_LABEL: name}
    is_spot = body.get("EnableManagedSpotTraining", False)
    spot = {"eks.amazonaws.com/capacityType": "SPOT"} if is_spot else {}
    return {INSTANCE_LABEL: name.removeprefix("ml."), **spot}


def _container(body: Request, options: ManifestOptions, volumes: Storage, *, name: str) -> Document:
    algorithm, limits = body["AlgorithmSpecification"], _limits(body)
    arguments = algorithm.get("ContainerArguments")
    return {
        "name": name,
        "image": algorithm["TrainingImage"],
        "command": _command(body, options),
        **({"args": list(arguments)} if arguments else {}),
        "env": _variables(body),
        **({"resources": {"requests": limits, "limits": limits}} if limits else {}),
        "volumeMounts": list(volumes.mounts),
        "lifecycle": {"preStop": {"exec": {"command": ["python3", START, "--stop"]}}},
    }


def _command(body: Request, options: ManifestOptions) -> list[str]:
    """Return the command in exec form: a shell in between would keep SIGTERM to itself."""
    program, widths = [START, *(entrypoint(body) or ())], widths_of(body)
    if options.kind is not Kind.HYPERPOD:
        return ["python3", *program]
    return [
        "hyperpodrun",
        f"--nnodes={f'{widths.least}:{widths.largest}' if widths else host_count(body)}",
        "--nproc-per-node=1",
        "--shutdown-signal=SIGTERM",  # its own default kills at once
        f"--shutdown-timeout={stop_seconds(body)}",
        *program,
    ]


def _variables(body: Request) -> list[dict[str, str]]:
    given = {"TRAINING_JOB_NAME": body["TrainingJobName"], **body.get("Environment", {})}
    return [{"name": name, "value": text} for name, text in given.items()]


def _limits(body: Request) -> dict[str, int]:
    """Return the resources of a pod; EFA only between hosts, as a device belongs to one pod."""
    resources = body["ResourceConfig"]
    efa = efa_interfaces(resources["InstanceType"]) if host_count(body) > 1 else None
    return _accelerated(body) | ({EFA_RESOURCE: efa} if efa else {})


def _accelerated(body: Request) -> dict[str, int]:
    resource = accelerator(body["ResourceConfig"]["InstanceType"])
    return {} if resource is None else dict([resource])
