"""Training jobs: their price, their progress, their model."""
from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import pathlib
import time
from typing import Any, Iterator

import grpc

from dpar import errors, names
from dpar.certificate import Certificate
from dpar.model import Model
from dpar.progress import Progress
from dpar.rpc import Connection, new_request_id
from dpar.v1 import training_pb2

_PATIENCE_SECONDS = 120.0
_MOST_FAILURES = 8
_FILES = {
    "model.npz": training_pb2.DownloadModelRequest.WEIGHTS,
    "model.safetensors": training_pb2.DownloadModelRequest.SAFETENSORS,
    "model.onnx": training_pb2.DownloadModelRequest.ONNX,
    "model.pt": training_pb2.DownloadModelRequest.TORCHSCRIPT,
}


@dataclasses.dataclass(frozen=True)
class Price:
    """What a job costs. `left_units` may be below 0 for a job that is admitted alone, by its own epsilon."""

    epsilon: float
    delta: float
    units: int
    left_units: int
    stages: dict[str, int]


class Job:
    """A job, or with `validate_only` a plan that spends nothing. The last message about it is `message`."""

    def __init__(self, connection: Connection, message: training_pb2.Job, progress: bool = True) -> None:
        self._connection = connection
        self._progress = progress
        self.message = message

    @property
    def name(self) -> str:
        """tenants/{tenant}/jobs/{job}; empty for a plan."""
        return self.message.name

    @property
    def id(self) -> str:
        """The last part of the name."""
        return names.id_of(self.name)

    @property
    def state(self) -> str:
        """QUEUED, RUNNING, then SUCCEEDED, FAILED or CANCELLED, when last asked; `refresh` asks."""
        return str(training_pb2.Job.State.Name(self.message.state))

    @property
    def failure(self) -> str:
        """Why it failed, or that it was posted although it was cancelled."""
        return self.message.failure

    @property
    def plan(self) -> training_pb2.Plan:
        """Everything that is executed, fixed before any data is read."""
        return self.message.plan

    @property
    def price(self) -> Price:
        """What it costs."""
        plan = self.plan
        return Price(
            plan.epsilon,
            plan.delta,
            plan.price_units,
            plan.left_units,
            {stage.stage: stage.units for stage in self.message.stages},
        )

    @property
    def evaluation(self) -> training_pb2.Evaluation | None:
        """The charged accuracy, where one was asked for and the job succeeded."""
        return self.message.evaluation if self.message.HasField("evaluation") else None

    def refresh(self) -> Job:
        """Asks the server."""
        self.message = self._connection.call("TrainingService", "GetJob", self._request("GetJob"))
        return self

    def cancel(self) -> Job:
        """Stops it. Its price is given back, for jobs that ran three times for each budget."""
        request = self._request("CancelJob")
        request.request_id = new_request_id()
        self.message = self._connection.call("TrainingService", "CancelJob", request)
        return self

    def events(self) -> Iterator[training_pb2.WatchJobResponse]:
        """Every message about it until it has ended. Goes on where it was after a broken connection."""
        last, alive, tries = 0, time.monotonic(), 0
        while True:
            request = self._request("WatchJob")
            request.after_sequence = last
            stream = self._connection.start("TrainingService", "WatchJob", request)
            error = errors.make_error("UNAVAILABLE", "", "the server ended the stream", {})
            asked = None
            try:
                for event in stream:
                    alive, tries = time.monotonic(), 0
                    if event.sequence > last:
                        last = event.sequence
                        yield event
                    if event.terminal:
                        return
            except grpc.RpcError as broken:
                failure = self._connection.failure(broken)
                if not failure.is_transport:
                    raise failure.error from None
                error, asked = failure.error, failure.asked
            finally:
                stream.cancel()
            if time.monotonic() > alive + _PATIENCE_SECONDS:
                raise errors.make_error("UNAVAILABLE", "", error.message, {})
            self._connection.pause(tries, asked)
            tries += 1

    def watch(self, progress: bool | None = None) -> str:
        """Follows it to its end, with a bar or lines of progress, and returns the state that it ended in.

        Progress is shown as the client was told unless it is said here.

        Ctrl-C stops the watching only: the job goes on, and `watch()` comes back to it.
        """
        try:
            with Progress(self._progress if progress is None else progress) as shown:
                for event in self.events():
                    note = f"epsilon {event.epsilon_so_far:.3f}" if event.epsilon_so_far > 0 else ""
                    shown.update(event.stage, event.completed, event.total, note)
        except KeyboardInterrupt:
            raise errors.Interrupted(
                f"stopped watching; {self.id} goes on. job.watch() comes back to it, job.cancel() " "stops it"
            ) from None
        return self.refresh().state

    def download(self, directory: str | os.PathLike[str] | None = None) -> Model:
        """Fetches the model's files, its certificate and the key that signed it; the model.

        The directory is named after the job unless it is given. Files arrive whole or not at all.
        """
        envelope = self._connection.call("TrainingService", "GetCertificate", self._request("GetCertificate")).envelope
        key_id = json.loads(envelope)["signatures"][0]["keyid"]
        subjects = [subject["name"] for subject in Certificate(envelope).unverified_statement["subject"]]
        keys = self._connection.call(
            "ServerService", "ListSigningKeys", self._connection.message("ServerService", "ListSigningKeys")
        ).keys
        key = next((key.public_key_pem for key in keys if key.key_id == key_id), None)
        if key is None:
            raise errors.Error("the server does not list the key that signed this certificate", code="NOT_FOUND")
        place = pathlib.Path(self.id if directory is None else directory)
        place.mkdir(parents=True, exist_ok=True)
        try:
            for file, artifact in _FILES.items():
                if file in subjects:  # a model of 2 GiB or more has no ONNX
                    self._fetch(artifact, place / file)
        except KeyboardInterrupt:
            raise errors.Interrupted("the download was stopped; job.download(...) fetches it again") from None
        _write(place / "signing.pub", key.encode())
        _write(place / "certificate.json", envelope)
        return Model.read(place)

    def _request(self, method: str) -> Any:
        if not self.name:
            raise errors.Error("this is a plan, and not a job: client.train(...) makes one", code="FAILED_PRECONDITION")
        return self._connection.message("TrainingService", method, name=self.name)

    def _fetch(self, artifact: int, path: pathlib.Path) -> None:
        """Goes on where it was after a broken connection; the digest that the server announced must be met."""
        content, size, digest, failures = bytearray(), -1, "", 0
        while len(content) < size or size < 0:
            before = len(content)
            request = self._request("DownloadModel")
            request.artifact, request.offset = artifact, before
            stream = self._connection.start("TrainingService", "DownloadModel", request)
            try:
                for part in stream:
                    if part.sha256:
                        size, digest = part.size_bytes, part.sha256
                    content += part.data
            except grpc.RpcError as broken:
                failure = self._connection.failure(broken)
                failures = 1 if len(content) > before else failures + 1
                if not failure.is_transport or failures >= _MOST_FAILURES:
                    raise failure.error from None
                self._connection.pause(failures - 1, failure.asked)
            else:
                break
            finally:
                stream.cancel()
        if hashlib.sha256(content).hexdigest() != digest:
            raise errors.Error(
                f"'{path}' did not arrive intact: it is not what the server announced. Nothing was kept",
                code="DATA_LOSS",
            )
        _write(path, bytes(content))

    def __repr__(self) -> str:
        return f"<dpar.Job {self.name or '(a plan)'}: {self.state}>"


def _write(path: pathlib.Path, content: bytes) -> None:
    """Under its name only once it is whole."""
    temporary = path.with_name(f".{path.name}.{new_request_id()}")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
