"""The client against a real server: what a user does from upload to prediction, and what an operator does."""
import contextlib
import io
import os
import pathlib
import re
import threading
import unittest
import warnings

import numpy
import scipy.sparse

import dpar
from dpar import errors
from support import SHARED, ServerTest, main, make_graph
from graph_test import SCHEMA


class JourneyTest(ServerTest):
    def cli_predictions(
        self, graph: pathlib.Path, model: pathlib.Path, *flags: str
    ) -> tuple[numpy.ndarray, numpy.ndarray]:
        output = self.place / "cli.npz"
        self.server.dpar(self.token, "predict", "--model", model / "model.npz", "--graph", graph, "-o", output, *flags)
        with numpy.load(output) as arrays:
            return arrays["class"], arrays["probability"]

    def assert_same_as_cli(self, graph: pathlib.Path, model: dpar.Model) -> None:
        assert model.directory is not None
        for rule in ("", "mean-field", "power", "none"):
            flags = ("--propagation", rule) if rule else ()
            classes, probabilities = self.cli_predictions(graph, model.directory, *flags)
            for given in (graph, dpar.Graph.read(graph)):
                predictions = model.predict(given, propagation=rule)
                numpy.testing.assert_array_equal(predictions.classes, classes)
                numpy.testing.assert_array_equal(predictions.probabilities, probabilities)

    def test_a_graph_becomes_a_model_that_predicts_as_the_command_does(self) -> None:
        train, query = self.place / "train.npz", self.place / "query.npz"
        make_graph(11).write(train)
        make_graph(12).write(query)
        uploaded = self.client.upload(train, name="people", cap_epsilon=4)
        self.assertEqual(uploaded.dataset.node_count, 300)
        self.assertFalse(uploaded.budget_shared)
        planned = self.client.plan(uploaded, epsilon=2)
        self.assertEqual((planned.name, planned.price.epsilon), ("", planned.plan.epsilon))
        self.assertEqual(sum(planned.price.stages.values()) > 0, True)
        self.assertEqual(self.client.budget("people").posted_units, 0)
        job = self.client.train("people", epsilon=2, method="features", steps=20)
        self.assertEqual(job.plan.steps, 20)
        self.assertEqual(job.watch(progress=False), "SUCCEEDED")
        model = job.download(self.place / "model")
        assert model.directory is not None
        self.assertEqual(
            {file.name for file in model.directory.iterdir()},
            {"model.npz", "model.pt", "model.onnx", "model.safetensors", "certificate.json", "signing.pub"},
        )
        verification = model.certificate.verify(key=self.server.data / "keys" / "signing.pub")
        self.assertTrue(verification, str(verification))
        checked = {check.name for check in verification.checks}
        self.assertTrue(
            {"model.npz digest", "model.onnx digest", "model.safetensors digest", "model.pt digest", "epsilon"}
            <= checked,
            checked,
        )
        assert verification.statement is not None
        self.assertEqual(verification.statement["predicate"]["job"], job.name)
        self.assert_same_as_cli(query, model)
        self.assertGreater(model.predict(query).accuracy(dpar.Graph.read(query).labels), 0.6)
        for file in ("model.onnx", "model.safetensors"):
            model.export(self.place / file)
            self.assertEqual(
                (self.place / file).read_bytes(), (model.directory / file).read_bytes(), "written in C++ too"
            )
        posted = self.client.budget(uploaded).posted_units
        self.assertEqual(posted, job.plan.price_units)
        self.assertEqual(self.client.jobs()[0].name, job.name)
        self.assertEqual([entry.kind for entry in self.client.ledger(uploaded)], [1, 2, 3])
        self.assertTrue(self.client.verify_chain("people").intact)

    def test_every_method_predicts_as_the_command_does(self) -> None:
        graph = make_graph(13, nodes=200)
        query = self.place / "query.npz"
        make_graph(14, nodes=200).write(query)
        degree = int(numpy.diff(graph.edges[0]).max())
        self.client.upload(graph, name="people", max_degree=degree, edge_bound=20_000, entry_bound=6_000, cap_epsilon=8)
        for method in ("dpar-em0", "gap", "sage"):
            job = self.client.train("people", epsilon=1, method=method)
            self.assertEqual(job.watch(progress=False), "SUCCEEDED")
            self.assert_same_as_cli(query, job.download(self.place / method))

    def test_matrices_and_tables_are_uploaded(self) -> None:
        graph = make_graph(15)
        offsets, neighbours = graph.edges
        adjacency = scipy.sparse.csr_matrix((numpy.ones(len(neighbours)), neighbours, offsets), shape=(300, 300))
        feature_offsets, columns, values = graph.features
        rows = scipy.sparse.csr_matrix((values, columns, feature_offsets), shape=(300, 30))
        with self.assertRaisesRegex(errors.InvalidField, "classes= is needed"):
            self.client.upload((adjacency, rows), labels=graph.labels)
        matrices = self.client.upload((adjacency, rows), labels=graph.labels, classes=3)
        self.assertEqual(matrices.report.edge_count, graph.edge_count)
        again = self.client.upload(graph)
        self.assertTrue(again.budget_shared)
        self.assertEqual(again.report.edges_symmetrised, graph.native.report()["edges_symmetrised"])
        self.assertGreater(again.report.edges_symmetrised, 0)

        nodes, edges = self.place / "nodes.csv", self.place / "edges.csv"
        nodes.write_text(
            "account,age,card,kind\n"
            + "".join(
                f"n{i},{20 + i},{'yes' if i % 2 else 'no'},{'private' if i % 2 else 'business'}\n" for i in range(80)
            )
        )
        edges.write_text("from,to\n" + "".join(f"n{i},n{(i + 2) % 80}\n" for i in range(80)))
        tables = self.client.upload((nodes, edges), schema=SCHEMA, name="tables")
        self.assertEqual(tables.dataset.entry_bound, 80 * dpar.Schema(SCHEMA).max_entries)
        self.assertEqual(dpar.Schema(self.client.dataset(tables).schema).classes, ["private", "business"])
        job = self.client.train(tables, epsilon=4)
        job.watch(progress=False)
        model = job.download(self.place / "tables")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            predictions = model.predict((nodes, edges))
        self.assertIn("this is the graph that the model was trained on", str(caught[0].message))
        self.assertEqual(predictions.ids[:2], ["n0", "n1"])
        self.assertTrue(set(predictions.names) <= {"private", "business"})
        output = self.place / "cli.csv"
        self.server.dpar(
            self.token,
            "predict",
            "--model",
            self.place / "tables" / "model.npz",
            "--nodes",
            nodes,
            "--edges",
            edges,
            "-o",
            output,
        )
        self.assertEqual(
            [line.split(",")[:2] for line in output.read_text().split("\n")[1:-1]],
            [[name, kind] for name, kind in zip(predictions.ids, predictions.names)],
        )

    def test_what_upload_keeps_and_the_command_finds(self) -> None:
        graph = self.place / "train.npz"
        make_graph(16).write(graph)
        uploaded = self.client.upload(graph)
        kept = self.place / "share" / "dpar" / "digest-keys" / uploaded.dataset.content_digest
        self.assertEqual(kept.read_text(), uploaded.digest_key + "\n")
        self.assertEqual(kept.stat().st_mode & 0o777, 0o600)
        job = self.client.train(uploaded, epsilon=1)
        job.watch(progress=False)
        model = job.download(self.place / "model")
        self.assertIs(model.is_training_graph(graph), True)
        self.assertIs(model.is_training_graph(make_graph(17)), False)

    def test_tampering_is_found(self) -> None:
        uploaded = self.client.upload(make_graph(18))
        job = self.client.train(uploaded, epsilon=1)
        job.watch(progress=False)
        model = job.download(self.place / "model")
        for file in ("model.npz", "model.onnx", "model.safetensors", "model.pt"):
            content = bytearray((self.place / "model" / file).read_bytes())
            content[-1] ^= 1
            (self.place / "model" / file).write_bytes(content)
            verification = model.certificate.verify()
            self.assertFalse(verification)
            self.assertEqual([check.name for check in verification.checks if not check.passed], [f"{file} digest"])
            with self.assertRaises(errors.VerificationFailed):
                verification.require()
            content[-1] ^= 1
            (self.place / "model" / file).write_bytes(content)
        other = self.server.dpar(self.token, "certificate", "keys")
        self.assertTrue(model.certificate.verify(key=other))
        # The certificate is about the model that was read, not about whatever else stands beside it.
        arrays = dict(numpy.load(self.place / "model" / "model.npz"))
        arrays["weights"] = -arrays["weights"]
        numpy.savez(self.place / "model" / "evil.npz", **arrays)
        evil = dpar.Model.read(self.place / "model" / "evil.npz").certificate.verify(key=other)
        self.assertEqual([check.name for check in evil.checks if not check.passed], ["model as it was read"])
        with self.assertRaisesRegex(errors.InvalidField, "there is no model file to check"):
            model.certificate.verify(key=other, files=[])

    def test_labels_that_would_be_dropped_are_refused(self) -> None:
        graph = make_graph(22)
        path = self.place / "graph.npz"
        graph.write(path)
        for made in (graph, path):
            with self.assertRaisesRegex(errors.InvalidField, "labels= cannot take the place"):
                self.client.upload(made, labels=numpy.full(graph.node_count, -1))
        with self.assertRaisesRegex(errors.InvalidField, "where the graph is made"):
            self.client.upload(graph, classes=9)
        self.assertEqual(self.client.datasets(), [])

    @unittest.skipUnless((SHARED / "data").is_dir(), "no public graphs at hand")
    def test_public_graphs_reach_the_accuracy_of_the_command(self) -> None:
        for name, classes in (("cora_ml", 7), ("fb100_Amherst41_year", 5)):
            graph = SHARED / "data" / f"{name}.npz"
            self.server.dpar(
                self.token,
                "graph",
                "split",
                graph,
                "--classes",
                classes,
                "--train",
                self.place / "train.npz",
                "--test",
                self.place / "test.npz",
            )
            # The script of a user, whole.
            client = dpar.Client(self.server.address, ca=self.server.ca, token=self.token, progress=False)
            train = dpar.Graph.read(self.place / "train.npz")
            job = client.train(client.upload(train), epsilon=1)
            job.watch()
            model = job.download(self.place / name)
            assert model.certificate.verify(key=self.server.data / "keys" / "signing.pub")
            test = dpar.Graph.read(self.place / "test.npz")
            accuracy = model.predict(test).accuracy(test.labels)
            printed = self.server.dpar(
                self.token, "predict", "--model", self.place / name / "model.npz", "--graph", self.place / "test.npz"
            )
            print(f"{name}: {accuracy:.4f}")
            self.assertIn(f"accuracy   {accuracy:.4f} ", printed)
            client.close()


class SettingsTest(ServerTest):
    def test_arguments_environment_and_profile_in_this_order(self) -> None:
        with self.assertRaisesRegex(errors.InvalidField, "no certificate authority"):
            dpar.Client()
        os.environ |= {"DPAR_SERVER": self.server.address, "DPAR_CA": self.server.ca, "DPAR_TOKEN": self.token}
        with dpar.Client() as client:
            self.assertEqual(client.tenant, self.client.tenant)
        os.environ["DPAR_TOKEN"] = "dpar_nobody_" + "0" * 64
        with dpar.Client(token=self.token) as client:
            self.assertEqual(client.tenant, self.client.tenant)
        (self.place / "token").write_text(self.token + "\n")
        with dpar.Client(token_file=str(self.place / "token")) as client:
            self.assertEqual(client.tenant, self.client.tenant)
        self.server.dpar(
            self.token,
            "login",
            "--server",
            self.server.address,
            "--ca",
            self.server.ca,
            "--token-file",
            self.place / "token",
        )
        for name in ("DPAR_SERVER", "DPAR_CA", "DPAR_TOKEN"):
            del os.environ[name]
        with dpar.Client() as client:
            self.assertEqual(client.tenant, self.client.tenant)
        with self.assertRaises(errors.ResourceNotFound):
            dpar.Client(profile="nobody")
        with self.assertRaises(errors.InvalidField):  # the profile's authority is not another server's
            dpar.Client("127.0.0.1:1")

    def test_what_cannot_be_used(self) -> None:
        with self.assertRaisesRegex(errors.TokenMissing, "no token is given"):
            dpar.Client(ca=self.server.ca)
        with self.assertRaisesRegex(errors.InvalidField, "holds no PEM certificate"):
            dpar.Client(ca=str(self.server.data / "operator.token"), token="x")
        with self.assertRaisesRegex(errors.InvalidField, "there is no such file"):
            dpar.Client(ca="/nonexistent", token="x")
        with self.assertRaisesRegex(errors.InvalidField, "go together"):
            dpar.Client(ca=self.server.ca, client_cert="x")
        with self.assertRaisesRegex(errors.TokenMissing, "characters that no token has"):
            dpar.Client(ca=self.server.ca, token="a b")


class RefusalTest(ServerTest):
    def test_a_wrong_token(self) -> None:
        stranger = self.server.client("dpar_nobody_" + "0" * 64)
        with self.assertRaises(errors.TokenInvalid) as refused:
            stranger.whoami()
        self.assertEqual(refused.exception.code, "UNAUTHENTICATED")
        self.assertIn("DPAR_TOKEN", refused.exception.hint)
        stranger.close()

    def test_a_budget_that_is_too_small(self) -> None:
        self.client.upload(make_graph(20), name="small", cap_epsilon=1)
        with self.assertRaises(errors.PrivacyBudgetExhausted) as refused:
            self.client.train("small", epsilon=2)
        self.assertGreater(float(refused.exception.metadata["largest_admissible_epsilon"]), 0.5)
        self.assertIn("would be admitted now", str(refused.exception))
        self.assertEqual(self.client.budget("small").reserved_units, 0)

    def test_names_and_options_that_there_are_not(self) -> None:
        with self.assertRaises(errors.ResourceNotFound):
            self.client.dataset("nobody")
        for call in (
            lambda: self.client.train("x", 1, magic=1),
            lambda: self.client.train("x", 1, method="magic"),
            lambda: self.client.train("A b", 1),
            lambda: self.client.job("tenants/t/datasets/d"),
            lambda: self.client.dataset(7),
        ):
            with self.assertRaises(errors.InvalidField):
                call()
        with self.assertRaises(AttributeError):
            self.client.rpc["BudgetService"].Spend

    def test_a_graph_above_its_bounds_stays_here(self) -> None:
        with self.assertRaises(errors.InvalidGraph):
            self.client.upload(make_graph(21), edge_bound=10)
        self.assertEqual(self.client.datasets(), [])

    def test_a_name_that_is_taken(self) -> None:
        self.client.upload(make_graph(22), name="people")
        with self.assertRaises(errors.ResourceExists):
            self.client.upload(make_graph(23), name="people")

    def test_cancel_and_what_has_no_model(self) -> None:
        self.client.upload(make_graph(24, nodes=2000), name="people")
        job = self.client.train("people", epsilon=1, steps=20_000, method="features")
        with self.assertRaises(errors.JobNotSucceeded):
            job.download(self.place / "none")
        self.assertFalse((self.place / "none").exists())
        job.cancel()
        self.assertEqual(job.watch(progress=False), "CANCELLED")
        with self.assertRaises(errors.Error):
            self.client.plan("people", epsilon=1).watch()

    def test_an_operators_doings(self) -> None:
        self.client.upload(make_graph(25), name="people", cap_epsilon=2)
        name = f"{self.client.tenant}/datasets/people"
        with self.assertRaises(errors.RoleInsufficient):
            self.client.set_cap("people", 3, "more")
        with self.server.operator() as operator:
            self.assertEqual(operator.set_cap(name, 3.0, "agreed").cap_epsilon, 3.0)
            self.assertEqual(operator.debit(name, 1000, "elsewhere").units, 1000)
            spend = operator.spend()
            rows = spend.to_dict("records") if hasattr(spend, "to_dict") else spend
            population = f"{self.client.tenant}/populations/people"
            (row,) = (row for row in rows if row["population"] == population)
            self.assertEqual((row["cap_epsilon"], row["posted_units"]), (3.0, 1000))
            with self.assertRaisesRegex(errors.InvalidField, "give the full name"):
                operator.budget("people")
            with self.assertRaisesRegex(errors.InvalidField, "name one with tenant="):
                operator.datasets()

    def test_delete(self) -> None:
        uploaded = self.client.upload(make_graph(26))
        self.client.delete_dataset(uploaded)
        self.assertEqual(self.client.datasets(), [])


class EveryCallTest(ServerTest):
    def test_every_call_of_the_api_is_reachable(self) -> None:
        protos = pathlib.Path(os.environ["DPAR_SOURCE_DIR"]) / "proto" / "dpar" / "v1"
        defined = {}
        for proto in protos.glob("*.proto"):
            for service, body in re.findall(r"^service (\w+) \{(.*?)^\}", proto.read_text(), re.M | re.S):
                defined[service] = re.findall(r"^  rpc (\w+)\(", body, re.M)
        self.assertEqual(
            {name: dir(service) for name, service in self.client.rpc.items()},
            {name: sorted(methods) for name, methods in defined.items()},
        )
        for service, methods in defined.items():
            for method in methods:
                self.assertTrue(callable(getattr(self.client.rpc[service], method)))

    def test_calls_take_fields_and_give_messages(self) -> None:
        operator = self.server.operator()
        self.addCleanup(operator.close)
        tokens = operator.rpc["OperatorService"].ListTokens(parent=self.client.tenant)
        self.assertEqual(len(tokens.tokens), 1)
        self.assertTrue(operator.rpc["OverviewService"].GetOverview().health.serving)
        self.client.upload(make_graph(27), name="people")
        job = self.client.train("people", epsilon=1)
        events = list(self.client.rpc["TrainingService"].WatchJob(name=job.name))
        self.assertTrue(events[-1].terminal)
        parts = list(self.client.rpc["TrainingService"].DownloadModel(name=job.name, artifact="ONNX"))
        self.assertEqual(sum(len(part.data) for part in parts), parts[0].size_bytes)
        with self.assertRaises(errors.ResourceNotFound):
            list(self.client.rpc["TrainingService"].WatchJob(name=f"{self.client.tenant}/jobs/none"))

    def test_the_same_request_id_is_the_same_job(self) -> None:
        self.client.upload(make_graph(28), name="people")
        spec = self.client.spec("people", epsilon=1)
        create = self.client.rpc["TrainingService"].CreateJob
        first = create(parent=self.client.tenant, spec=spec, request_id="once")
        self.assertEqual(create(parent=self.client.tenant, spec=spec, request_id="once").name, first.name)
        spec.epsilon = 2
        with self.assertRaises(errors.RequestIdReused):
            create(parent=self.client.tenant, spec=spec, request_id="once")

    def test_threads_share_a_client(self) -> None:
        names: list[str] = []
        graph = make_graph(29)
        threads = [threading.Thread(target=lambda: names.append(self.client.upload(graph).name)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(set(names)), 4)

    def test_progress_is_lines_where_nobody_looks(self) -> None:
        shown = io.StringIO()
        with contextlib.redirect_stderr(shown), dpar.Client(
            self.server.address, ca=self.server.ca, token=self.token
        ) as client:
            client.upload(make_graph(30), name="people")
            self.assertEqual(client.train("people", epsilon=1).watch(), "SUCCEEDED")
        lines = shown.getvalue().split("\n")
        self.assertIn("uploading", lines)
        self.assertIn("succeeded", lines)
        self.assertNotIn("\r", shown.getvalue())


if __name__ == "__main__":
    main()
