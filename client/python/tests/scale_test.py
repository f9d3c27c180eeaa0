"""A graph of a million nodes, and 10,000 nodes a call: time beside the command's, and memory."""
import ctypes
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

import numpy
import scipy.sparse

import dpar
from support import BINARIES, FEATURES, main, write_model

NODES = 1_000_000
MEASURE = """
import resource, sys, time
import dpar
start = time.perf_counter()
predictions = dpar.Model.read(sys.argv[1]).predict(dpar.Graph.read(sys.argv[2]))
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def big_graph() -> tuple[scipy.sparse.csr_matrix, scipy.sparse.csr_matrix]:
    random = numpy.random.default_rng(1)
    ends = random.integers(NODES, size=(2, 5 * NODES))
    adjacency = scipy.sparse.csr_matrix((numpy.ones(5 * NODES, numpy.float32), ends), shape=(NODES, NODES))
    columns = numpy.sort(
        random.integers(FEATURES // 10, size=(NODES, 10)) + numpy.arange(0, FEATURES, FEATURES // 10), 1
    )
    values = random.random(10 * NODES).astype(numpy.float32) + 0.5
    offsets = numpy.arange(0, 10 * NODES + 1, 10)
    rows = scipy.sparse.csr_matrix((values, columns.reshape(-1).astype(numpy.int32), offsets), shape=(NODES, FEATURES))
    return adjacency, rows


def most_memory() -> int:
    """Bytes that were resident at once."""
    status = pathlib.Path("/proc/self/status").read_text()
    return 1024 * int(status.split("VmHWM:")[1].split()[0])


class ScaleTest(unittest.TestCase):
    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = pathlib.Path(place.name)
        self.model = write_model(self.place)

    def command_seconds(self, graph: pathlib.Path) -> float:
        start = time.perf_counter()
        subprocess.run(
            [BINARIES / "dpar", "predict", "--model", self.place / "model.npz", "--graph", graph],
            check=True,
            capture_output=True,
        )
        return time.perf_counter() - start

    def test_a_million_nodes(self) -> None:
        adjacency, rows = big_graph()
        ctypes.CDLL(None).malloc_trim(0)  # what making the input left
        pathlib.Path("/proc/self/clear_refs").write_text("5")  # the most memory counts from here
        before = most_memory()
        graph = dpar.Graph.from_matrices(adjacency, rows)
        grown = most_memory() - before
        held = sum(part.nbytes for part in (*graph.features, *graph.edges, graph.labels))
        print(f"a graph of {held / 1e6:.0f} MB from matrices: memory grew by {grown / 1e6:.0f} MB")
        # Of the features one copy; of the edges one, which may move once to make room for the other direction.
        features = sum(part.nbytes for part in graph.features)
        self.assertLess(grown, 1.5 * features + 1.8 * (held - features))
        file = self.place / "graph.sealed"
        graph.write(file)
        del graph, adjacency, rows
        pairs = []
        for _ in range(3):
            command = self.command_seconds(file)
            run = subprocess.run(
                [sys.executable, "-c", MEASURE, self.place, file], check=True, capture_output=True, text=True
            )
            seconds, memory = map(float, run.stdout.split())
            pairs.append((seconds / command, seconds, command, memory))
        ratio, seconds, command, memory = min(pairs)
        print(
            f"predicting a million nodes: {seconds:.2f} s, dpar predict {command:.2f} s, {memory / 1e6:.0f} MB at most"
        )
        self.assertLess(ratio, 1.1)

    def test_ten_thousand_rows_a_call(self) -> None:
        rows = scipy.sparse.random(10_000, FEATURES, 0.3, "csr", numpy.float32, random_state=1)
        self.model.logits(rows)
        start = time.perf_counter()
        for _ in range(20):
            self.model.logits(rows)
        print(f"logits of 10,000 rows: {(time.perf_counter() - start) * 50:.2f} ms")
        self.assertLess(time.perf_counter() - start, 20)


if __name__ == "__main__":
    main()
