"""Schemas: how an owner's tables become a graph (docs/your-data.md). All of a schema is public."""
from __future__ import annotations

import os
import pathlib
from typing import Any

from dpar import _native


class Schema:
    """A schema in YAML or JSON.

    >>> text = '{"nodes": {"id": "id", "label": {"column": "kind", "classes": ["a", "b"]}, "columns": {"age": {"type": \
"number", "range": [0, 120]}}}, "edges": {"source": "from", "target": "to"}}'
    >>> Schema(text).classes
    ['a', 'b']
    """

    def __init__(self, text: str) -> None:
        self.text = text
        facts: dict[str, Any] = _native.schema_facts(text)
        self.id: str = facts["id"]
        self.label: str = facts["label"]
        self.classes: list[str] = facts["classes"]
        self.feature_count: int = facts["feature_count"]
        self.max_entries: int = facts["max_entries"]
        self.accepted_observed: list[str] = facts["accepted_observed"]

    @classmethod
    def read(cls, source: str | os.PathLike[str]) -> Schema:
        """The schema of a file; a text with a line or a brace in it is taken for the schema itself."""
        text = os.fspath(source)
        return cls(text if "\n" in text or text.lstrip().startswith("{") else pathlib.Path(text).read_text("utf-8"))

    @classmethod
    def draft(
        cls, nodes: str | os.PathLike[str], edges: str | os.PathLike[str], *, id: str = "", label: str = ""
    ) -> tuple[str, list[tuple[str, str]]]:
        """A first schema of two CSV files, as YAML, and the questions that their owner has to answer in it."""
        yaml, questions = _native.draft_schema(os.fspath(nodes), os.fspath(edges), id, label)
        return yaml, questions

    def answered(self, *, accept_observed: bool = False, public: bool = False) -> str:
        """The canonical form, which is what is uploaded. Open questions are refused unless accepted or public."""
        return _native.answered_schema(self.text, accept_observed, public)
