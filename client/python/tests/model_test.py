"""Models on arrays, by rules that are written out here in NumPy, and files in other formats."""
import pathlib
import tempfile
import unittest

import numpy
import scipy.sparse

import dpar
from dpar import errors
from support import CLASSES, FEATURES, main, make_graph, write_model


class ModelTest(unittest.TestCase):
    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = pathlib.Path(place.name)
        self.model = write_model(self.place)
        self.graph = make_graph(2, nodes=400, classes=CLASSES, features=FEATURES)
        offsets, columns, values = self.graph.features
        self.rows = scipy.sparse.csr_matrix((values, columns, offsets), shape=(400, FEATURES))

    def test_logits_are_those_of_the_formula(self) -> None:
        weights = numpy.load(self.place / "model.npz")["weights"].astype(float)
        dense = self.rows.toarray().astype(float)
        unit = dense / numpy.maximum(numpy.linalg.norm(dense, axis=1, keepdims=True), 1e-300)
        expected = numpy.sqrt(0.99) * unit @ weights[:-1] + 0.1 * weights[-1]
        for x in (self.rows, self.rows.toarray(), self.rows.astype(float), self.graph):
            logits = self.model.logits(x)
            self.assertEqual((logits.shape, logits.dtype), ((400, CLASSES), numpy.float32))
            numpy.testing.assert_allclose(logits, expected, atol=1e-6)
        numpy.testing.assert_array_equal(self.model.logits(self.rows), self.model.logits(self.graph))

    def test_probabilities_are_those_of_the_predictions(self) -> None:
        for rule in ("", "mean-field", "power", "none"):
            predictions = self.model.predict(self.graph, propagation=rule)
            rows = self.model.predict_proba(self.graph, propagation=rule)
            numpy.testing.assert_allclose(rows.sum(axis=1), 1, atol=1e-6)
            numpy.testing.assert_array_equal(rows[numpy.arange(400), predictions.classes], predictions.probabilities)
            numpy.testing.assert_array_equal(rows.max(axis=1), predictions.probabilities)

    def test_the_rule_of_prediction_takes_logits_from_elsewhere(self) -> None:
        offsets, neighbours = self.graph.edges
        sources = numpy.repeat(numpy.arange(400), numpy.diff(offsets))
        once = sources < neighbours
        for edges in (numpy.stack([sources, neighbours]), numpy.stack([neighbours[once], sources[once]])):
            rows = self.model.propagate(self.model.logits(self.rows), edges)
            numpy.testing.assert_array_equal(rows, self.model.predict_proba(self.graph))

    def test_tensors_go_in_and_out(self) -> None:
        try:
            import torch
        except ImportError:
            self.skipTest("python3-torch is not installed")
        from dpar.torch import propagate

        offsets, neighbours = self.graph.edges
        edges = torch.tensor(numpy.stack([numpy.repeat(numpy.arange(400), numpy.diff(offsets)), neighbours]))
        rows = propagate(torch.tensor(self.model.logits(self.rows), requires_grad=True), edges, self.model)
        self.assertIsInstance(rows, torch.Tensor)
        numpy.testing.assert_array_equal(rows.numpy(), self.model.predict_proba(self.graph))

    def test_label_shift_is_found_and_corrected(self) -> None:
        shares = numpy.array([0.96, 0.02, 0.02], numpy.float32)
        model = write_model(self.place, class_shares=shares)
        predictions = model.predict(self.graph)
        assert predictions.shift is not None
        self.assertTrue(predictions.shift.found)
        self.assertGreater(predictions.shift.distance, predictions.shift.threshold)
        self.assertIsNone(model.predict(self.graph, shift=False).shift)

    def test_other_inputs_are_graphs_too(self) -> None:
        offsets, neighbours = self.graph.edges
        adjacency = scipy.sparse.csr_matrix((numpy.ones(len(neighbours)), neighbours, offsets), shape=(400, 400))
        self.graph.write(self.place / "graph.npz")
        expected = self.model.predict(self.graph)
        for graph in ((adjacency, self.rows), (adjacency.toarray(), self.rows.toarray()), self.place / "graph.npz"):
            numpy.testing.assert_array_equal(self.model.predict(graph).probabilities, expected.probabilities)

    def test_names_and_frames(self) -> None:
        named = dpar.Graph.from_matrices(
            numpy.zeros((2, 2)), numpy.ones((2, FEATURES)), classes=["a", "b", "c"], ids=["x", "y"]
        )
        predictions = self.model.predict(named)
        self.assertTrue(set(predictions.names) <= {"a", "b", "c"})
        try:
            frame = predictions.to_frame()
        except ImportError:
            return
        self.assertEqual(frame["id"].tolist(), ["x", "y"])
        self.assertEqual(list(frame), ["id", "class", "probability"])

    def test_what_does_not_fit_is_refused(self) -> None:
        narrow = dpar.Graph.from_matrices(numpy.zeros((2, 2)), numpy.ones((2, 4)))
        with self.assertRaisesRegex(errors.InvalidField, "4 features, but the model was trained on 30"):
            self.model.predict(narrow)
        for options in ({"propagation": "magic"}, {"alpha": 0.0}, {"iterations": -1}, {"normalisation": "none"}):
            with self.assertRaises(errors.InvalidField, msg=str(options)):
                self.model.predict(self.graph, **options)
        with self.assertRaisesRegex(errors.InvalidField, "finite"):
            self.model.propagate(numpy.full((2, CLASSES), numpy.nan), [[0], [1]])
        with self.assertRaisesRegex(errors.InvalidField, "edges join nodes from 0 to 1"):
            self.model.propagate(numpy.zeros((2, CLASSES)), [[0], [2]])
        with self.assertRaisesRegex(errors.InvalidField, "4 features"):
            self.model.logits(numpy.ones((2, 4)))
        with self.assertRaisesRegex(errors.InvalidField, "columns of a row must rise"):
            self.model.native.row_logits(numpy.array([0, 2]), numpy.array([1, 1]), numpy.ones(2), FEATURES)
        with self.assertRaisesRegex(errors.InvalidField, "there is no such file"):
            dpar.Model.read(self.place / "none")
        with self.assertRaises(errors.InvalidField):
            write_model(self.place, weights=numpy.full((FEATURES + 1, CLASSES), numpy.inf, numpy.float32))

    def test_a_model_without_a_certificate_says_so(self) -> None:
        with self.assertRaisesRegex(errors.InvalidField, "there is no such file"):
            self.model.certificate.verify()
        (self.place / "certificate.json").write_text("no certificate")
        with self.assertRaises(errors.Error):
            self.model.certificate.unverified_statement
        with self.assertRaises(errors.Error):
            self.model.certificate.verify(key=b"no key")


if __name__ == "__main__":
    main()
