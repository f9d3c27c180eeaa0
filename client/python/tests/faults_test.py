"""Servers that go away, connections that break, and Ctrl-C: the right exception, and nothing lost."""
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
import unittest.mock

import grpc

import dpar
from dpar import errors
from support import Server, ServerTest, main, make_graph


class Proxy:
    """Between a client and a server. Cuts a connection once so many bytes have gone either way, a few times."""

    def __init__(self, server: str, cut_after: int, cuts: int) -> None:
        host, port = server.rsplit(":", 1)
        self._server, self._cut_after, self.cuts = (host, int(port)), cut_after, cuts
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._server)
            except OSError:
                return
            passed = [0]
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(source, target, passed), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, passed: list[int]) -> None:
        try:
            while data := source.recv(16384):
                with self._lock:
                    passed[0] += len(data)
                    cut = self.cuts > 0 and passed[0] > self._cut_after
                    self.cuts -= cut
                if cut:
                    break
                target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()


class BrokenConnectionTest(ServerTest):
    def through(self, cut_after: int, cuts: int) -> tuple[dpar.Client, Proxy]:
        proxy = Proxy(self.server.address, cut_after, cuts)
        self.addCleanup(proxy.close)
        client = dpar.Client(proxy.address, ca=self.server.ca, token=self.token, progress=False)
        self.addCleanup(client.close)
        return client, proxy

    def test_an_upload_goes_on_where_it_was(self) -> None:
        graph = make_graph(40, nodes=4000, features=400)
        client, proxy = self.through(150_000, 3)
        uploaded = client.upload(graph, name="people")
        self.assertEqual(proxy.cuts, 0, "the connection was never cut")
        self.assertEqual(uploaded.report.edge_count, graph.edge_count)

    def test_a_download_and_a_watch_go_on_where_they_were(self) -> None:
        self.client.upload(make_graph(41, features=6000), name="people", entry_bound=1_800_000)
        job = self.client.train("people", epsilon=1, method="features")
        client, proxy = self.through(60_000, 3)
        same = client.job(job.name)
        self.assertEqual(same.watch(progress=False), "SUCCEEDED")
        model = same.download(self.place / "model")
        self.assertEqual(proxy.cuts, 0, "the connection was never cut")
        self.assertTrue(model.certificate.verify(key=self.server.data / "keys" / "signing.pub"))
        self.assertEqual([file.name for file in (self.place / "model").iterdir() if file.name.startswith(".")], [])


class LostServerTest(unittest.TestCase):
    def setUp(self) -> None:
        self.server = Server()
        self.addCleanup(self.server.stop)
        self.client = self.server.client(self.server.new_token())
        self.addCleanup(self.client.close)

    def test_a_watch_outlives_its_server(self) -> None:
        self.client.upload(make_graph(42, nodes=2000), name="people")
        job = self.client.train("people", epsilon=1, method="features", steps=1500)
        stages = []
        killed = False
        for event in job.events():
            stages.append((event.sequence, event.stage))
            if event.stage == "training" and not killed:
                killed = True
                self.server.kill()
                threading.Timer(1.0, self.server.start).start()
        self.assertTrue(killed)
        self.assertEqual(stages[-1][1], "succeeded")
        self.assertEqual([number for number, _ in stages], sorted({number for number, _ in stages}))
        self.assertEqual(job.refresh().message.attempts, 2)
        self.assertEqual(self.client.budget("people").posted_units, job.plan.price_units)

    def test_a_call_waits_for_a_server_that_comes_back(self) -> None:
        self.client.whoami()
        self.server.kill()
        connection, waits = self.client._connection, []
        pause = connection.pause

        def start_and_pause(attempt: int, asked: float | None) -> None:
            waits.append(attempt)
            if attempt == 0:
                self.server.start()
            pause(attempt, asked)

        connection.pause = start_and_pause
        self.assertTrue(self.client.whoami().tenant)
        self.assertEqual(waits[0], 0)

    def test_a_server_that_stays_away(self) -> None:
        self.server.kill()
        start = time.monotonic()
        with self.assertRaisesRegex(errors.ServerUnavailable, "cannot reach the server at 127.0.0.1"):
            self.client.whoami()
        self.assertLess(time.monotonic() - start, 15)


SCRIPT = """
import dpar, sys
with dpar.Client(progress=False) as client:
    job = client.job(sys.argv[1])
    print("watching", flush=True)
    job.watch(progress=False)
"""


class InterruptTest(ServerTest):
    def test_ctrl_c_stops_the_watching_only(self) -> None:
        self.client.upload(make_graph(43, nodes=2000), name="people")
        job = self.client.train("people", epsilon=1, method="features", steps=20_000)
        watcher = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, job.name],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"DPAR_SERVER": self.server.address, "DPAR_CA": self.server.ca, "DPAR_TOKEN": self.token},
        )
        assert watcher.stdout is not None
        self.assertEqual(watcher.stdout.readline(), "watching\n")
        time.sleep(0.5)
        watcher.send_signal(signal.SIGINT)
        _, written = watcher.communicate(timeout=20)
        self.assertNotEqual(watcher.returncode, 0)
        self.assertIn(f"stopped watching; {job.id} goes on. job.watch() comes back to it", written)
        self.assertIn(job.refresh().state, ("QUEUED", "RUNNING"))
        job.cancel()

    def test_ctrl_c_while_files_are_on_their_way(self) -> None:
        graph = make_graph(44)
        with unittest.mock.patch("dpar.uploading.Upload._send", side_effect=KeyboardInterrupt):
            with self.assertRaisesRegex(errors.Interrupted, "the upload was stopped"):
                self.client.upload(graph, name="people")
        self.assertEqual(self.client.datasets(), [])
        job = self.client.train(self.client.upload(graph), epsilon=1)
        job.watch()
        with unittest.mock.patch("dpar.job._write", side_effect=KeyboardInterrupt):
            with self.assertRaisesRegex(errors.Interrupted, "the download was stopped"):
                job.download(self.place / "model")
        self.assertEqual(list((self.place / "model").iterdir()), [])

    def test_a_notebook_shows_one_line(self) -> None:
        self.assertEqual(errors.Interrupted("stopped watching")._render_traceback_(), ["Interrupted: stopped watching"])
        shown = errors.TokenMissing("no token is given")._render_traceback_()
        self.assertTrue(shown[0].startswith("TokenMissing: no token is given\n  try: "))


class RetryTest(unittest.TestCase):
    """What is tried again, against answers that are told."""

    class Told(grpc.RpcError):
        def __init__(self, code: grpc.StatusCode, details: bytes = b"") -> None:
            super().__init__()
            self._code, self._details = code, details

        def code(self) -> grpc.StatusCode:
            return self._code

        def details(self) -> str:
            return "as told"

        def trailing_metadata(self) -> tuple[tuple[str, bytes], ...]:
            return (("grpc-status-details-bin", self._details),)

    # google.rpc.Status: an ErrorInfo {reason, domain, metadata} and, in the first, a RetryInfo of 0.5 seconds.
    @staticmethod
    def field(number: int, content: bytes) -> bytes:
        return bytes([number << 3 | 2, len(content)]) + content

    def detail(self, kind: str, content: bytes) -> bytes:
        field = self.field
        return field(3, field(1, f"type.googleapis.com/google.rpc.{kind}".encode()) + field(2, content))

    def tries(self, *answers: object) -> tuple[object, int, list[float]]:
        import dpar.rpc
        from dpar.connect import Settings

        connection = dpar.rpc.Connection(Settings("127.0.0.1:1", b"-----BEGIN CERTIFICATE-----"))
        self.addCleanup(connection.close)
        told, waits = list(answers), []
        connection.pause = lambda attempt, asked: waits.append(dpar.rpc.retry_delay(attempt, asked, 0.0))

        def attempt() -> object:
            answer = told.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        try:
            return connection.persist(attempt), len(answers) - len(told), waits
        except errors.Error as error:
            return error, len(answers) - len(told), waits

    def test_unavailable_is_tried_again_after_the_time_that_retry_info_names(self) -> None:
        half_a_second = self.detail("RetryInfo", self.field(1, b"\x10\x80\xca\xb5\xee\x01"))
        result, tries, waits = self.tries(
            self.Told(grpc.StatusCode.UNAVAILABLE, half_a_second), self.Told(grpc.StatusCode.UNAVAILABLE), "done"
        )
        self.assertEqual((result, tries), ("done", 3))
        self.assertEqual(waits, [0.5, 0.2])

    def test_other_errors_are_not_repeated_and_carry_their_reason(self) -> None:
        field = self.field
        info = (
            field(1, b"PRIVACY_BUDGET_EXHAUSTED")
            + field(2, b"dpar.v1")
            + field(3, field(1, b"left_units") + field(2, b"7"))
        )
        error, tries, waits = self.tries(self.Told(grpc.StatusCode.FAILED_PRECONDITION, self.detail("ErrorInfo", info)))
        assert isinstance(error, errors.PrivacyBudgetExhausted)
        self.assertEqual(
            (error.metadata, error.code, tries, waits), ({"left_units": "7"}, "FAILED_PRECONDITION", 1, [])
        )

    def test_four_tries_are_all(self) -> None:
        error, tries, _ = self.tries(*[self.Told(grpc.StatusCode.UNAVAILABLE) for _ in range(9)])
        self.assertIsInstance(error, errors.ServerUnavailable)
        self.assertEqual(tries, 4)

    def test_an_error_without_details_is_an_error_all_the_same(self) -> None:
        error, tries, _ = self.tries(self.Told(grpc.StatusCode.INTERNAL, b"\xff"))
        assert isinstance(error, errors.Error)
        self.assertEqual((error.reason, error.code, tries), ("", "INTERNAL", 1))


if __name__ == "__main__":
    main()
