"""The client of a DPAR server."""
from __future__ import annotations

import importlib
import os
from typing import Any, Sequence, TypeVar

from dpar import errors, names
from dpar.connect import resolve
from dpar.graph import GraphLike
from dpar.job import Job
from dpar.progress import Progress
from dpar.rpc import Connection, Service, new_request_id
from dpar.tables import Schema
from dpar.uploading import Upload, Uploaded, prepare
from dpar.v1 import budget_pb2, dataset_pb2, operator_pb2, privacy_pb2, server_pb2, training_pb2

_EVALUATION_SHARE = 0.1
T = TypeVar("T")


class Client:
    """A server, found as `dpar` finds it: by arguments, DPAR_SERVER and the like, or the profile of `dpar login`.

    Thread-safe. Calls are tried again after UNAVAILABLE and after nothing else; what changes something has a request
    id, so that it happens once. Datasets and jobs are given by id, by name, or as what a method returned; populations
    too, or as a dataset about their people.

        with dpar.Client() as client:
            job = client.train(client.upload("graph.npz"), epsilon=1)
            job.watch()
            model = job.download("model")
    """

    def __init__(
        self,
        server: str = "",
        *,
        ca: str = "",
        token: str = "",
        token_file: str = "",
        client_cert: str = "",
        client_key: str = "",
        profile: str = "",
        progress: bool = True,
    ) -> None:
        self._connection = Connection(
            resolve(
                server=server,
                ca=ca,
                token=token,
                token_file=token_file,
                client_cert=client_cert,
                client_key=client_key,
                profile=profile,
            )
        )
        self._progress = progress
        self._tenant: str | None = None
        self.rpc = {name: Service(self._connection, name) for name in self._connection.services()}

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()

    # The server, and who asks.

    def whoami(self) -> server_pb2.Identity:
        """Whom the token belongs to."""
        return self._call(server_pb2.Identity, "ServerService/WhoAmI")

    def info(self) -> server_pb2.ServerInfo:
        """Version, limits and devices of the server."""
        return self._call(server_pb2.ServerInfo, "ServerService/GetServerInfo")

    def signing_keys(self) -> list[server_pb2.SigningKey]:
        """The public keys that certificates are or were signed with, the newest first."""
        return list(self._call(server_pb2.ListSigningKeysResponse, "ServerService/ListSigningKeys").keys)

    @property
    def tenant(self) -> str:
        """The token's tenant; empty for an operator."""
        if self._tenant is None:
            self._tenant = self.whoami().tenant
        return self._tenant

    # Datasets.

    def upload(
        self,
        graph: GraphLike,
        *,
        name: str = "",
        population: Any = None,
        classes: int | Sequence[str] | None = None,
        labels: Any = None,
        schema: Schema | str | os.PathLike[str] | None = None,
        accept_observed: bool = False,
        public: bool = False,
        cap_epsilon: float | None = None,
        cap_delta: float | None = None,
        max_degree: int | None = None,
        edge_bound: int | None = None,
        entry_bound: int | None = None,
        tenant: str = "",
    ) -> Uploaded:
        """Sends a graph (`dpar.GraphLike`) and seals it, with a privacy budget.

        `population` says whose people these are, if an earlier upload was about them: its budget goes on. Left out,
        these are other people with a budget of their own.

        `classes` (their number or names) is needed unless the file or the schema states it. Caps, `max_degree` and the
        bounds are declared for good and public, as `dpar upload --help` says. Ids and class names stay here.
        """
        if population is not None and (public or cap_epsilon is not None or cap_delta is not None):
            raise names.invalid(
                "population",
                "population= goes without public=, cap_epsilon= and cap_delta=: the population has its cap",
            )
        made, schema_text = prepare(graph, classes, labels, schema, accept_observed, public)
        limits = self.info().limits
        if entry_bound is None and schema_text:
            entry_bound = min(made.node_count * Schema(schema_text).max_entries, limits.max_feature_entries)
        made.native.check_bounds(edge_bound, entry_bound, limits.max_edges, limits.max_feature_entries)
        request = dataset_pb2.OpenUploadRequest(
            parent=self._parent(tenant),
            request_id=new_request_id(),
            dataset_id=name,
            population="" if population is None else self._population(population),
            node_count=made.node_count,
            feature_count=made.feature_count,
            class_count=made.class_count,
            is_public=public,
            cap_epsilon=cap_epsilon,
            cap_delta=cap_delta,
            max_degree=max_degree,
            edge_bound=edge_bound,
            entry_bound=entry_bound,
            schema=schema_text,
            format=dataset_pb2.OpenUploadRequest.NPZ,
        )
        others = self._populations(tenant) if population is None and not public else ()
        with Progress(self._progress) as progress:
            if others:
                progress.say(
                    "note: without population= these count as people of whom nothing was uploaded before, with a "
                    f"budget of their own. If they are people of one of {', '.join(others)}, name it: budgets belong "
                    "to people, not to uploads"
                )
            for note in [] if schema_text else made.notes():
                progress.say(f"note: {note}")
            try:
                return Upload(self._connection, progress).run(made, request, limits.max_chunk_bytes, others)
            except KeyboardInterrupt:
                raise errors.Interrupted(
                    "the upload was stopped; client.datasets() says whether it was sealed before"
                ) from None

    def dataset(self, dataset: Any) -> dataset_pb2.Dataset:
        """One dataset."""
        return self._call(dataset_pb2.Dataset, "DatasetService/GetDataset", name=self._name("datasets", dataset))

    def datasets(self, tenant: str = "") -> list[dataset_pb2.Dataset]:
        """A tenant's datasets, oldest first."""
        return list(self._connection.pages("DatasetService", "ListDatasets", "datasets", parent=self._parent(tenant)))

    def delete_dataset(self, dataset: Any) -> None:
        """Removes a dataset's files. Its population stays, with budget and ledger."""
        self._call(
            dataset_pb2.DeleteDatasetResponse,
            "DatasetService/DeleteDataset",
            name=self._name("datasets", dataset),
            request_id=new_request_id(),
        )

    # Jobs.

    def train(self, dataset: Any, epsilon: float | None = None, *, priority: int = 0, **options: Any) -> Job:
        """Queues a job. Options are those of `spec`."""
        return self._create(self.spec(dataset, epsilon, **options), priority=priority)

    def plan(self, dataset: Any, epsilon: float | None = None, **options: Any) -> Job:
        """The plan and the price of that job. Spends nothing, and nothing is queued."""
        return self._create(self.spec(dataset, epsilon, **options), validate_only=True)

    def spec(
        self,
        dataset: Any,
        epsilon: float | None = None,
        *,
        delta: float | None = None,
        method: str = "auto",
        preset: str = "",
        accountant: str = "",
        non_private: bool = False,
        seed: int | None = None,
        evaluate: float | None = None,
        evaluation_share: float = _EVALUATION_SHARE,
        **options: Any,
    ) -> training_pb2.TrainingSpec:
        """What is asked for; unset is chosen by the server. Methods and the like go by the names of the command.

        `evaluate` is the share of nodes held out for a charged accuracy. `options` are the fields of TrainingOptions.
        """
        spec = training_pb2.TrainingSpec(
            dataset=self._name("datasets", dataset),
            epsilon=epsilon or 0.0,
            delta=delta,
            non_private=non_private,
            seed=seed,
            method=_enumerator(training_pb2.Method, "method", method or "auto"),
        )
        if preset:
            spec.preset = _enumerator(training_pb2.Preset, "preset", preset)
        if accountant:
            spec.accountant = _enumerator(privacy_pb2.Accountant, "accountant", accountant)
        if evaluate is not None:
            spec.evaluation.held_out_share, spec.evaluation.budget_share = evaluate, evaluation_share
        for name, value in options.items():
            field = training_pb2.TrainingOptions.DESCRIPTOR.fields_by_name.get(name)
            if field is None:
                known = ", ".join(sorted(training_pb2.TrainingOptions.DESCRIPTOR.fields_by_name))
                raise names.invalid(name, f"{name} is no option of training; there are {known}")
            if field.enum_type is not None and isinstance(value, str):
                value = _enumerator(getattr(training_pb2, field.enum_type.name), name, value)
            setattr(spec.options, name, value)
        return spec

    def job(self, job: Any) -> Job:
        """One job."""
        return self._job(self._call(training_pb2.Job, "TrainingService/GetJob", name=self._name("jobs", job)))

    def jobs(self, tenant: str = "") -> list[Job]:
        """A tenant's jobs, newest first."""
        found = self._connection.pages("TrainingService", "ListJobs", "jobs", parent=self._parent(tenant))
        return [self._job(message) for message in found]

    # Populations and their budgets. A population is given by its name or id, or as a dataset about its people: its name
    # or id, or what a method returned. Of an id that both have, the population's counts.

    def budget(self, population: Any) -> budget_pb2.Budget:
        """Cap, spend and what is left."""
        return self._call(budget_pb2.Budget, "BudgetService/GetBudget", name=self._population(population))

    def budgets(self, tenant: str = "") -> list[budget_pb2.Budget]:
        """The budgets of a tenant's populations, oldest first; for an operator who names none, of all."""
        parent = names.tenant_name(tenant) if tenant else self.tenant
        return list(self._connection.pages("BudgetService", "ListBudgets", "budgets", parent=parent))

    def spend(self, tenant: str = "") -> Any:
        """Every population with what was spent: a pandas DataFrame, or a list of dicts where there is no pandas."""
        fields = (
            "cap_epsilon",
            "cap_delta",
            "equivalent_epsilon",
            "largest_admissible_epsilon",
            "posted_percent",
            "reserved_percent",
            "cap_units",
            "posted_units",
            "reserved_units",
            "left_units",
            "live_events",
            "frozen_reason",
            "closed_reason",
            "merged_into",
        )
        rows = [
            {"population": budget.name} | {field: getattr(budget, field) for field in fields}
            for budget in self.budgets(tenant)
        ]
        try:
            pandas = importlib.import_module("pandas")
        except ImportError:
            return rows
        return pandas.DataFrame(rows, columns=["population", *fields])

    def ledger(self, population: Any) -> list[budget_pb2.LedgerEntry]:
        """What was reserved, posted, given back, debited and inherited, oldest first."""
        parent = self._population(population)
        return list(self._connection.pages("BudgetService", "ListLedgerEntries", "entries", parent=parent))

    def verify_chain(
        self, population: Any, known_sequence: int = 0, known_hash: str = ""
    ) -> budget_pb2.VerifyChainResponse:
        """Has the server recompute the ledger's hashes; with a known entry, that the chain still holds it."""
        return self._call(
            budget_pb2.VerifyChainResponse,
            "BudgetService/VerifyChain",
            name=self._population(population),
            known_sequence=known_sequence,
            known_hash=known_hash,
        )

    def merge_population(
        self, population: Any, *, into: Any, reason: str, allow_closing: bool = False
    ) -> budget_pb2.Budget:
        """Says that two populations hold the same people, for good; the budget that goes on. For owners.

        What both have spent adds up, and the smaller cap holds. Where their ledgers count at different orders and the
        one that ends has spent, no further job is admitted: that is refused without `allow_closing`. Takes names and
        ids of populations only (`uploaded.population` is one). The ledger keeps the reason.
        """
        return self._call(
            budget_pb2.Budget,
            "BudgetService/MergePopulation",
            name=self._name("populations", population),
            into=self._name("populations", into),
            reason=reason,
            allow_closing=allow_closing,
            request_id=new_request_id(),
        )

    # What operators and owners do; tokens and the rest are methods of client.rpc["OperatorService"].

    def create_tenant(self, tenant: str) -> operator_pb2.Tenant:
        """Makes a tenant."""
        return self._call(
            operator_pb2.Tenant, "OperatorService/CreateTenant", tenant_id=tenant, request_id=new_request_id()
        )

    def create_token(self, tenant: str, role: str, *, purpose: str = "") -> operator_pb2.CreateTokenResponse:
        """Makes a token; its secret is in the answer and nowhere else. Without a tenant: an operator's."""
        return self._call(
            operator_pb2.CreateTokenResponse,
            "OperatorService/CreateToken",
            parent=names.tenant_name(tenant) if tenant else "operator",
            request_id=new_request_id(),
            token=operator_pb2.Token(role=_enumerator(operator_pb2.Role, "role", role), purpose=purpose),
        )

    def set_cap(self, population: Any, cap_epsilon: float, reason: str) -> budget_pb2.Budget:
        """Sets a cap, with a reason that the ledger keeps."""
        return self._call(
            budget_pb2.Budget,
            "OperatorService/SetBudgetCap",
            name=self._population(population),
            cap_epsilon=cap_epsilon,
            reason=reason,
            request_id=new_request_id(),
        )

    def debit(self, population: Any, units: int, reason: str) -> budget_pb2.LedgerEntry:
        """Debits a budget for spend that happened elsewhere."""
        return self._call(
            budget_pb2.LedgerEntry,
            "OperatorService/AdjustLedger",
            name=self._population(population),
            debit_units=units,
            reason=reason,
            request_id=new_request_id(),
        )

    def _call(self, kind: type[T], method: str, **fields: Any) -> T:
        service, name = method.split("/")
        answer = self._connection.call(service, name, self._connection.message(service, name, **fields))
        assert isinstance(answer, kind)
        return answer

    def _create(self, spec: training_pb2.TrainingSpec, **fields: Any) -> Job:
        fields |= {"parent": names.tenant_of(spec.dataset), "spec": spec, "request_id": new_request_id()}
        return self._job(self._call(training_pb2.Job, "TrainingService/CreateJob", **fields))

    def _job(self, message: training_pb2.Job) -> Job:
        return Job(self._connection, message, self._progress)

    def _name(self, collection: str, resource: Any) -> str:
        text = names.text_of(resource)
        return names.resource_name(collection, text, "" if "/" in text else self.tenant)

    def _population(self, resource: Any) -> str:
        """The full name of a population, or of that of a dataset as it is now."""
        text = names.text_of(resource)
        if "/populations/" in text:
            return self._name("populations", text)
        if "/" not in text:
            name = self._name("populations", text)
            try:
                return self._call(budget_pb2.Budget, "BudgetService/GetBudget", name=name).name
            except errors.ScopeInsufficient:
                return name  # a token that may upload need not be able to look
            except errors.ResourceNotFound:
                pass
        dataset = self.dataset(text)
        if dataset.is_public:
            raise errors.ResourceNotFound(
                f"{dataset.name} is public: it has no population and no budget",
                code="NOT_FOUND",
                metadata={"resource": dataset.name},
            )
        return dataset.population

    def _populations(self, tenant: str) -> tuple[str, ...]:
        """The ids of those that a dataset may join; none where the token may not look."""
        try:
            return tuple(names.id_of(budget.name) for budget in self.budgets(tenant) if not budget.merged_into)
        except errors.ScopeInsufficient:
            return ()

    def _parent(self, tenant: str) -> str:
        parent = names.tenant_name(tenant) if tenant else self.tenant
        if not parent:
            raise names.invalid("tenant", "this token belongs to no tenant: name one with tenant=")
        return parent


def _enumerator(enum: Any, field: str, name: str) -> Any:
    """Of an enum, by its name in the spelling of `dpar` ("dpar-gm") or of the API ("DPAR_GM")."""
    values = {key: value for key, value in enum.items() if not key.endswith("_UNSPECIFIED")}
    key = name.upper().replace("-", "_")
    if key not in values:
        known = ", ".join(key.lower().replace("_", "-") for key in values)
        raise names.invalid(field, f"{field} is one of {known}; not '{name}'")
    return values[key]
