"""Graphs from matrices, files and other libraries, and what is refused."""
import pathlib
import tempfile
import types
import unittest

import numpy
import scipy.sparse

import dpar
from dpar import errors
from support import main, make_graph

SCHEMA = """
nodes:
  id: account
  label: {column: kind, classes: [private, business]}
  columns:
    age: {type: number, range: [0, 120]}
    card: {type: flag}
edges: {source: from, target: to}
"""


class MatrixTest(unittest.TestCase):
    def test_edges_are_made_canonical(self) -> None:
        adjacency = scipy.sparse.coo_matrix(([1, 1, 1, 5], ([0, 0, 2, 1], [1, 1, 2, 2])), shape=(3, 3))
        graph = dpar.Graph.from_matrices(adjacency, scipy.sparse.eye(3, format="csr"), labels=[0, -1, 1], classes=2)
        offsets, neighbours = graph.edges
        self.assertEqual(offsets.tolist(), [0, 1, 3, 4])
        self.assertEqual(neighbours.tolist(), [1, 0, 2, 1])
        self.assertEqual(graph.native.report()["self_loops_dropped"], 1)
        self.assertEqual(graph.native.report()["edges_symmetrised"], 2)

    def test_a_stored_zero_is_no_edge(self) -> None:
        adjacency = scipy.sparse.csr_matrix(([0.0, 1.0], ([0, 1], [1, 2])), shape=(3, 3))
        self.assertEqual(dpar.Graph.from_matrices(adjacency, numpy.eye(3)).edge_count, 1)

    def test_arrays_share_the_memory_of_the_graph(self) -> None:
        graph = make_graph(1)
        labels = graph.labels
        self.assertFalse(labels.flags.owndata)
        with self.assertRaises(ValueError):
            labels[0] = 1
        kept = labels.tolist()
        del graph
        self.assertEqual(labels.tolist(), kept)

    def test_files_give_the_graph_back(self) -> None:
        graph = dpar.Graph.from_matrices(
            numpy.array([[0, 1], [1, 0]]),
            numpy.array([[2.0, 0], [0, 3.0]]),
            [1, 0],
            classes=["no", "yes"],
            ids=["a", "b"],
        )
        with tempfile.TemporaryDirectory() as place:
            for name in ("graph.npz", "graph.sealed"):
                graph.write(pathlib.Path(place) / name)
                again = dpar.Graph.read(pathlib.Path(place) / name)
                self.assertEqual(again.class_names, ["no", "yes"])
                self.assertEqual(again.ids, ["a", "b"])
                self.assertEqual([part.tolist() for part in again.features], [part.tolist() for part in graph.features])
                self.assertEqual(again.labels.tolist(), [1, 0])


class OtherLibrariesTest(unittest.TestCase):
    """Duck-typed: the attributes that the libraries have, without the libraries where Debian lacks them."""

    def setUp(self) -> None:
        self.features = numpy.array([[1.0, 0], [0, 2.0], [3.0, 0]], numpy.float32)

    def assert_path(self, graph: dpar.Graph) -> None:
        self.assertEqual(graph.edges[1].tolist(), [1, 0, 2, 1])
        self.assertEqual(graph.labels.tolist(), [0, 1, 0])
        self.assertEqual(graph.features[2].tolist(), [1, 2, 3])

    def test_torch_geometric(self) -> None:
        try:
            import torch
        except ImportError:
            self.skipTest("python3-torch is not installed")
        data = types.SimpleNamespace(
            x=torch.tensor(self.features),
            edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]),
            y=torch.tensor([0, 1, 0]),
        )
        self.assert_path(dpar.Graph.of(data, classes=2))

    def test_dgl(self) -> None:
        graph = types.SimpleNamespace(
            ndata={"feat": self.features, "label": numpy.array([0, 1, 0])},
            num_nodes=lambda: 3,
            edges=lambda: (numpy.array([0, 1]), numpy.array([1, 2])),
        )
        self.assert_path(dpar.Graph.of(graph, classes=2))

    def test_networkx(self) -> None:
        try:
            import networkx
        except ImportError:
            self.skipTest("python3-networkx is not installed")
        graph = networkx.Graph()
        for name, row, label in zip("abc", self.features, [0, 1, 0]):
            graph.add_node(name, x=row, y=label)
        graph.add_edges_from([("a", "b"), ("c", "b")])
        made = dpar.Graph.of(graph, classes=2)
        self.assert_path(made)
        self.assertEqual(made.ids, ["a", "b", "c"])
        graph.add_node("d")
        with self.assertRaisesRegex(errors.InvalidField, "every node needs a vector"):
            dpar.Graph.of(graph, classes=2)

    def test_tables(self) -> None:
        with tempfile.TemporaryDirectory() as place:
            nodes, edges = pathlib.Path(place) / "nodes.csv", pathlib.Path(place) / "edges.csv"
            nodes.write_text("account,age,card,kind\nx,30,yes,private\ny,60,no,business\n")
            edges.write_text("from,to\nx,y\ny,x\nx,y\nx,z\n")
            graph = dpar.Graph.of((nodes, edges), schema=SCHEMA)
            self.assertEqual(graph.ids, ["x", "y"])
            self.assertEqual(graph.class_names, ["private", "business"])
            assert graph.table_report is not None
            self.assertEqual(graph.table_report["unknown_edges"], 1)
            try:
                import pandas
            except ImportError:
                return
            frames = pandas.read_csv(nodes), pandas.read_csv(edges)
            again = dpar.Graph.of(frames, schema=SCHEMA)
            self.assertEqual([part.tolist() for part in again.features], [part.tolist() for part in graph.features])
            yaml, questions = dpar.Schema.draft(nodes, edges, id="account", label="kind")
            self.assertIn("age", yaml)
            self.assertTrue(questions)
            with self.assertRaises(errors.Error):
                dpar.Schema(yaml).answered()
            self.assertEqual(
                dpar.Schema(dpar.Schema(yaml).answered(accept_observed=True)).classes, ["business", "private"]
            )


class RefusalTest(unittest.TestCase):
    def refused(self, kind: type[errors.Error], text: str, **arguments: object) -> errors.Error:
        parts = {"adjacency": numpy.zeros((2, 2)), "features": numpy.eye(2), "labels": [0, 1], "classes": 2} | arguments
        with self.assertRaisesRegex(kind, text) as caught:
            dpar.Graph.from_matrices(**parts)
        return caught.exception

    def test_matrices_that_do_not_fit(self) -> None:
        self.refused(errors.InvalidGraph, "must have an entry for each of the", labels=[0])
        self.refused(errors.InvalidGraph, "must be from -1", labels=[0, 2])
        self.refused(errors.InvalidField, "labels are integers", labels=[0.5, 1])
        self.refused(errors.InvalidField, "must be a matrix", features=numpy.ones(2))
        self.refused(errors.InvalidGraph, "finite", features=numpy.array([[numpy.nan, 1], [1, 1]]))
        self.refused(errors.InvalidGraph, "must be from 0 to", adjacency=numpy.array([[0, 0, 1], [0, 0, 0]]))
        bad = self.refused(errors.InvalidGraph, "labels", labels=[7, 0])
        self.assertEqual(bad.metadata["array"], "labels")

    def test_edges_that_do_not_fit(self) -> None:
        with self.assertRaisesRegex(errors.InvalidGraph, "join slots from 0 to 1"):
            dpar.Graph.from_edges([[0], [2]], numpy.eye(2))
        with self.assertRaisesRegex(errors.InvalidField, "two rows of slots"):
            dpar.Graph.from_edges([0, 1, 2], numpy.eye(3))

    def test_files_that_are_not_graphs(self) -> None:
        with self.assertRaisesRegex(errors.InvalidField, "there is no such file"):
            dpar.Graph.read("/nonexistent.npz")
        with tempfile.NamedTemporaryFile(suffix=".npz") as file:
            file.write(b"no graph")
            file.flush()
            with self.assertRaises(errors.InvalidGraph):
                dpar.Graph.read(file.name)
        with self.assertRaisesRegex(errors.InvalidField, "cannot make a graph of dict"):
            dpar.Graph.of({})


if __name__ == "__main__":
    main()
