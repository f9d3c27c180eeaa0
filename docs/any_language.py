"""What a client in any language does: nothing but gRPC and the protos. In Python, `import dpar` does it better.

    protoc -I proto --python_out=stubs --grpc_python_out=stubs --plugin=protoc-gen-grpc_python=$(which grpc_python_plugin) \
        proto/dpar/v1/*.proto
    DPAR_SERVER=127.0.0.1:7443 DPAR_CA=ca.pem DPAR_TOKEN=dpar_... PYTHONPATH=stubs \
        /usr/bin/python3 docs/any_language.py TENANT GRAPH.npz CLASSES EPSILON QUERY.npz OUTPUT_DIRECTORY
"""
import hashlib, os, pathlib, sys, uuid

import grpc, numpy, scipy.sparse, torch
from dpar.v1 import dataset_pb2 as d, dataset_pb2_grpc, training_pb2 as t, training_pb2_grpc

tenant, graph, classes, epsilon, query, output = sys.argv[1:]
channel = grpc.secure_channel(os.environ["DPAR_SERVER"],
                              grpc.ssl_channel_credentials(pathlib.Path(os.environ["DPAR_CA"]).read_bytes()))
datasets, training = dataset_pb2_grpc.DatasetServiceStub(channel), training_pb2_grpc.TrainingServiceStub(channel)
token = (("authorization", "Bearer " + os.environ["DPAR_TOKEN"]),)


def matrix(path):  # of features; the public sizes of the graph are its shape
    with numpy.load(path) as arrays:
        return scipy.sparse.csr_matrix(tuple(arrays["attr_" + part] for part in ("data", "indices", "indptr")),
                                       arrays["attr_shape"])


content, (nodes, features) = pathlib.Path(graph).read_bytes(), matrix(graph).shape
upload = datasets.OpenUpload(d.OpenUploadRequest(
    parent=tenant, request_id=uuid.uuid4().hex, size_bytes=len(content), node_count=nodes, feature_count=features,
    class_count=int(classes)), metadata=token)  # declared: counted from labels, it would tell of a class's only node
datasets.WriteUpload((d.WriteUploadRequest(data=content[at:at + 65536], **({"name": upload.name} if at == 0 else {}))
                      for at in range(0, len(content), 65536)), metadata=token)
dataset = datasets.FinishUpload(d.FinishUploadRequest(name=upload.name, sha256=hashlib.sha256(content).hexdigest(),
                                                      request_id=uuid.uuid4().hex), metadata=token).dataset
job = training.CreateJob(t.CreateJobRequest(parent=tenant, request_id=uuid.uuid4().hex, spec=t.TrainingSpec(
    dataset=dataset.name, epsilon=float(epsilon))), metadata=token)
for event in training.WatchJob(t.WatchJobRequest(name=job.name), metadata=token):
    print(event.stage, f"{event.completed}/{event.total}", f"epsilon so far {event.epsilon_so_far:.4g}")
for name in ("WEIGHTS model.npz", "ONNX model.onnx", "TORCHSCRIPT model.pt", "CERTIFICATE certificate.json"):
    request = t.DownloadModelRequest(name=job.name, artifact=name.split()[0])
    pathlib.Path(output, name.split()[1]).write_bytes(
        b"".join(part.data for part in training.DownloadModel(request, metadata=token)))
labels = torch.jit.load(f"{output}/model.pt")(torch.tensor(matrix(query).toarray())).argmax(dim=1)
pathlib.Path(output, "classes.txt").write_text("".join(f"{label}\n" for label in labels.tolist()))
