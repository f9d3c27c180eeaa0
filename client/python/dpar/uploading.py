"""How a graph gets to a server: opened with its public sizes, sent, checked, sealed."""
from __future__ import annotations

import dataclasses
import hashlib
import os
import pathlib
import tempfile
import time
import warnings
from typing import Any, Iterator, Sequence

import grpc

from dpar import _native, errors
from dpar.connect import data_directory
from dpar.graph import Graph, GraphLike
from dpar.progress import Progress
from dpar.rpc import Connection, new_request_id
from dpar.tables import Schema
from dpar.v1 import dataset_pb2

_MOST_FAILURES = 8
_MOST_CHUNK_BYTES = 1 << 20
_FINISH_SECONDS = 7200.0
_CHECK_SECONDS = 0.25


@dataclasses.dataclass(frozen=True)
class Uploaded:
    """A sealed dataset, what was done to the graph, and the key of its digest, which is sent this once.

    `budget_shared`: its population was there before, and its budget goes on. Otherwise, where no population was named,
    `other_populations` has the ids of those that there were: if these are people of one of them, they belong there.
    """

    dataset: dataset_pb2.Dataset
    report: dataset_pb2.ImportReport
    digest_key: str = dataclasses.field(repr=False)
    budget_shared: bool
    other_populations: tuple[str, ...]

    @property
    def name(self) -> str:
        """tenants/{tenant}/datasets/{dataset}"""
        return self.dataset.name

    @property
    def population(self) -> str:
        """tenants/{tenant}/populations/{population} when it was sealed; empty for public data."""
        return self.dataset.population


def prepare(
    graph: GraphLike,
    classes: int | Sequence[str] | None,
    labels: Any,
    schema: Schema | str | os.PathLike[str] | None,
    accept_observed: bool,
    public: bool,
) -> tuple[Graph, str]:
    """The graph that goes up, and its schema. The class count is stated, never counted from labels."""
    _refuse_what_is_made_already(graph, classes, labels, schema)
    if schema is not None:
        text = (schema if isinstance(schema, Schema) else Schema.read(schema)).answered(
            accept_observed=accept_observed, public=public
        )
        return Graph.of(graph, schema=Schema(text)), text
    if isinstance(graph, (str, os.PathLike)):
        if not pathlib.Path(graph).is_file():
            raise errors.InvalidField(
                f"cannot read '{graph}': there is no such file", code="INVALID_ARGUMENT", metadata={"field": "graph"}
            )
        count = classes if classes is None or isinstance(classes, int) else len(classes)
        native = _native.Graph.read(os.fspath(graph), count, True)
        return Graph(native), native.schema
    made = Graph.of(graph, classes=classes, labels=labels)
    if made.native.classes_counted:
        raise errors.InvalidField(
            "classes= is needed where the graph is made, their number or their names: it is "
            "public, and so never counted from labels",
            code="INVALID_ARGUMENT",
            metadata={"field": "classes"},
        )
    return made, made.native.schema


def _refuse_what_is_made_already(graph: Any, classes: Any, labels: Any, schema: Any) -> None:
    """A file, a table or a Graph has its labels; others would be dropped, and those that it has would go up."""
    made = isinstance(graph, Graph)
    if labels is not None and (made or schema is not None or isinstance(graph, (str, os.PathLike))):
        raise errors.InvalidField(
            "labels= cannot take the place of those that a file, a table or a dpar.Graph has: make the graph of "
            "arrays with the labels that may be sent",
            code="INVALID_ARGUMENT",
            metadata={"field": "labels"},
        )
    if classes is not None and (made or schema is not None):
        raise errors.InvalidField(
            "classes= is stated where the graph is made (dpar.Graph.read(path, classes)) or in the schema, not here",
            code="INVALID_ARGUMENT",
            metadata={"field": "classes"},
        )


class Upload:
    """One upload. Its file is a copy without ids and names, in a directory that only this user can read."""

    def __init__(self, connection: Connection, progress: Progress) -> None:
        self._connection = connection
        self._progress = progress

    def run(
        self, graph: Graph, request: dataset_pb2.OpenUploadRequest, chunk_bytes: int, others: tuple[str, ...]
    ) -> Uploaded:
        """Opens, sends and finishes. `others` are the populations that it could have joined."""
        with tempfile.TemporaryDirectory(prefix="dpar-upload.") as directory:
            path = pathlib.Path(directory) / "graph.npz"
            graph.native.write(str(path), False)
            request.size_bytes = path.stat().st_size
            upload = self._connection.call("DatasetService", "OpenUpload", request)
            self._send(upload, path, max(1, min(chunk_bytes, _MOST_CHUNK_BYTES)))
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            answer = self._finish(upload.name, digest)
        _keep_digest_key(answer.dataset.content_digest, answer.digest_key)
        # What was read is what its owner asks about; the server saw a canonical copy.
        report = dataset_pb2.ImportReport(**graph.native.report())
        others = () if answer.budget_shared else others
        return Uploaded(answer.dataset, report, answer.digest_key, answer.budget_shared, others)

    def _send(self, upload: dataset_pb2.Upload, path: pathlib.Path, chunk_bytes: int) -> None:
        """After a transport failure it goes on at the committed offset; eight without a byte in between end it."""
        committed, failures, size = upload.committed_offset, 0, upload.size_bytes
        while committed < size:
            call = self._connection.start(
                "DatasetService", "WriteUpload", self._messages(upload.name, path, committed, chunk_bytes)
            )
            try:
                reached = call.result().committed_offset
            except grpc.RpcError as broken:
                failure = self._connection.failure(broken)
                # After a cut stream the server may still commit what it received.
                if not failure.is_transport and not isinstance(failure.error, errors.UploadOffsetMismatch):
                    raise failure.error from None
                failures += 1
                if failures >= _MOST_FAILURES:
                    raise failure.error from None
                self._connection.pause(failures - 1, failure.asked)
                request = self._connection.message("DatasetService", "GetUpload", name=upload.name)
                reached = self._connection.call("DatasetService", "GetUpload", request).committed_offset
            except KeyboardInterrupt:
                call.cancel()
                raise
            failures = 0 if reached > committed else failures
            committed = reached

    def _messages(self, name: str, path: pathlib.Path, offset: int, chunk_bytes: int) -> Iterator[Any]:
        size = path.stat().st_size
        with path.open("rb") as file:
            file.seek(offset)
            first: dict[str, Any] = {"name": name, "offset": offset}
            while chunk := file.read(chunk_bytes):
                yield dataset_pb2.WriteUploadRequest(data=chunk, **first)
                first = {}
                self._progress.update("uploading", file.tell(), size)

    def _finish(self, name: str, digest: str) -> Any:
        request = self._connection.message(
            "DatasetService", "FinishUpload", name=name, sha256=digest, request_id=new_request_id()
        )
        asked = self._connection.message("DatasetService", "GetUpload", name=name)

        def attempt() -> Any:
            call = self._connection.start("DatasetService", "FinishUpload", request, _FINISH_SECONDS)
            try:
                while not call.done():
                    time.sleep(_CHECK_SECONDS if call.running() else 0)
                    self._show_check(asked)
                return call.result()
            except KeyboardInterrupt:
                call.cancel()
                raise

        return self._connection.persist(attempt)

    def _show_check(self, request: Any) -> None:
        try:
            upload = self._connection.start("DatasetService", "GetUpload", request, 10.0).result()
        except grpc.RpcError:
            return  # the answer to FinishUpload counts
        if upload.HasField("check"):
            self._progress.update(f"checking: {upload.check.stage}", round(upload.check.fraction, 3), 1)


def _keep_digest_key(content_digest: str, key: str) -> None:
    """Where `dpar predict` looks for it too. The upload stands even if the key cannot be kept."""
    directory = data_directory()
    try:
        if directory is None:
            raise OSError("neither HOME nor XDG_DATA_HOME is set")
        bytes.fromhex(content_digest)  # it becomes a file's name, and it came over the wire
        place = directory / "digest-keys"
        for made in reversed([place, *place.parents]):
            if not made.exists():
                made.mkdir(mode=0o700, exist_ok=True)
        temporary = place / f".{new_request_id()}"
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(key + "\n")
        os.replace(temporary, place / content_digest)
    except (OSError, ValueError) as error:
        warnings.warn(
            f"the digest key could not be kept on this machine: {error}. Keep it: it is sent this once", stacklevel=4
        )
