"""The same training job as a Kubernetes manifest: a PyTorchJob, a TrainJob or a HyperPodPyTorchJob."""

from trainmaster_client.manifests.documents import manifest
from trainmaster_client.manifests.job_request import Channels, Document, Kind, Manifest, ManifestOptions

__all__ = ["Channels", "Document", "Kind", "Manifest", "ManifestOptions", "manifest"]
