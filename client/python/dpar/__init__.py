"""DPAR: train node classifiers on private graphs, with a certificate of what that cost.

    import dpar
    client = dpar.Client()                       # finds server, CA and token as the command `dpar` does
    job = client.train(client.upload("graph.npz"), epsilon=1)
    job.watch()
    model = job.download("model")
    assert model.certificate.verify(key="operator.pub")
    print(model.predict("other.npz").names)

`dpar.privacy` is an accountant of its own; `dpar.errors` has one exception for each reason of the API.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpar import errors, privacy
from dpar._native import version as __version__
from dpar.certificate import Certificate, Check, Verification
from dpar.errors import Error
from dpar.graph import Graph, GraphLike
from dpar.model import Model, Predictions, Shift
from dpar.tables import Schema

if TYPE_CHECKING:
    from dpar.client import Client
    from dpar.job import Job, Price
    from dpar.uploading import Uploaded

__all__ = [
    "Certificate",
    "Check",
    "Client",
    "Error",
    "Graph",
    "GraphLike",
    "Job",
    "Model",
    "Predictions",
    "Price",
    "Schema",
    "Shift",
    "Uploaded",
    "Verification",
    "__version__",
    "errors",
    "privacy",
]

_OF_CLIENT = {"Client": "client", "Job": "job", "Price": "job", "Uploaded": "uploading"}


def __getattr__(name: str) -> Any:
    # gRPC takes a while to load, and whoever only predicts, verifies or accounts does not need it.
    if name in _OF_CLIENT:
        import importlib

        return getattr(importlib.import_module(f"dpar.{_OF_CLIENT[name]}"), name)
    raise AttributeError(f"module 'dpar' has no attribute {name!r}")
