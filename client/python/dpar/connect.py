"""Where to connect and with which credentials: from arguments, the environment and the profile, as `dpar` does."""
from __future__ import annotations

import dataclasses
import os
import pathlib
import re
from typing import Mapping

from dpar import errors

DEFAULT_SERVER = "127.0.0.1:7443"
_MOST_BYTES = 1 << 20
_ID = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


@dataclasses.dataclass(frozen=True)
class Settings:
    """What a connection needs. A token comes before a client certificate."""

    server: str
    ca_pem: bytes
    token: str = dataclasses.field(default="", repr=False)
    client_certificate_pem: bytes = b""
    client_key_pem: bytes = dataclasses.field(default=b"", repr=False)


def _invalid(field: str, message: str) -> errors.Error:
    return errors.InvalidField(message, code="INVALID_ARGUMENT", metadata={"field": field})


def _token_missing(message: str) -> errors.Error:
    return errors.TokenMissing(message, code="UNAUTHENTICATED")


def read_small_file(field: str, path: str | os.PathLike[str]) -> bytes:
    """A key, a token or a certificate: a regular file of at most 1 MiB."""
    try:
        file = pathlib.Path(path)
        if not file.is_file():
            raise _invalid(field, f"cannot read '{path}': there is no such file")
        with file.open("rb") as stream:
            content = stream.read(_MOST_BYTES + 1)
    except OSError as error:
        raise _invalid(field, f"cannot read '{path}': {error.strerror}") from None
    if len(content) > _MOST_BYTES:
        raise _invalid(field, f"'{path}' is too large to be a certificate, a key or a token")
    return content


def _xdg(variable: str, below_home: str) -> pathlib.Path | None:
    base = os.environ.get(variable, "")
    if base.startswith("/"):  # the XDG specification: a relative path is to be ignored
        return pathlib.Path(base) / "dpar"
    home = os.environ.get("HOME", "")
    return pathlib.Path(home) / below_home / "dpar" if home else None


def data_directory() -> pathlib.Path | None:
    """$XDG_DATA_HOME/dpar, or ~/.local/share/dpar."""
    return _xdg("XDG_DATA_HOME", ".local/share")


class _Profile:
    """Files of a profile that `dpar login` keeps; a missing one is empty."""

    def __init__(self, directory: pathlib.Path | None) -> None:
        self._directory = directory

    def read(self, name: str) -> str:
        if self._directory is None:
            return ""
        try:
            return (self._directory / name).read_text().strip()
        except (OSError, UnicodeDecodeError):
            return ""


def _load_profile(name: str, server: str) -> _Profile:
    config = _xdg("XDG_CONFIG_HOME", ".config")
    asked = name or ("" if config is None else _Profile(config).read("profile"))
    if not asked or (not name and not _ID.fullmatch(asked)):
        return _Profile(None)
    directory = None if config is None else config / "profiles" / asked
    if directory is None or not _ID.fullmatch(asked) or not (directory / "server").exists():
        if name:
            raise errors.ResourceNotFound(f"there is no profile '{name}'", code="NOT_FOUND", metadata={"profile": name})
        return _Profile(None)  # a current profile whose files are gone counts as none
    profile = _Profile(directory)
    # Its authority and its token are for its own server.
    return profile if server in ("", profile.read("server")) else _Profile(None)


def _token(argument: str, token_file: str, environment_token: str, environment_file: str, profile: _Profile) -> str:
    token = argument
    if not token and token_file:
        token = _token_of_file(token_file)
    if not token and not token_file:
        token = environment_token or (_token_of_file(environment_file) if environment_file else profile.read("token"))
        if not token and not environment_token and not environment_file:
            raise _token_missing("no token is given: log in, or set DPAR_TOKEN_FILE, DPAR_TOKEN or token=")
    token = token.strip()
    if not token or not all(" " < character <= "~" for character in token):
        raise _token_missing("the token is empty or holds characters that no token has")
    return token


def _token_of_file(path: str) -> str:
    try:
        return read_small_file("token-file", path).decode("latin-1")
    except errors.InvalidField as error:
        raise _token_missing(f"no token is given: {error.message}") from None


def _client_certificate(certificate: str, key: str, profile: _Profile) -> tuple[bytes, bytes]:
    if bool(certificate) != bool(key):
        raise _invalid(
            "client-cert",
            "a client certificate and its key go together: set client_cert and client_key, "
            "or DPAR_CLIENT_CERT and DPAR_CLIENT_KEY",
        )
    if not certificate:
        return profile.read("client.pem").encode(), profile.read("client.key").encode()
    pems = read_small_file("client-cert", certificate), read_small_file("client-key", key)
    if b"-----BEGIN CERTIFICATE-----" not in pems[0]:
        raise _invalid("client-cert", f"'{certificate}' holds no PEM certificate")
    if b"PRIVATE KEY-----" not in pems[1]:
        raise _invalid("client-key", f"'{key}' holds no PEM private key")
    return pems


def resolve(
    *,
    server: str = "",
    ca: str = "",
    token: str = "",
    token_file: str = "",
    client_cert: str = "",
    client_key: str = "",
    profile: str = "",
) -> Settings:
    """Arguments come first, then the environment, then the profile. A profile given here comes before the environment.

    >>> import os, tempfile
    >>> with tempfile.NamedTemporaryFile("w") as ca:
    ...     print("-----BEGIN CERTIFICATE-----", file=ca, flush=True)
    ...     resolve(server="example:7443", ca=ca.name, token="dpar_x").server
    'example:7443'
    """
    environment: Mapping[str, str] = {} if profile else os.environ
    server = server or environment.get("DPAR_SERVER", "")
    kept = _load_profile(profile or environment.get("DPAR_PROFILE", ""), server)
    ca = ca or environment.get("DPAR_CA", "")
    ca_pem = read_small_file("ca", ca) if ca else kept.read("ca.pem").encode()
    if not ca_pem:
        raise _invalid(
            "ca",
            "no certificate authority is given, so the server cannot be told from an impostor: set ca= "
            "or DPAR_CA to the server's tls/ca.pem",
        )
    if b"-----BEGIN CERTIFICATE-----" not in ca_pem:
        raise _invalid("ca", f"'{ca}' holds no PEM certificate")
    certificate, key = _client_certificate(
        client_cert or environment.get("DPAR_CLIENT_CERT", ""),
        client_key or environment.get("DPAR_CLIENT_KEY", ""),
        kept,
    )
    variables = environment.get("DPAR_TOKEN", ""), environment.get("DPAR_TOKEN_FILE", "")
    if not certificate or token or token_file or any(variables) or kept.read("token"):
        token = _token(token, token_file, *variables, kept)
    return Settings(server or kept.read("server") or DEFAULT_SERVER, ca_pem, token, certificate, key)
