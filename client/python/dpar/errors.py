"""What can go wrong: one exception class for each reason of the API.

Every exception has `code` (the gRPC code), `reason`, `message`, `metadata` (figures such as `left_units`) and `hint`
(what to do next). Catch the reason that you can act on, or `Error` for all of them.

>>> from dpar import errors
>>> try:
...     raise errors.make_error("FAILED_PRECONDITION", "PRIVACY_BUDGET_EXHAUSTED", "too much", {"left_units": "7"})
... except errors.PrivacyBudgetExhausted as error:
...     print(error.metadata["left_units"])
7
"""
from __future__ import annotations

from typing import Mapping


class Error(Exception):
    """Any failure of this package or of a server. Without a reason, `code` says what kind it is."""

    reason: str = ""
    advice: str = ""

    def __init__(self, message: str, *, code: str = "", metadata: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.metadata: dict[str, str] = dict(metadata or {})

    @property
    def hint(self) -> str:
        """What to do next; empty where the message says it."""
        return self.advice.format_map(_Metadata(self.metadata))

    def __str__(self) -> str:
        return f"{self.message}\n  try: {self.hint}" if self.hint else self.message

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: the message without a traceback through this package."""
        return [f"{type(self).__name__}: {self}"]


class _Metadata(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return "?"


class InvalidField(Error):
    """An argument is missing, malformed or out of range; `metadata["field"]` names it."""

    reason = "INVALID_FIELD"


class InvalidGraph(Error):
    """The graph or table cannot be accepted; `metadata` has the array and, of one entry, the position."""

    reason = "INVALID_GRAPH"
    advice = "dpar.Graph.read(path) checks a file without sending it"


class UploadDigestMismatch(Error):
    """The file changed while it was uploaded."""

    reason = "UPLOAD_DIGEST_MISMATCH"
    advice = "upload again, and leave the file alone meanwhile"


class TokenMissing(Error):
    """No token is given."""

    reason = "TOKEN_MISSING"
    advice = "dpar.Client(token=...), or DPAR_TOKEN_FILE, or `dpar login --server HOST:PORT --ca FILE`"


class TokenInvalid(Error):
    """The token is not known, has expired or was revoked."""

    reason = "TOKEN_INVALID"
    advice = "check DPAR_TOKEN, DPAR_TOKEN_FILE or the profile; an operator makes a new one: `dpar token create`"


class RoleInsufficient(Error):
    """The token's role may not do this."""

    reason = "ROLE_INSUFFICIENT"
    advice = "use a token with the role {required}"


class ScopeInsufficient(Error):
    """The token was made for other scopes."""

    reason = "SCOPE_INSUFFICIENT"
    advice = "use a token with the scope {required}; client.whoami() shows what this one was made for"


class ResourceNotFound(Error):
    """There is no such resource, or the caller may not know of it."""

    reason = "RESOURCE_NOT_FOUND"
    advice = "client.datasets(), client.budgets() and client.jobs() list what there is; public data has no budget"


class ResourceExists(Error):
    """The id is taken, now or by a deleted resource."""

    reason = "RESOURCE_EXISTS"
    advice = "choose another name; deleted ones stay taken"


class RequestIdReused(Error):
    """The request id was used before with another request."""

    reason = "REQUEST_ID_REUSED"
    advice = "leave request_id out: every call then has one of its own"


class PrivacyBudgetExhausted(Error):
    """The population's budget cannot pay for this job; nothing was queued or spent."""

    reason = "PRIVACY_BUDGET_EXHAUSTED"
    advice = (
        "epsilon={largest_admissible_epsilon} would be admitted now; client.ledger(population) shows what was spent"
    )


class CapAboveDefault(Error):
    """The cap is above what an owner may set."""

    reason = "CAP_ABOVE_DEFAULT"
    advice = "leave cap_epsilon and cap_delta out, or ask for less; an operator raises a cap: client.set_cap(...)"


class PrivacyUnreachable(Error):
    """No noise meets this epsilon and delta."""

    reason = "PRIVACY_UNREACHABLE"
    advice = "a larger epsilon or delta; dpar.privacy.calibrate shows what is reachable"


class DatasetInUse(Error):
    """The dataset has jobs that are not finished."""

    reason = "DATASET_IN_USE"
    advice = "wait for its jobs, or cancel them"


class JobNotSucceeded(Error):
    """The job has no model and no certificate: it has not ended, failed, or was cancelled."""

    reason = "JOB_NOT_SUCCEEDED"
    advice = "job.watch() follows it to its end"


class JobEnded(Error):
    """The job has already ended, so it cannot be cancelled."""

    reason = "JOB_ENDED"
    advice = "job.refresh().state says how it ended"


class UploadIncomplete(Error):
    """The upload has ended, or bytes are missing."""

    reason = "UPLOAD_INCOMPLETE"
    advice = "upload again, and leave the file alone meanwhile"


class ContentHasBudget(Error):
    """The same content was uploaded as private before; it cannot be declared public."""

    reason = "CONTENT_HAS_BUDGET"
    advice = "upload it without public=True; its budget goes on"


class BudgetFrozen(Error):
    """No job runs on this population until an operator has settled what was spent."""

    reason = "BUDGET_FROZEN"
    advice = "client.budget(population).frozen_reason says why; an operator settles it: `dpard thaw`"


class ContentWasPublic(Error):
    """The same content was declared public before, so no budget bounds what was learnt from it."""

    reason = "CONTENT_WAS_PUBLIC"
    advice = "upload it with public=True; no budget can promise anything about it any more"


class DatasetOutOfService(Error):
    """The stored file is damaged. Nothing was reserved."""

    reason = "DATASET_OUT_OF_SERVICE"
    advice = "upload the graph again under another name: its budget goes on"


class ContentHasPopulation(Error):
    """The same content belongs to another population already; `metadata["population"]` names it."""

    reason = "CONTENT_HAS_POPULATION"
    advice = "upload it with population='{population}'; client.merge_population(...) if both hold the same people"


class PopulationInUse(Error):
    """Jobs of the population are queued or running."""

    reason = "POPULATION_IN_USE"
    advice = "wait for its jobs, or cancel them"


class PopulationClosed(Error):
    """The population admits no job any more; `metadata["merged_into"]` names the one that it was merged into."""

    reason = "POPULATION_CLOSED"
    advice = "client.budget(population) says why (closed_reason), and who holds its people now (merged_into)"


class UploadOffsetMismatch(Error):
    """The bytes do not start where the server's end."""

    reason = "UPLOAD_OFFSET_MISMATCH"
    advice = "upload again"


class LimitExceeded(Error):
    """A limit of the server was exceeded; `metadata` names it."""

    reason = "LIMIT_EXCEEDED"
    advice = "stay below {limit} = {maximum}, or ask the operator to raise it"


class ServerUnavailable(Error):
    """The server cannot be reached, is shutting down or is busy; every call was tried again before this was raised."""

    reason = "SERVER_UNAVAILABLE"
    advice = "check the server's address and CA (DPAR_SERVER, DPAR_CA); a job goes on without its watchers"


class NotImplementedByServer(Error):
    """The method or option is not part of this server."""

    reason = "NOT_IMPLEMENTED"
    advice = "leave that option out, or ask the operator for a newer dpard"


class InternalFault(Error):
    """A fault of the server."""

    reason = "INTERNAL_FAULT"
    advice = "ask the operator to look at the server's log"


class StoreCorrupt(Error):
    """Stored state failed its check."""

    reason = "STORE_CORRUPT"
    advice = "ask the operator to look at the server's log"


class Interrupted(KeyboardInterrupt):
    """Ctrl-C. Says what goes on without you; a notebook shows it in one line."""

    def _render_traceback_(self) -> list[str]:
        return [f"Interrupted: {self}"]


class VerificationFailed(Error):
    """A certificate did not pass; `checks` says which parts."""


_BY_REASON = {kind.reason: kind for kind in Error.__subclasses__() if kind.reason}


def make_error(code: str, reason: str, message: str, metadata: Mapping[str, str]) -> Error:
    """The exception for a code and reason as the API names them."""
    if not reason and code == "UNAVAILABLE":
        reason = "SERVER_UNAVAILABLE"
    return _BY_REASON.get(reason, Error)(message, code=code, metadata=metadata)
