"""The REST API: one room for each resource, one mapping of errors, one router."""

from trainmaster.api.router import Handler, build_api
from trainmaster.api.visit import ApiReader, Outside

__all__ = ["ApiReader", "Handler", "Outside", "build_api"]
