"""For users of PyTorch: what C++ knows of a query graph, on tensors.

`torch.jit.load("model.pt")(x)` and onnxruntime give logits of each node's own features. The rule that uses the edges of
the query graph, and the correction of label shift, are `propagate`.
"""
from __future__ import annotations

import importlib
from typing import Any

from dpar.model import Model


def propagate(logits: Any, edge_index: Any, model: Model, *, propagation: str = "", shift: bool = True) -> Any:
    """Class probabilities as a tensor, from logits (n x c) and edges (2 x m, as PyTorch Geometric has them).

    With the logits of `model.pt` on the rows of a graph, the largest of each row is what `model.predict` gives.
    """
    torch = importlib.import_module("torch")
    rows = model.propagate(logits, edge_index, propagation=propagation, shift=shift)
    return torch.from_numpy(rows).to(getattr(logits, "device", "cpu"))
