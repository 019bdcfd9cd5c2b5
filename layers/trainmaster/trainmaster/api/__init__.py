"""The REST API: a module for each resource, one mapping of errors, one router."""

from trainmaster.api.request_context import ApiReader, Outside
from trainmaster.api.router import Handler, build_api

__all__ = ["ApiReader", "Handler", "Outside", "build_api"]
