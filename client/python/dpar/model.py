"""Released models: prediction on a graph of your own, by the rules of `dpar predict` and bit for bit."""
from __future__ import annotations

import dataclasses
import hashlib
import importlib
import json
import os
import pathlib
from typing import Any

import numpy

from dpar import _native, errors
from dpar.certificate import Certificate
from dpar.connect import data_directory, read_small_file
from dpar.graph import Graph, GraphLike, compressed, to_numpy, warn_of_training_graph
from dpar.tables import Schema


@dataclasses.dataclass(frozen=True)
class Shift:
    """What was found of label shift: classes mixed differently than in training."""

    found: bool
    distance: float
    threshold: float


@dataclasses.dataclass(frozen=True)
class Predictions:
    """A class and its probability for each node. `names` are the classes by name, `ids` the nodes by their owner's."""

    classes: Any
    probabilities: Any
    class_names: list[str]
    ids: list[str]
    shift: Shift | None

    @property
    def names(self) -> Any:
        """The name of each node's class, or its number where the classes have no names."""
        return numpy.asarray(self.class_names)[self.classes] if self.class_names else self.classes

    def __len__(self) -> int:
        return len(self.classes)

    def accuracy(self, labels: Any) -> float:
        """The share that is right, of the nodes with a label."""
        held = to_numpy(labels)
        labelled = held >= 0
        if not labelled.any():
            raise errors.InvalidField(
                "no node is labelled, so there is no accuracy", code="INVALID_ARGUMENT", metadata={"field": "labels"}
            )
        return float((self.classes[labelled] == held[labelled]).mean())

    def to_frame(self) -> Any:
        """A pandas DataFrame with columns id (or node), class and probability."""
        pandas = importlib.import_module("pandas")
        first: dict[str, Any] = {"id": self.ids} if self.ids else {"node": numpy.arange(len(self))}
        return pandas.DataFrame(first | {"class": self.names, "probability": self.probabilities})


class Model:
    """A model of a download. `Model.read("out")` takes the directory, or the model.npz in it.

    The guarantee covers the model. What it predicts on nodes that it was trained on is not covered: do not release
    that.
    """

    def __init__(self, native: _native.Model, directory: pathlib.Path | None = None, sha256: str = "") -> None:
        self.native = native
        self.directory = directory
        self._sha256 = sha256
        self.schema = Schema(native.schema) if native.schema else None

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Model:
        """The model.npz of a download, or its directory."""
        file = pathlib.Path(path)
        file = file / "model.npz" if file.is_dir() else file
        if not file.is_file():
            raise errors.InvalidField(
                f"cannot read '{file}': there is no such file", code="INVALID_ARGUMENT", metadata={"field": "model"}
            )
        with open(file, "rb") as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        return cls(_native.Model.read(os.fspath(file)), file.parent, sha256)

    def export(self, path: str | os.PathLike[str]) -> None:
        """Writes the model as .onnx or .safetensors, byte for byte as the server does."""
        target = pathlib.Path(path)
        writers = {".onnx": self.native.write_onnx, ".safetensors": self.native.write_safetensors}
        if target.suffix not in writers:
            raise errors.InvalidField(
                f"the name must end in .onnx or .safetensors; not '{path}'",
                code="INVALID_ARGUMENT",
                metadata={"field": "path"},
            )
        writers[target.suffix](os.fspath(target))

    @property
    def feature_count(self) -> int:
        """d, the width of feature rows."""
        return self.native.feature_count

    @property
    def class_count(self) -> int:
        """c, the number of classes."""
        return self.native.class_count

    @property
    def class_names(self) -> list[str]:
        """Of the schema that it was trained with; empty where there is none."""
        return [] if self.schema is None else self.schema.classes

    @property
    def plan(self) -> dict[str, Any]:
        """The plan that it was trained by."""
        plan = json.loads(self.native.plan)
        assert isinstance(plan, dict)
        return plan

    @property
    def certificate(self) -> Certificate:
        """The certificate.json beside the model."""
        if self.directory is None:
            raise errors.InvalidField(
                "the model was not read from a directory", code="INVALID_ARGUMENT", metadata={"field": "certificate"}
            )
        return Certificate.read(self.directory / "certificate.json", model_sha256=self._sha256)

    def graph(self, graph: GraphLike) -> Graph:
        """A graph to predict on. A pair of tables is encoded by the model's own schema."""
        classes = self.class_names or self.class_count
        made = Graph.of(
            graph,
            classes=None if isinstance(graph, (str, os.PathLike)) else classes,
            schema=None if self.schema is None else self.schema,
        )
        if self.schema is not None and made.native.schema:
            difference = _native.schema_difference(self.schema.text, made.native.schema)
            if difference:
                raise errors.Error(
                    f"the graph was made with another schema than the model: {difference}. Give its "
                    "tables, which the model's schema encodes",
                    code="FAILED_PRECONDITION",
                )
        return made

    def predict(
        self,
        graph: GraphLike,
        *,
        propagation: str = "",
        shift: bool = True,
        alpha: float = 0.25,
        iterations: int = 2,
        normalisation: str = "row",
        self_loops: bool = False,
    ) -> Predictions:
        """A class and its probability for each node, as `dpar predict` gives them.

        `propagation` is mean-field, power or none; the model's own default otherwise. The last four are for power.
        """
        made = self.graph(graph)
        warn_of_training_graph(self.is_training_graph(made))
        classes, probabilities, found = self.native.predict(
            made.native, propagation, shift, alpha, iterations, normalisation, self_loops
        )
        return Predictions(
            classes,
            probabilities,
            self.class_names or made.class_names,
            made.ids,
            None if found is None else Shift(**found),
        )

    def predict_proba(
        self,
        graph: GraphLike,
        *,
        propagation: str = "",
        shift: bool = True,
        alpha: float = 0.25,
        iterations: int = 2,
        normalisation: str = "row",
        self_loops: bool = False,
    ) -> Any:
        """The probability of every class for each node: an array of n x c whose rows sum to 1."""
        made = self.graph(graph)
        warn_of_training_graph(self.is_training_graph(made))
        return self.native.probabilities(made.native, propagation, shift, alpha, iterations, normalisation, self_loops)

    def logits(self, x: Any) -> Any:
        """Logits of feature rows as they were uploaded (a SciPy matrix or an array of n x d), or of a graph's nodes.

        A model of GAP or SAGE reads edges and takes a graph only.
        """
        if self.native.reads_edges or isinstance(x, (Graph, str, os.PathLike, tuple)):
            return self.native.logits(self.graph(x).native)
        if hasattr(x, "tocsr"):
            x = x.tocsr()
            if not x.has_canonical_format:
                x = x.copy()
                x.sum_duplicates()
        width = x.shape[1] if hasattr(x, "shape") else numpy.asarray(x).shape[1]
        return self.native.row_logits(*compressed("x", x), int(width))

    def propagate(self, logits: Any, edge_index: Any, *, propagation: str = "", shift: bool = True) -> Any:
        """Class probabilities of nodes from logits that were made elsewhere, by the rule of `predict`.

        `edge_index` holds two rows of slots, in either direction or both.
        """
        ends = to_numpy(edge_index)
        return self.native.propagate(to_numpy(logits), ends[0], ends[1], propagation, shift, 0.25, 2, "row", False)

    def is_training_graph(self, graph: GraphLike) -> bool | None:
        """Whether the certificate beside the model is about this graph; None where no digest key is kept here."""
        directory = data_directory()
        if self.directory is None or directory is None or not (self.directory / "certificate.json").is_file():
            return None
        digest = self.certificate.dataset_digest
        file = directory / "digest-keys" / pathlib.Path(digest).name
        if not digest or not file.is_file():
            return None
        key = read_small_file("digest-key", file).decode("latin-1").strip()
        return _native.is_graph_of_digest(self.graph(graph).native, key, digest)

    def __repr__(self) -> str:
        return f"<dpar.Model: {self.feature_count} features, {self.class_count} classes>"
