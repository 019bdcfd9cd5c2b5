"""The shards of a checkpoint in S3: s3torchconnector's writer and reader for torch.distributed.checkpoint.

Added to them: errors that say what was asked for, and a copy on this host's disk.
"""

import os
import pickle
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from io import IOBase
from typing import Any, Protocol

from s3torchconnector import S3ClientConfig, S3ReaderConstructor
from s3torchconnector._s3client import S3Client
from s3torchconnector.dcp import S3StorageReader, S3StorageWriter
from s3torchconnector.dcp.s3_file_system import S3FileSystem, StorageMetadata
from s3torchconnectorclient import S3Exception
from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.planner import SavePlan, SavePlanner
from torch.futures import Future

from training.checkpoint.host_copy import HostCopies, HostCopy
from training.checkpoint.s3_errors import Place, S3RequestError

_PART_BYTES = 32 * 2**20
"""An upload has 10,000 parts at most (Amazon S3 user guide), so a rank's file may have 312 GiB."""
