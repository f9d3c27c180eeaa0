"""Graphs: from files, tables, matrices and the graphs of other libraries. Nothing leaves this machine."""
from __future__ import annotations

import os
import pathlib
import tempfile
import warnings
from typing import Any, Sequence

import numpy

from dpar import _native, errors
from dpar.tables import Schema

GraphLike = Any
"""A `Graph`; a path (npz, sealed or GraphML); a pair of pandas tables (nodes, edges); a pair of matrices (adjacency,
features), SciPy's or NumPy's; or a graph of PyTorch Geometric, DGL or NetworkX."""

_FEATURES = ("x", "feat", "features")
_LABELS = ("y", "label", "labels")


def _invalid(field: str, message: str) -> errors.Error:
    return errors.InvalidField(message, code="INVALID_ARGUMENT", metadata={"field": field})


def to_numpy(values: Any) -> Any:
    """An array of a tensor, a list or an array; without a copy where that is possible."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    return numpy.asarray(values)


class Graph:
    """Node slots with sparse features, labels and undirected edges, in canonical form.

    >>> import numpy
    >>> graph = Graph.from_matrices(numpy.array([[0, 1], [1, 0]]), numpy.eye(2), labels=[0, 1], classes=2)
    >>> graph.node_count, graph.edge_count, graph.labels.tolist()
    (2, 1, [0, 1])
    """

    def __init__(self, native: _native.Graph, table_report: dict[str, Any] | None = None) -> None:
        self.native = native
        self.table_report = table_report

    @classmethod
    def read(cls, path: str | os.PathLike[str], classes: int | None = None) -> Graph:
        """An npz, sealed or GraphML file. Without `classes`, an npz that states none counts them from its labels."""
        if not pathlib.Path(path).is_file():
            raise _invalid("graph", f"cannot read '{path}': there is no such file")
        return cls(_native.Graph.read(os.fspath(path), classes, False))

    @classmethod
    def from_matrices(
        cls,
        adjacency: Any,
        features: Any,
        labels: Any = None,
        *,
        classes: int | Sequence[str] | None = None,
        ids: Sequence[str] = (),
    ) -> Graph:
        """SciPy's sparse matrices or NumPy's arrays. Labels are 0, 1, ..., and -1 for none.

        `classes` is their number, or their names. Edge weights do not count; direction neither.
        """
        offsets, neighbours, _ = compressed("adjacency", adjacency)
        return cls._make(offsets, neighbours, features, labels, classes, ids)

    @classmethod
    def from_edges(
        cls,
        edges: Any,
        features: Any,
        labels: Any = None,
        *,
        classes: int | Sequence[str] | None = None,
        ids: Sequence[str] = (),
    ) -> Graph:
        """Edges as two rows of slots, in either direction or both.

        >>> Graph.from_edges([[0, 1], [1, 2]], numpy.eye(3)).edge_count
        2
        """
        ends = to_numpy(edges)
        if ends.size == 0:
            ends = numpy.zeros((2, 0), numpy.int64)
        if ends.ndim != 2 or ends.shape[0] != 2 or not numpy.issubdtype(ends.dtype, numpy.integer):
            raise _invalid("edges", "edges are two rows of slots: an integer array of 2 x m")
        nodes = features.shape[0] if hasattr(features, "shape") else len(features)
        if ends.size and (int(ends.min()) < 0 or int(ends.max()) >= nodes):
            raise errors.InvalidGraph(
                f"edges must join slots from 0 to {nodes - 1}", code="INVALID_ARGUMENT", metadata={"array": "edges"}
            )
        order = numpy.argsort(ends[0], kind="stable")
        offsets = numpy.zeros(nodes + 1, numpy.int64)
        numpy.cumsum(numpy.bincount(ends[0], minlength=nodes), out=offsets[1:])
        return cls._make(offsets, ends[1][order].astype(numpy.int32), features, labels, classes, ids)

    @classmethod
    def from_tables(cls, nodes: Any, edges: Any, schema: Schema | str | os.PathLike[str]) -> Graph:
        """A table of nodes and one of edges: paths of CSV files, or pandas DataFrames.

        DataFrames are written to a directory that only this user can read, and removed after.
        """
        text = schema.text if isinstance(schema, Schema) else Schema.read(schema).text
        with tempfile.TemporaryDirectory(prefix="dpar-tables.") as directory:
            paths = [
                _table_path(table, pathlib.Path(directory) / f"{name}.csv")
                for name, table in (("nodes", nodes), ("edges", edges))
            ]
            native, report = _native.read_tables(text, *paths)
        return cls(native, report)

    @classmethod
    def of(
        cls,
        graph: GraphLike,
        *,
        classes: int | Sequence[str] | None = None,
        labels: Any = None,
        schema: Schema | str | os.PathLike[str] | None = None,
    ) -> Graph:
        """Whatever `GraphLike` says. `labels` takes the place of the graph's own; a file and a Graph keep theirs."""
        if labels is not None and isinstance(graph, (Graph, str, os.PathLike)):
            raise _invalid("labels", "a file or a dpar.Graph has its labels: make the graph of arrays with others")
        if isinstance(graph, Graph):
            return graph
        if isinstance(graph, (str, os.PathLike)):
            return cls.read(graph, classes if isinstance(classes, int) else None)
        if isinstance(graph, (tuple, list)) and len(graph) in (2, 3):
            return cls._of_parts(graph, classes, labels, schema)
        if hasattr(graph, "edge_index") and hasattr(graph, "x"):  # torch_geometric.data.Data
            own = getattr(graph, "y", None)
            return cls.from_edges(graph.edge_index, graph.x, own if labels is None else labels, classes=classes)
        if hasattr(graph, "ndata") and hasattr(graph, "num_nodes"):  # DGL
            ends = numpy.stack([to_numpy(end) for end in graph.edges()])
            features, own = _entry(graph.ndata, _FEATURES), _entry(graph.ndata, _LABELS)
            return cls.from_edges(ends, features, own if labels is None else labels, classes=classes)
        if hasattr(graph, "nodes") and hasattr(graph, "is_directed"):  # NetworkX
            return cls._of_networkx(graph, classes, labels)
        raise _invalid(
            "graph",
            f"cannot make a graph of {type(graph).__name__}: give a path, a pair of matrices "
            "(adjacency, features), a pair of tables with a schema, or a graph of PyTorch Geometric, "
            "DGL or NetworkX",
        )

    @classmethod
    def _of_parts(cls, parts: Any, classes: Any, labels: Any, schema: Any) -> Graph:
        if any(hasattr(part, "to_csv") or isinstance(part, (str, os.PathLike)) for part in parts[:2]):
            if schema is None:
                raise _invalid("schema", "tables need a schema: Schema.draft(nodes, edges) makes a first one")
            return cls.from_tables(parts[0], parts[1], schema)
        own = parts[2] if len(parts) == 3 else None
        return cls.from_matrices(parts[0], parts[1], own if labels is None else labels, classes=classes)

    @classmethod
    def _of_networkx(cls, graph: Any, classes: Any, labels: Any) -> Graph:
        slots = {node: slot for slot, node in enumerate(graph.nodes)}
        if not slots:
            raise _invalid("graph", "the graph has no node")
        attributes = [data for _, data in graph.nodes(data=True)]
        features = [_entry(data, _FEATURES) for data in attributes]
        if any(row is None for row in features):
            raise _invalid("graph", f"every node needs a vector under one of the attributes {', '.join(_FEATURES)}")
        if labels is None:
            found = [_entry(data, _LABELS) for data in attributes]
            labels = [-1 if label is None else label for label in found]
        ends = numpy.array([(slots[a], slots[b]) for a, b in graph.edges()], numpy.int64).reshape(-1, 2).T
        return cls.from_edges(
            ends,
            numpy.stack([to_numpy(row) for row in features]),
            labels,
            classes=classes,
            ids=[str(node) for node in slots],
        )

    @classmethod
    def _make(
        cls,
        offsets: Any,
        neighbours: Any,
        features: Any,
        labels: Any,
        classes: int | Sequence[str] | None,
        ids: Sequence[str],
    ) -> Graph:
        nodes = len(offsets) - 1
        feature_offsets, columns, values = compressed("features", features)
        held = numpy.full(nodes, -1, numpy.int32) if labels is None else to_numpy(labels).reshape(-1)
        if held.size and not numpy.issubdtype(held.dtype, numpy.integer):
            raise _invalid("labels", "labels are integers from 0, and -1 for none")
        names = [] if classes is None or isinstance(classes, int) else list(classes)
        count = classes if isinstance(classes, int) else len(names)
        if classes is None:
            count = int(held.max(initial=0)) + 1  # for the caller's own eyes; an upload asks for the number
        return cls(
            _native.Graph.from_arrays(
                edge_offsets=offsets,
                neighbours=neighbours,
                feature_offsets=feature_offsets,
                columns=columns,
                values=values,
                labels=held.astype(numpy.int32),
                feature_count=int(features.shape[1]),
                class_count=count,
                classes_counted=classes is None,
                ids=list(ids),
                class_names=names,
            )
        )

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes an npz or a sealed file, with its names."""
        self.native.write(os.fspath(path), True)

    @property
    def node_count(self) -> int:
        """N, the number of slots."""
        return self.native.node_count

    @property
    def feature_count(self) -> int:
        """d, the width of feature rows."""
        return self.native.feature_count

    @property
    def class_count(self) -> int:
        """c; labels are 0 to c - 1."""
        return self.native.class_count

    @property
    def edge_count(self) -> int:
        """Undirected edges."""
        return self.native.edge_count

    @property
    def labels(self) -> Any:
        """A label for each slot, -1 for none; an array that shares the graph's memory."""
        return self.native.labels

    @property
    def ids(self) -> list[str]:
        """The owner's ids; empty where the graph has none."""
        return self.native.ids

    @property
    def class_names(self) -> list[str]:
        """Empty where the graph has none."""
        return self.native.class_names

    @property
    def edges(self) -> tuple[Any, Any]:
        """Offsets and neighbours of compressed rows, every edge in both directions."""
        return self.native.edge_offsets, self.native.neighbours

    @property
    def features(self) -> tuple[Any, Any, Any]:
        """Offsets, columns and values of compressed rows."""
        return self.native.feature_offsets, self.native.feature_columns, self.native.feature_values

    def notes(self) -> list[str]:
        """What does not suit the default transform, for the owner's eyes."""
        scales, notes = self.native.scales(), []
        if scales["negative_columns"]:
            notes.append(
                f"{scales['negative_columns']} of {scales['columns']} feature columns have negative values. The "
                "default transform takes square roots and keeps signs; for embeddings, transform='UNIT' keeps "
                "their directions."
            )
        if scales["largest"] > 100 * scales["smallest"]:
            notes.append(
                f"the largest values of feature columns go from {scales['smallest']:g} to {scales['largest']:g}: "
                "a few columns drown the others. Divide each column by a constant that is public knowledge, or "
                "upload tables with a schema, which does it for you."
            )
        return notes

    def __repr__(self) -> str:
        return f"<dpar.Graph: {self.node_count} nodes, {self.edge_count} edges, {self.feature_count} features>"


def _entry(mapping: Any, names: Sequence[str]) -> Any:
    return next((mapping[name] for name in names if name in mapping), None)


def _table_path(table: Any, path: pathlib.Path) -> str:
    if hasattr(table, "to_csv"):
        table.to_csv(path, index=False)
        return str(path)
    if not pathlib.Path(table).is_file():
        raise _invalid("tables", f"cannot read '{table}': there is no such file")
    return str(os.fspath(table))


def compressed(name: str, matrix: Any) -> tuple[Any, Any, Any]:
    """Offsets (int64), columns (int32) and values (float32) of compressed rows."""
    if hasattr(matrix, "tocsr"):
        rows = matrix.tocsr()
        if name == "adjacency" and not rows.data.all():  # a stored 0 is no edge
            rows = rows.copy()
            rows.eliminate_zeros()
        return rows.indptr.astype(numpy.int64, copy=False), rows.indices, rows.data
    dense = to_numpy(matrix)
    if dense.ndim != 2:
        raise _invalid(name, f"{name} must be a matrix, got {dense.ndim} dimensions")
    held = dense != 0  # a NaN counts as held, and is refused where values are checked
    offsets = numpy.zeros(dense.shape[0] + 1, numpy.int64)
    numpy.cumsum(held.sum(axis=1), out=offsets[1:])
    return offsets, numpy.nonzero(held)[1].astype(numpy.int32), dense[held].astype(numpy.float32)


def warn_of_training_graph(is_training_graph: bool | None) -> None:
    """What `dpar predict` says: predictions on the training graph are not covered by the guarantee."""
    if is_training_graph:
        warnings.warn(
            "this is the graph that the model was trained on. What is predicted on it is not covered by the "
            "guarantee and may give its nodes away: do not release the output",
            stacklevel=3,
        )
