"""Certificates: the signed statement of what a model's training cost. Checked offline, recomputed, by the C++ core."""
from __future__ import annotations

import base64
import dataclasses
import json
import os
import pathlib
from typing import Any, Sequence, Union

from dpar import _native, errors
from dpar.connect import read_small_file

KeyLike = Union[str, bytes, "os.PathLike[str]"]
"""A trusted public key: a PEM text, a file of keys, or a directory of such files."""


@dataclasses.dataclass(frozen=True)
class Check:
    """One part of a verification."""

    name: str
    passed: bool
    detail: str


@dataclasses.dataclass(frozen=True)
class Verification:
    """What was checked. `statement` is None unless the signature holds: unsigned content could say anything."""

    key_id: str
    checks: tuple[Check, ...]
    recomputed_epsilon: float
    statement: dict[str, Any] | None

    @property
    def passed(self) -> bool:
        """Whether every check did."""
        return all(check.passed for check in self.checks)

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        return "\n".join(
            f"{'ok    ' if check.passed else 'FAILED'}  {check.name}: {check.detail}" for check in self.checks
        )

    def require(self) -> Verification:
        """Itself, or VerificationFailed."""
        if not self.passed:
            raise errors.VerificationFailed(f"the certificate does not hold:\n{self}")
        return self


class Certificate:
    """A certificate and the model files beside it.

    `Certificate.read("out/certificate.json").verify(key="signing.pub")` needs no network.
    """

    def __init__(self, envelope: bytes, directory: pathlib.Path | None = None, model_sha256: str = "") -> None:
        self.envelope = envelope
        self._directory = directory
        self._model_sha256 = model_sha256  # of the file of a model that was read; then verify checks that one too

    @classmethod
    def read(cls, path: str | os.PathLike[str], *, model_sha256: str = "") -> Certificate:
        """The certificate.json of a download."""
        return cls(read_small_file("certificate", path), pathlib.Path(path).parent, model_sha256)

    @property
    def unverified_statement(self) -> dict[str, Any]:
        """What it says, whoever signed it."""
        try:
            statement = json.loads(base64.b64decode(json.loads(self.envelope)["payload"]))
        except (ValueError, KeyError, TypeError):
            raise errors.InvalidField(
                "the file is not a certificate", code="INVALID_ARGUMENT", metadata={"field": "certificate"}
            ) from None
        assert isinstance(statement, dict)
        return statement

    @property
    def dataset_digest(self) -> str:
        """The keyed digest of the graph that it is about."""
        return _native.dataset_digest(self.envelope)

    def verify(
        self, key: KeyLike | Sequence[KeyLike] | None = None, files: Sequence[str | os.PathLike[str]] | None = None
    ) -> Verification:
        """Checks signature, model files, the event against the plan, and epsilon by recomputing it.

        `key`: whom to trust. Without it, the signing.pub beside the certificate: whoever made both could sign anything.
        `files`: the model files; without them, all that stand beside the certificate and that it names.
        """
        if key is None:
            if self._directory is None:
                raise errors.InvalidField(
                    "no key is given, and the certificate was not read from a directory with one",
                    code="INVALID_ARGUMENT",
                    metadata={"field": "key"},
                )
            key = self._directory / "signing.pub"
        keys = [key] if isinstance(key, (str, bytes, os.PathLike)) else list(key)
        if files is None:
            files = self._subject_files()
        if not files:
            raise errors.InvalidField(
                "there is no model file to check: a certificate without its model proves nothing about one",
                code="INVALID_ARGUMENT",
                metadata={"field": "model"},
            )
        for file in files:
            if not pathlib.Path(file).is_file():
                raise errors.InvalidField(
                    f"cannot read '{file}': there is no such file", code="INVALID_ARGUMENT", metadata={"field": "model"}
                )
        found = _native.verify_certificate(
            self.envelope, [text for one in keys for text in _key_texts(one)], [os.fspath(file) for file in files]
        )
        statement = found["statement"]
        return Verification(
            found["key_id"],
            tuple(Check(*check) for check in found["checks"]) + self._check_of_model(),
            found["recomputed_epsilon"],
            None if statement is None else json.loads(statement),
        )

    def _check_of_model(self) -> tuple[Check, ...]:
        if not self._model_sha256:
            return ()
        named = [subject.get("digest", {}).get("sha256") for subject in self.unverified_statement.get("subject", [])]
        passed = self._model_sha256 in named
        detail = f"sha256 {self._model_sha256}, {'' if passed else 'not '}among the certificate's files"
        return (Check("model as it was read", passed, detail),)

    def _subject_files(self) -> list[pathlib.Path]:
        if self._directory is None:
            return []
        named = [
            self._directory / pathlib.Path(subject["name"]).name
            for subject in self.unverified_statement.get("subject", [])
        ]
        return [file for file in named if file.is_file()]


def _key_texts(key: KeyLike) -> list[str]:
    if isinstance(key, bytes):
        return [key.decode("latin-1")]
    if isinstance(key, str) and "-----BEGIN" in key:
        return [key]
    path = pathlib.Path(key)
    files = [path]
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix in (".pub", ".pem"))
        if not files:
            raise errors.InvalidField(
                f"the directory '{path}' holds no key (*.pub or *.pem)",
                code="INVALID_ARGUMENT",
                metadata={"field": "key"},
            )
    return [read_small_file("key", file).decode("latin-1") for file in files]
