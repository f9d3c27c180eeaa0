"""Populations: versions of a graph about the same people share one budget, however a population is named."""
import contextlib
import io
import os
import pathlib

import dpar
from dpar import errors
from dpar.v1.budget_pb2 import LedgerEntry
from support import ServerTest, main, make_graph

SHORT = {"method": "features", "steps": 20}


class VersionsTest(ServerTest):
    def test_versions_about_the_same_people_share_one_budget(self) -> None:
        january = self.client.upload(make_graph(50), name="people", cap_epsilon=4)
        self.assertEqual(january.population, f"{self.client.tenant}/populations/people")
        self.assertEqual((january.budget_shared, january.other_populations), (False, ()))
        given = [
            "people",
            january.population,
            january,
            january.name,
            self.client.dataset("people"),
            self.client.budget("people"),
        ]
        for seed, population in enumerate(given, 51):
            version = self.client.upload(make_graph(seed), population=population)
            self.assertEqual(version.population, january.population)
            self.assertEqual((version.budget_shared, version.other_populations), (True, ()))
        self.assertEqual([budget.name for budget in self.client.budgets()], [january.population])
        self.assertEqual(self.client.budget("people").node_total, 300 * (1 + len(given)))
        spent = 0
        for dataset in (january, version):
            job = self.client.train(dataset, epsilon=1, **SHORT)
            self.assertEqual(job.watch(progress=False), "SUCCEEDED")
            spent += job.plan.price_units
        self.assertEqual(self.client.budget(january).posted_units, spent)
        self.assertEqual(
            {entry.job for entry in self.client.ledger("people")} - {""}, {job.name for job in self.client.jobs()}
        )

    def test_the_script_of_the_documentation_runs(self) -> None:
        page = (pathlib.Path(os.environ["DPAR_SOURCE_DIR"]) / "docs" / "python.md").read_text()
        script = page.split("## Populations")[1].split("```python\n")[1].split("```")[0]
        for seed, month in ((48, "january"), (49, "march")):
            make_graph(seed).write(self.place / f"{month}.npz")
        with contextlib.chdir(self.place):
            exec(script, {"client": self.client})
        self.assertEqual(len(self.client.datasets()), 2)
        self.assertEqual([budget.cap_epsilon for budget in self.client.budgets()], [4])

    def test_every_way_to_name_a_population(self) -> None:
        january = self.client.upload(make_graph(60), name="people")
        march = self.client.upload(make_graph(61), name="march", population="people")
        message = self.client.dataset("march")
        budget = self.client.budget(january)
        ways = ("people", january.population, "march", march.name, january, march, message, budget)
        head = self.client.verify_chain("people").head_hash
        with self.server.operator() as operator:
            for way in ways:
                self.assertEqual(self.client.budget(way).name, january.population, way)
                self.assertEqual(self.client.ledger(way)[-1].hash, head, way)
                self.assertEqual(self.client.verify_chain(way).head_hash, head, way)
            for way in ways:
                if isinstance(way, str) and "/" not in way:
                    for call in (operator.budget, lambda way: operator.debit(way, 1, "elsewhere")):
                        with self.assertRaisesRegex(errors.InvalidField, f"tenants/TENANT/populations/{way}"):
                            call(way)
                else:
                    before = operator.budget(way).posted_units
                    self.assertEqual(operator.debit(way, 7, "elsewhere").units, 7)
                    self.assertEqual(operator.set_cap(way, 9.0, "agreed").posted_units, before + 7)

    def test_what_names_no_population(self) -> None:
        public = self.client.upload(make_graph(62), name="open", public=True)
        self.assertEqual((public.population, public.budget_shared, public.other_populations), ("", False, ()))
        for way in ("open", public):
            with self.assertRaisesRegex(errors.ResourceNotFound, "is public: it has no population and no budget"):
                self.client.budget(way)
        with self.assertRaises(errors.ResourceNotFound):
            self.client.budget("nobody")
        with self.assertRaises(errors.ResourceNotFound):
            self.client.budget(f"{self.client.tenant}/populations/open")
        for wrong in ("A b", f"{self.client.tenant}/jobs/people", f"{self.client.tenant}/populations/a/b", "", 7, None):
            with self.assertRaises(errors.InvalidField):
                self.client.budget(wrong)

    def test_a_population_that_cannot_be_joined(self) -> None:
        self.client.upload(make_graph(63), name="people")
        self.client.upload(make_graph(64), name="others")
        for options in ({"public": True}, {"cap_epsilon": 1.0}, {"cap_delta": 1e-6}):
            with self.assertRaisesRegex(errors.InvalidField, "the population has its cap") as refused:
                self.client.upload(make_graph(65), population="people", **options)
            self.assertEqual(refused.exception.metadata["field"], "population")
        with self.assertRaises(errors.InvalidField):  # an empty name is no way to say "other people"
            self.client.upload(make_graph(65), population="")
        for missing in ("nobody", f"{self.client.tenant}/populations/nobody", "tenants/tenant-0/populations/people"):
            with self.assertRaises(errors.ResourceNotFound):
                self.client.upload(make_graph(65), population=missing)
        with self.assertRaises(errors.ContentHasPopulation) as refused:
            self.client.upload(make_graph(63), population="others")
        population = f"{self.client.tenant}/populations/people"
        self.assertEqual(refused.exception.metadata, {"population": population})
        self.assertIn(f"population='{population}'", refused.exception.hint)
        self.assertEqual(len(self.client.datasets()), 2)

    def test_a_token_that_may_only_upload_names_a_population_by_its_id(self) -> None:
        people = self.client.upload(make_graph(66), name="people")
        secret = self.client.rpc["OperatorService"].CreateToken(
            parent=self.client.tenant, token={"role": "MEMBER", "scopes": ["UPLOAD"]}
        )
        with self.server.client(secret.secret) as uploader:
            self.assertEqual(uploader.upload(make_graph(67), population="people").population, people.population)
            self.assertEqual(uploader.upload(make_graph(68)).other_populations, ())
            with self.assertRaises(errors.ScopeInsufficient):
                uploader.budget("people")


class NoteTest(ServerTest):
    def upload(self, seed: int, **options: object) -> tuple[dpar.Uploaded, str]:
        """What it returned and what it said."""
        shown = io.StringIO()
        with contextlib.redirect_stderr(shown), dpar.Client(
            self.server.address, ca=self.server.ca, token=self.token
        ) as client:
            return client.upload(make_graph(seed), **options), shown.getvalue()

    def test_an_upload_that_names_no_population_says_which_there_are(self) -> None:
        first, said = self.upload(70, name="april")
        self.assertNotIn("population", said)
        second, said = self.upload(71, name="may")
        self.assertIn("If they are people of one of april, name it", said)
        self.assertEqual((second.budget_shared, second.other_populations), (False, ("april",)))
        for seed, options in ((72, {"population": first}), (73, {"public": True})):
            uploaded, said = self.upload(seed, **options)
            self.assertNotIn("population", said)
            self.assertEqual(uploaded.other_populations, ())
        again, said = self.upload(71)
        self.assertIn("one of april, may, name it", said)
        self.assertEqual(
            (again.population, again.budget_shared, again.other_populations), (second.population, True, ())
        )
        self.client.merge_population("april", into="may", reason="the same people")
        third, said = self.upload(74, name="june")
        self.assertIn("one of may, name it", said)
        self.assertEqual(third.other_populations, ("may",))


class MergeTest(ServerTest):
    def spend(self, dataset: object) -> int:
        job = self.client.train(dataset, epsilon=1, **SHORT)
        self.assertEqual(job.watch(progress=False), "SUCCEEDED")
        return job.plan.price_units

    def test_what_both_have_spent_adds_up(self) -> None:
        april = self.client.upload(make_graph(80), name="april", cap_epsilon=4)
        customers = self.client.upload(make_graph(81), name="customers", cap_epsilon=4)
        spent = self.spend(april) + self.spend(customers)
        merged = self.client.merge_population(april.population, into="customers", reason="the same people")
        self.assertEqual((merged.name, merged.cap_epsilon), (customers.population, 4))
        self.assertEqual((merged.posted_units, merged.node_total), (spent, 600))
        # The dataset has moved; the id is that of the population that ended.
        self.assertEqual(self.client.budget(april).name, customers.population)
        self.assertEqual(self.client.budget("april").merged_into, customers.population)
        entries = self.client.ledger(april)
        self.assertEqual([entry.kind for entry in entries[-2:]], [LedgerEntry.MERGE, LedgerEntry.INHERIT])
        self.assertIn("the same people", entries[-2].reason)
        self.assertTrue(self.client.verify_chain(april).intact)
        spent += self.spend("april")
        self.assertEqual(self.client.budget("customers").posted_units, spent)
        again = self.client.merge_population("april", into="customers", reason="once more")
        self.assertEqual(again.posted_units, spent)
        rows = self.client.spend()
        rows = rows.to_dict("records") if hasattr(rows, "to_dict") else rows
        self.assertEqual(next(iter(rows[0])), "population")
        self.assertEqual(
            [(row["population"], row["merged_into"], row["posted_units"]) for row in rows if not row["merged_into"]],
            [(customers.population, "", spent)],
        )
        with self.assertRaises(errors.PopulationClosed) as refused:
            self.client.upload(make_graph(82), population="april")
        self.assertEqual(refused.exception.metadata["merged_into"], customers.population)
        self.assertIn("closed_reason", refused.exception.hint)

    def test_ledgers_that_count_at_different_orders_admit_nothing_once_merged(self) -> None:
        self.client.upload(make_graph(86), name="april", cap_epsilon=4)
        self.client.upload(make_graph(87), name="customers", cap_epsilon=1)
        self.assertNotEqual(self.client.budget("april").order, self.client.budget("customers").order)
        self.client.train("april", epsilon=0.5).watch()
        with self.assertRaises(errors.InvalidField) as unsaid:
            self.client.merge_population("april", into="customers", reason="the same people")
        self.assertEqual(unsaid.exception.metadata["field"], "allow_closing")
        self.assertEqual(self.client.budget("customers").closed_reason, "")
        merged = self.client.merge_population(
            "april", into="customers", reason="the same people", allow_closing=True
        )
        self.assertEqual((merged.cap_epsilon, merged.merged_into), (1, ""))
        self.assertIn("no cap holds for a sum of both", merged.closed_reason)
        for dataset in ("april", "customers"):
            with self.assertRaises(errors.PopulationClosed) as refused:
                self.client.train(dataset, epsilon=0.1)
            self.assertEqual(refused.exception.metadata, {"resource": merged.name})

    def test_a_merge_that_is_refused(self) -> None:
        april = self.client.upload(make_graph(83, nodes=2000), name="april")
        may = self.client.upload(make_graph(84), name="may", population="april")
        self.client.upload(make_graph(85), name="customers")
        with self.assertRaises(errors.InvalidField):
            self.client.merge_population("april", into="april", reason="itself")
        with self.assertRaises(errors.InvalidField):
            self.client.merge_population("april", into="customers", reason="")
        with self.assertRaises(errors.ResourceNotFound):
            self.client.merge_population("april", into="nobody", reason="x")
        with self.assertRaises(errors.ResourceNotFound):  # a dataset is no population here
            self.client.merge_population("may", into="customers", reason="x")
        with self.assertRaisesRegex(errors.InvalidField, "not the name of a population"):
            self.client.merge_population(may, into="customers", reason="x")
        secret = self.client.create_token(self.client.tenant, "member").secret
        with self.server.client(secret) as member, self.assertRaises(errors.RoleInsufficient):
            member.merge_population("april", into="customers", reason="x")
        job = self.client.train(april, epsilon=1, method="features", steps=20_000)
        with self.assertRaises(errors.PopulationInUse) as refused:
            self.client.merge_population("april", into="customers", reason="x")
        self.assertEqual(refused.exception.metadata["resource"], april.population)
        job.cancel()
        self.assertEqual(job.watch(progress=False), "CANCELLED")
        self.assertEqual([budget.merged_into for budget in self.client.budgets()], ["", ""])


if __name__ == "__main__":
    main()
