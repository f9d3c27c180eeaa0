"""A DPAR client in another language: uploads a graph, trains, watches, downloads and predicts. Nothing but the protos.

    protoc -I proto --python_out=stubs --grpc_python_out=stubs --plugin=protoc-gen-grpc_python=$(which grpc_python_plugin) \
        proto/dpar/v1/*.proto proto/google/rpc/*.proto
    DPAR_SERVER=127.0.0.1:7443 DPAR_CA=ca.pem DPAR_TOKEN=dpar_... PYTHONPATH=stubs \
        /usr/bin/python3 tests/end_to_end/python_client.py TENANT GRAPH.npz EPSILON OUTPUT_DIRECTORY
Debian: protobuf-compiler protobuf-compiler-grpc python3-grpcio python3-protobuf python3-numpy python3-torch.
"""
import hashlib
import os
import pathlib
import sys
import time
import uuid

import grpc
import numpy
import torch

from dpar.v1 import dataset_pb2, dataset_pb2_grpc, training_pb2, training_pb2_grpc
from google.rpc import error_details_pb2, status_pb2

ATTEMPTS = 8
CHUNK_BYTES = 256 << 10  # Limits.max_chunk_bytes is at least that unless an operator lowers it


class Refused(Exception):
    """A call that is not worth repeating: the reason is one of dpar/v1/errors.proto, the metadata what it lists."""
    def __init__(self, error, info):
        super().__init__(f"{error.code().name} / {info.reason or 'no reason'}: {error.details()}")
        self.reason, self.metadata = info.reason, dict(info.metadata)


def details(error):
    """The ErrorInfo and the RetryInfo that came with an error; empty ones where there are none."""
    info, retry = error_details_pb2.ErrorInfo(), error_details_pb2.RetryInfo()
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            for detail in status_pb2.Status.FromString(value).details:
                detail.Unpack(info) or detail.Unpack(retry)
    return info, retry


def persist(attempt):
    """Calls attempt() until it succeeds. Only UNAVAILABLE is worth another try, after RetryInfo's time at least. Requests
    carry a request_id, so one that was carried out although its answer was lost is not carried out twice."""
    for tries in range(1, ATTEMPTS + 1):
        try:
            return attempt()
        except grpc.RpcError as error:
            info, retry = details(error)
            if error.code() != grpc.StatusCode.UNAVAILABLE or tries == ATTEMPTS:
                raise Refused(error, info) from error
            time.sleep(max(retry.retry_delay.ToTimedelta().total_seconds(), 0.1 * 2**tries))


class Client:
    def __init__(self, server, ca, token):
        channel = grpc.secure_channel(server, grpc.ssl_channel_credentials(pathlib.Path(ca).read_bytes()))
        self.datasets = dataset_pb2_grpc.DatasetServiceStub(channel)
        self.training = training_pb2_grpc.TrainingServiceStub(channel)
        self.metadata = (("authorization", f"Bearer {token}"),)

    def call(self, method, request):
        return persist(lambda: method(request, metadata=self.metadata))

    def upload(self, tenant, path):
        """The sealed dataset's name. Bytes are committed as they arrive: after a break, GetUpload says where to go on."""
        data, graph = pathlib.Path(path).read_bytes(), numpy.load(path, allow_pickle=False)
        nodes, features = (int(size) for size in graph["attr_shape"])
        upload = self.call(self.datasets.OpenUpload, dataset_pb2.OpenUploadRequest(
            parent=tenant, request_id=str(uuid.uuid4()), size_bytes=len(data), node_count=nodes,
            feature_count=features, class_count=int(graph["num_classes"])))

        def chunks(offset):
            for start in range(offset, len(data), CHUNK_BYTES):
                first = {"name": upload.name, "offset": offset} if start == offset else {}
                yield dataset_pb2.WriteUploadRequest(data=data[start:start + CHUNK_BYTES], **first)

        def send():
            held = self.datasets.GetUpload(dataset_pb2.GetUploadRequest(name=upload.name), metadata=self.metadata)
            if held.committed_offset < len(data):
                self.datasets.WriteUpload(chunks(held.committed_offset), metadata=self.metadata)

        persist(send)
        finished = self.call(self.datasets.FinishUpload, dataset_pb2.FinishUploadRequest(
            name=upload.name, sha256=hashlib.sha256(data).hexdigest(), request_id=str(uuid.uuid4())))
        return finished.dataset.name

    def train(self, tenant, dataset, epsilon):
        spec = training_pb2.TrainingSpec(dataset=dataset, epsilon=epsilon)
        request = training_pb2.CreateJobRequest(parent=tenant, spec=spec, request_id=str(uuid.uuid4()))
        return self.call(self.training.CreateJob, request).name

    def watch(self, job):
        """Prints progress until the job has ended; the state it ended in."""
        seen = training_pb2.WatchJobResponse()

        def follow():
            nonlocal seen
            request = training_pb2.WatchJobRequest(name=job, after_sequence=seen.sequence)
            for seen in self.training.WatchJob(request, metadata=self.metadata):
                print(f"{seen.stage} {seen.completed}/{seen.total} epsilon so far {seen.epsilon_so_far:.4g}")

        while not seen.terminal:
            persist(follow)
        return training_pb2.Job.State.Name(seen.state)

    def download(self, job, artifact, path):
        """One of the model's files, checked against its digest; after a break it goes on where it was."""
        data, digest = bytearray(), None

        def receive():
            nonlocal digest
            request = training_pb2.DownloadModelRequest(name=job, artifact=artifact, offset=len(data))
            for message in self.training.DownloadModel(request, metadata=self.metadata):
                digest = message.sha256 or digest
                data.extend(message.data)

        persist(receive)
        if hashlib.sha256(data).hexdigest() != digest:
            raise ValueError(f"{path} is not what the server sent")
        pathlib.Path(path).write_bytes(data)


def feature_rows(path):  # of an npz graph, dense
    graph = numpy.load(path, allow_pickle=False)
    rows = numpy.zeros(graph["attr_shape"], dtype=numpy.float32)
    for node, (start, end) in enumerate(zip(graph["attr_indptr"], graph["attr_indptr"][1:])):
        rows[node, graph["attr_indices"][start:end]] = graph["attr_data"][start:end]
    return torch.from_numpy(rows)


def main(tenant, graph, epsilon, output):
    client = Client(os.environ["DPAR_SERVER"], os.environ["DPAR_CA"], os.environ["DPAR_TOKEN"])
    job = client.train(tenant, client.upload(tenant, graph), float(epsilon))
    if client.watch(job) != "SUCCEEDED":
        sys.exit(f"{job} did not succeed")
    client.download(job, training_pb2.DownloadModelRequest.WEIGHTS, f"{output}/model.npz")
    client.download(job, training_pb2.DownloadModelRequest.TORCHSCRIPT, f"{output}/model.pt")
    classes = torch.jit.load(f"{output}/model.pt")(feature_rows(graph)).argmax(dim=1)
    pathlib.Path(f"{output}/classes.txt").write_text("".join(f"{label}\n" for label in classes.tolist()))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Refused as refused:
        sys.exit(str(refused))
