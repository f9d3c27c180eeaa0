"""Calls to a server: credentials, retries of what is worth one, and errors as exceptions of dpar.errors."""
from __future__ import annotations

import importlib
import random
import time
import uuid
from typing import Any, Callable, Iterable, Iterator, TypeVar

import grpc

from dpar import _native, errors
from dpar.connect import Settings

_ATTEMPTS = 4
_FIRST_DELAY, _LONGEST_DELAY, _LONGEST_ASKED = 0.2, 5.0, 60.0
_CALL_SECONDS = 60.0
_PAGE_SIZE = 1000
_PROTOS = ("dataset", "training", "budget", "operator", "server", "overview")
_CHANNEL_OPTIONS = (
    ("grpc.max_receive_message_length", 16 << 20),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2000),
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    # A quiet watch has no data between pings; by default gRPC would stop after two of them.
    ("grpc.http2.max_pings_without_data", 0),
)
T = TypeVar("T")


def new_request_id() -> str:
    """An id that this client uses for one request only."""
    return uuid.uuid4().hex


def retry_delay(attempt: int, asked: float | None, jitter: float) -> float:
    """Seconds before retry `attempt` (0, 1, ...): doubling from 0.2 to 5 s, and at least what the server asks for.

    >>> retry_delay(0, None, 1.0), retry_delay(9, None, 1.0), retry_delay(0, 4.0, 0.0)
    (0.2, 5.0, 4.0)
    """
    delay = min(_LONGEST_DELAY, _FIRST_DELAY * 2.0 ** min(attempt, 10)) * (0.5 + 0.5 * jitter)
    return delay if asked is None else max(delay, min(asked, _LONGEST_ASKED) * (1 + 0.25 * jitter))


class Failure:
    """A failed call: the exception for it, and whether and when to try again."""

    def __init__(self, error: grpc.RpcError, server: str) -> None:
        code = error.code()
        details = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin", b"")
        reason, metadata, self.asked = _native.read_details(details)
        message = error.details() or code.name
        if code is grpc.StatusCode.UNAVAILABLE and not reason:
            message = f"cannot reach the server at {server}: {message}"
        self.error = errors.make_error(code.name, reason, message, metadata)
        self.is_unavailable = code is grpc.StatusCode.UNAVAILABLE
        # A stream that a stopping server cut ends as CANCELLED or UNKNOWN, without a reason.
        self.is_transport = self.is_unavailable or (
            not reason and code in (grpc.StatusCode.CANCELLED, grpc.StatusCode.UNKNOWN)
        )


class Connection:
    """A channel with credentials. Thread-safe. No call is made before the first method."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        tls = grpc.ssl_channel_credentials(
            settings.ca_pem, settings.client_key_pem or None, settings.client_certificate_pem or None
        )
        self._channel = grpc.secure_channel(settings.server, tls, options=_CHANNEL_OPTIONS)
        self._metadata = (("authorization", f"Bearer {settings.token}"),) if settings.token else ()
        self._services = {
            service.name: service
            for proto in _PROTOS
            for service in importlib.import_module(f"dpar.v1.{proto}_pb2").DESCRIPTOR.services_by_name.values()
        }

    def close(self) -> None:
        """Ends every call."""
        self._channel.close()

    def services(self) -> dict[str, list[str]]:
        """Every service of the API and its methods."""
        return {name: [method.name for method in service.methods] for name, service in self._services.items()}

    def start(self, service: str, method: str, request: Any, seconds: float | None = None) -> Any:
        """gRPC's call, with neither retries nor errors translated: an iterator or a future."""
        described = self._services[service].methods_by_name[method]
        module = importlib.import_module(described.input_type.file.name.replace(".proto", "_pb2").replace("/", "."))
        answers = importlib.import_module(described.output_type.file.name.replace(".proto", "_pb2").replace("/", "."))
        path = f"/{self._services[service].full_name}/{method}"
        to_bytes = getattr(module, described.input_type.name).SerializeToString
        from_bytes = getattr(answers, described.output_type.name).FromString
        if method in ("WatchJob", "DownloadModel"):
            return self._channel.unary_stream(path, to_bytes, from_bytes)(request, metadata=self._metadata)
        if method == "WriteUpload":
            return self._channel.stream_unary(path, to_bytes, from_bytes).future(request, metadata=self._metadata)
        return self._channel.unary_unary(path, to_bytes, from_bytes).future(
            request, timeout=seconds, metadata=self._metadata
        )

    def message(self, service: str, method: str, **fields: Any) -> Any:
        """A request of the method."""
        described = self._services[service].methods_by_name[method].input_type
        module = importlib.import_module(described.file.name.replace(".proto", "_pb2").replace("/", "."))
        return getattr(module, described.name)(**fields)

    def failure(self, error: grpc.RpcError) -> Failure:
        """What a failed call means."""
        return Failure(error, self.settings.server)

    def pause(self, attempt: int, asked: float | None) -> None:
        """Waits before retry `attempt`. gRPC connects only while someone waits for it."""
        end = time.monotonic() + retry_delay(attempt, asked, random.random())
        ready = grpc.channel_ready_future(self._channel)
        try:
            ready.result(timeout=end - time.monotonic())
        except grpc.FutureTimeoutError:
            pass
        finally:
            ready.cancel()
        time.sleep(max(0.0, end - time.monotonic()))

    def persist(self, attempt: Callable[[], T]) -> T:
        """Calls attempt(), and again after UNAVAILABLE, three times at most."""
        for tries in range(_ATTEMPTS):
            try:
                return attempt()
            except grpc.RpcError as error:
                failure = self.failure(error)
            if not failure.is_unavailable or tries + 1 == _ATTEMPTS:
                raise failure.error from None
            self.pause(tries, failure.asked)
        raise AssertionError("unreachable")

    def call(self, service: str, method: str, request: Any, seconds: float = _CALL_SECONDS) -> Any:
        """A unary call. Each is a read, is idempotent or has a request id, so it may be sent again."""

        def attempt() -> Any:
            future = self.start(service, method, request, seconds)
            try:
                return future.result()
            except KeyboardInterrupt:
                future.cancel()
                raise

        return self.persist(attempt)

    def pages(self, service: str, method: str, items: str, **fields: Any) -> Iterator[Any]:
        """The items of every page of a list."""
        request = self.message(service, method, page_size=_PAGE_SIZE, **fields)
        while True:
            page = self.call(service, method, request)
            yield from getattr(page, items)
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token


class Service:
    """Every method of a service under its own name, with a request's fields as arguments.

    `client.rpc["BudgetService"].GetBudget(name=...)` returns the message; streams are iterators.
    """

    def __init__(self, connection: Connection, name: str) -> None:
        self._connection = connection
        self._name = name
        self._methods = connection.services()[name]

    def __dir__(self) -> Iterable[str]:
        return self._methods

    def __getattr__(self, method: str) -> Callable[..., Any]:
        if method not in self._methods:
            raise AttributeError(f"{self._name} has no method {method!r}; it has {', '.join(self._methods)}")

        def invoke(request: Any = None, **fields: Any) -> Any:
            if method == "WriteUpload":
                return self._result(self._connection.start(self._name, method, request))
            message = self._connection.message(self._name, method, **fields) if request is None else request
            if "request_id" in message.DESCRIPTOR.fields_by_name and not message.request_id:
                message.request_id = new_request_id()
            if method in ("WatchJob", "DownloadModel"):
                return self._stream(self._connection.start(self._name, method, message))
            return self._connection.call(self._name, method, message)

        return invoke

    def _result(self, future: Any) -> Any:
        try:
            return future.result()
        except grpc.RpcError as error:
            raise self._connection.failure(error).error from None

    def _stream(self, stream: Any) -> Iterator[Any]:
        try:
            yield from stream
        except grpc.RpcError as error:
            raise self._connection.failure(error).error from None
        finally:
            stream.cancel()
