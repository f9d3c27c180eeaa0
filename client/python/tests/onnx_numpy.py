"""Runs the operations that our ONNX files use, in NumPy, by their definitions: for machines without onnxruntime."""
from typing import Any

import numpy

TYPES = {1: numpy.float32, 7: numpy.int64, 11: numpy.float64}


def _sum(x: Any, axes: Any, attributes: dict[str, Any]) -> Any:
    return x.sum(axis=tuple(axes), keepdims=bool(attributes.get("keepdims", 1)))


def _scatter(data: Any, places: Any, updates: Any, attributes: dict[str, Any]) -> Any:
    assert attributes["reduction"] == b"add"
    result = data.copy()
    numpy.add.at(result, places[:, 0], updates)
    return result


OPERATIONS: dict[str, Any] = {
    "Abs": lambda x, _: abs(x),
    "Add": lambda a, b, _: a + b,
    "Sub": lambda a, b, _: a - b,
    "Mul": lambda a, b, _: a * b,
    "Div": lambda a, b, _: a / b,
    "Max": lambda a, b, _: numpy.maximum(a, b),
    "MatMul": lambda a, b, _: a @ b,
    "Relu": lambda x, _: numpy.maximum(x, 0),
    "Sqrt": lambda x, _: numpy.sqrt(x),
    "Exp": lambda x, _: numpy.exp(x),
    "Sign": lambda x, _: numpy.sign(x),
    "IsNaN": lambda x, _: numpy.isnan(x),
    "IsInf": lambda x, _: numpy.isinf(x),
    "Or": lambda a, b, _: a | b,
    "Not": lambda x, _: ~x,
    "Equal": lambda a, b, _: a == b,
    "Greater": lambda a, b, _: a > b,
    "Where": lambda c, a, b, _: numpy.where(c, a, b),
    "Cast": lambda x, attributes: x.astype(TYPES[attributes["to"]]),
    "ReduceSum": _sum,
    "ScatterND": _scatter,
    "Gather": lambda x, places, attributes: numpy.take(x, places, axis=attributes["axis"]),
    "Concat": lambda *parts: numpy.concatenate(parts[:-1], axis=parts[-1]["axis"]),
    "Squeeze": lambda x, axes, _: numpy.squeeze(x, tuple(axes)),
    "Unsqueeze": lambda x, axes, _: numpy.expand_dims(x, tuple(axes)),
}


def run(model: Any, inputs: dict[str, Any]) -> Any:
    """The output `logits` of an onnx.ModelProto."""
    import onnx.helper
    import onnx.numpy_helper

    values = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer} | inputs
    for node in model.graph.node:
        attributes = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
        values[node.output[0]] = OPERATIONS[node.op_type](*(values[name] for name in node.input), attributes)
    return values["logits"]
