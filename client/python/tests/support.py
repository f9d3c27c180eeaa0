"""A real dpard over TLS, the command dpar beside it, and graphs; for the tests of the package."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import numpy

import dpar

BINARIES = pathlib.Path(os.environ.get("DPAR_BINARY_DIR", "build/release")) / "bin"
SHARED = pathlib.Path(os.environ.get("DPAR_SOURCE_DIR", ".")) / ".." / "shared"
CLASSES, FEATURES = 3, 30


def make_graph(seed: int, nodes: int = 300, classes: int = 3, features: int = 30) -> dpar.Graph:
    """Classes that show in the features and in the edges."""
    random = numpy.random.default_rng(seed)
    labels = random.integers(classes, size=nodes)
    own = random.random((nodes, features)) < 0.1
    own |= (numpy.arange(features) % classes == labels[:, None]) & (random.random((nodes, features)) < 0.5)
    ends = random.integers(nodes, size=(2, 6 * nodes))
    ends = ends[:, (labels[ends[0]] == labels[ends[1]]) | (random.random(6 * nodes) < 0.1)]
    return dpar.Graph.from_edges(ends, own.astype(numpy.float32), labels, classes=classes)


def write_model(place: pathlib.Path, header: dict[str, object] | None = None, **arrays: numpy.ndarray) -> dpar.Model:
    """A model.npz as the server writes it, of random weights."""
    random = numpy.random.default_rng(1)
    text = {
        "format": 1,
        "transform": "UNIT",
        "logit_noise": 0.5,
        "share_noise": 0.0,
        "reads": "features",
        "hops": 0,
        "plan": {},
    } | (header or {})
    arrays = {"weights": random.normal(size=(FEATURES + 1, CLASSES)).astype(numpy.float32)} | arrays
    numpy.savez(place / "model.npz", header=numpy.array(json.dumps(text).encode()), **arrays)
    return dpar.Model.read(place)


class Server:
    """One dpard on a port that the kernel picks, with a data directory of its own."""

    def __init__(self, *flags: str) -> None:
        self._place = tempfile.TemporaryDirectory(prefix="dpar-python-test.")
        self.place = pathlib.Path(self._place.name)
        self.data = self.place / "data"
        self.flags = flags
        self._process: subprocess.Popen[bytes] | None = None
        self.address = "127.0.0.1:0"
        self._tenants = 0
        self.start()

    def start(self) -> None:
        """Starts it, also again: on the same port, so that clients find it."""
        (self.data / "address").unlink(missing_ok=True)
        command = [BINARIES / "dpard", "--data-dir", self.data, "--listen", self.address]
        command += ["--metrics-listen", "127.0.0.1:0", "--page-listen", "127.0.0.1:0", *self.flags]
        with (self.place / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self._process.poll() is None:
            if (self.data / "address").exists() and (address := (self.data / "address").read_text().strip()):
                self.address = address
                return
            time.sleep(0.02)
        raise RuntimeError(f"dpard did not start:\n{(self.place / 'log').read_text()[-4000:]}")

    def kill(self) -> None:
        """As a power cut would."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._place.cleanup()

    @property
    def ca(self) -> str:
        return str(self.data / "tls" / "ca.pem")

    def operator(self) -> dpar.Client:
        return self.client((self.data / "operator.token").read_text().strip())

    def client(self, token: str) -> dpar.Client:
        return dpar.Client(self.address, ca=self.ca, token=token, progress=False)

    def new_token(self) -> str:
        """Of the owner of a new tenant."""
        self._tenants += 1
        with self.operator() as operator:
            operator.create_tenant(f"tenant-{self._tenants}")
            return operator.create_token(f"tenant-{self._tenants}", "owner").secret

    def dpar(self, token: str, *arguments: object) -> str:
        """What the command prints; it must succeed."""
        run = subprocess.run(
            [BINARIES / "dpar", *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=300,
            stdin=subprocess.DEVNULL,
            env=os.environ | {"DPAR_SERVER": self.address, "DPAR_CA": self.ca, "DPAR_TOKEN": token},
        )
        if run.returncode != 0:
            raise AssertionError(f"dpar {arguments}: {run.stderr}")
        return run.stdout


class ServerTest(unittest.TestCase):
    """Tests that share one server; each has a tenant, a directory, and settings of its own."""

    server: Server
    flags: tuple[str, ...] = ()

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Server(*cls.flags)
        cls.addClassCleanup(cls.server.stop)

    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = pathlib.Path(place.name)
        variables = {name: value for name, value in os.environ.items() if not name.startswith("DPAR_")}
        kept = dict(os.environ)
        os.environ |= {"XDG_CONFIG_HOME": str(self.place / "config"), "XDG_DATA_HOME": str(self.place / "share")}
        for name in set(kept) - set(variables):
            if name not in ("DPAR_BINARY_DIR", "DPAR_SOURCE_DIR"):
                del os.environ[name]
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(kept)))
        self.token = self.server.new_token()
        self.client = self.server.client(self.token)
        self.addCleanup(self.client.close)


def main() -> None:
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[1:]])
