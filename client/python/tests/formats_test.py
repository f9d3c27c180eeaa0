"""model.safetensors and model.onnx: what they hold, and that they give the logits of prediction."""
import importlib.util
import json
import pathlib
import struct
import tempfile
import unittest

import numpy

import dpar
import onnx_numpy
from dpar import errors
from support import CLASSES, FEATURES, main, make_graph, write_model


def read_safetensors(path: pathlib.Path) -> tuple[dict[str, numpy.ndarray], dict[str, str]]:
    """By the format's definition alone."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    assert length % 8 == 0
    header, body = json.loads(content[8 : 8 + length]), content[8 + length :]
    metadata = header.pop("__metadata__")
    begin = 0
    for part in header.values():
        assert part["dtype"] == "F32" and part["data_offsets"][0] == begin, "no gaps"
        begin = part["data_offsets"][1]
    assert begin == len(body)
    return {
        name: numpy.frombuffer(body[slice(*part["data_offsets"])], "<f4").reshape(part["shape"])
        for name, part in header.items()
    }, metadata


class FormatsTest(unittest.TestCase):
    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = pathlib.Path(place.name)
        self.graph = make_graph(3, nodes=200, classes=CLASSES, features=FEATURES)

    def models(self) -> list[dpar.Model]:
        """One of every kind."""
        random = numpy.random.default_rng(2)

        def normal(*shape: int) -> numpy.ndarray:
            return random.normal(size=shape).astype(numpy.float32)

        hidden = {"weights": normal(FEATURES + 1, 4), "output_weights": normal(4, CLASSES)}
        kinds: list[tuple[dict[str, object], dict[str, numpy.ndarray]]] = [
            ({"transform": transform}, arrays) for transform in ("RAW", "UNIT", "SQRT_UNIT") for arrays in ({}, hidden)
        ]
        kinds += [
            ({"transform": transform}, {"center": numpy.abs(normal(FEATURES)) / 8} | arrays)
            for transform in ("UNIT", "SQRT_UNIT")
            for arrays in ({}, hidden)
        ]
        kinds.append(
            (
                {"reads": "neighbour-mean"},
                {"weights": normal(2 * FEATURES + 1, 4), "output_weights": normal(4, CLASSES)},
            )
        )
        kinds.append(
            (
                {"reads": "hops", "hops": 2},
                {"weights": normal(3 * 5 + 1, CLASSES), "encoder_weights": normal(FEATURES + 1, 5)},
            )
        )
        models = []
        for i, (header, arrays) in enumerate(kinds):
            (self.place / str(i)).mkdir()
            models.append(write_model(self.place / str(i), header, **arrays))
        return models

    def inputs(self, model: dpar.Model, rows: numpy.ndarray) -> dict[str, numpy.ndarray]:
        if not model.native.reads_edges:
            return {"x": rows}
        offsets, neighbours = self.graph.edges
        sources = numpy.repeat(numpy.arange(self.graph.node_count), numpy.diff(offsets))
        return {"x": rows, "edges": numpy.stack([sources, neighbours]).astype(numpy.int64)}

    def dense(self) -> numpy.ndarray:
        offsets, columns, values = self.graph.features
        rows = numpy.zeros((self.graph.node_count, FEATURES), numpy.float32)
        rows[numpy.repeat(numpy.arange(len(rows)), numpy.diff(offsets)), columns] = values
        return rows

    def test_safetensors_hold_the_arrays_of_the_npz(self) -> None:
        for model in self.models():
            assert model.directory is not None
            model.export(model.directory / "model.safetensors")
            tensors, metadata = read_safetensors(model.directory / "model.safetensors")
            with numpy.load(model.directory / "model.npz") as arrays:
                self.assertEqual(set(tensors), set(arrays) - {"header"})
                for name, tensor in tensors.items():
                    numpy.testing.assert_array_equal(tensor, arrays[name])
            self.assertEqual(json.loads(metadata["dpar"])["transform"], model.native.transform)

    @unittest.skipUnless(importlib.util.find_spec("onnx"), "python3-onnx is not installed")
    def test_onnx_gives_the_logits_of_prediction(self) -> None:
        import onnx

        rows = self.dense()
        for model in self.models():
            assert model.directory is not None
            path = model.directory / "model.onnx"
            model.export(path)
            loaded = onnx.load(path)
            onnx.checker.check_model(loaded, full_check=True)
            self.assertEqual(loaded.opset_import[0].version, 16 if model.native.reads_edges else 13)
            inputs = self.inputs(model, rows)
            expected = model.logits(self.graph)
            results = [onnx_numpy.run(loaded, inputs)]
            if importlib.util.find_spec("onnxruntime"):
                import onnxruntime

                results += onnxruntime.InferenceSession(str(path)).run(["logits"], inputs)
            for logits in results:
                self.assertEqual(logits.dtype, numpy.float32)
                numpy.testing.assert_allclose(logits, expected, atol=2e-5, err_msg=model.native.header)

    @unittest.skipUnless(importlib.util.find_spec("onnx"), "python3-onnx is not installed")
    def test_onnx_takes_numbers_that_are_not_finite_for_zero(self) -> None:
        import onnx

        model = write_model(self.place, {"transform": "SQRT_UNIT"})
        model.export(self.place / "model.onnx")
        rows = numpy.zeros((3, FEATURES), numpy.float32)
        rows[0, :3] = numpy.nan, numpy.inf, 2
        rows[1, 2] = 2
        logits = onnx_numpy.run(onnx.load(self.place / "model.onnx"), {"x": rows})
        numpy.testing.assert_array_equal(logits[0], logits[1])
        self.assertTrue(numpy.isfinite(logits).all())

    def test_the_same_model_gives_the_same_bytes(self) -> None:
        for model in self.models():
            for ending in ("onnx", "safetensors"):
                names = [self.place / f"{name}.{ending}" for name in ("one", "another")]
                for name in names:
                    model.export(name)
                self.assertEqual(names[0].read_bytes(), names[1].read_bytes())
        self.assertEqual([file.name for file in self.place.iterdir() if file.name.startswith(".")], [])

    def test_what_cannot_be_written(self) -> None:
        model = write_model(self.place)
        with self.assertRaisesRegex(errors.InvalidField, "must end in"):
            model.export(self.place / "model.h5")
        with self.assertRaises(errors.Error):
            model.export("/nonexistent/model.onnx")


if __name__ == "__main__":
    main()
