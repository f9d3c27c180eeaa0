#!/usr/bin/env python3
"""What the encoding of tables by a schema is worth, beside other ways to make features of the same tables.

    PATH=$PWD/build/release/bin:$PATH python3 tests/accuracy/encodings.py [--seeds 5] [--nodes 50000] [--epsilon 1]

Three tables: the bank of `dpar graph generate --tables`; `signed`, where a vector with signs tells most; `ushaped`, where
both ends of a number's range mean the same class. `default` is what `dpar graph convert --schema` makes, under the default
transform. The others are made here, and each gets the best of the transforms SQRT_UNIT, UNIT and RAW:
  raw      numbers and dates as they stand
  scaled   numbers and dates divided by what was declared as their range, so that they lie in 0..1
  onehot   the nearest of 16 points over the declared range
  binned   ten bins with as many rows each, whose borders are read off the data: not private, and a mark to reach
Categories, flags and words are one-hot in all of them, vectors as they stand, missing values 0.
Accuracies are means over random splits that are the same for every encoding, with the default inference.
"""
import argparse
import csv
import json
import math
import os
import subprocess
import sys
import tempfile
import zlib

import numpy as np

KNOTS = 16
WORDS = 64
TRANSFORMS = ("sqrt_unit", "unit", "raw")


def generate(directory, name, nodes, seed):
    """Writes nodes.csv, edges.csv and schema.yaml of `signed` or `ushaped`."""
    random = np.random.default_rng(seed)
    classes = random.choice(4, nodes, p=[0.4, 0.3, 0.2, 0.1])
    columns = {}
    if name == "signed":
        towards = random.normal(size=(4, 32))
        vectors = 0.35 * towards[classes] + random.normal(size=(nodes, 32))
        columns["embedding"] = ["[" + " ".join("%.4f" % x for x in row) + "]" for row in vectors]
        types = {"embedding": "{type: vector, width: 32}"}
    else:
        ends = np.where(classes == 0, random.choice([-1, 1], nodes), 0)
        value = np.clip(50 + 40 * ends + np.array([6, 9, 9, 9])[classes] * random.normal(size=nodes), 0, 100)
        columns["pressure"] = ["%.2f" % x for x in value]
        types = {"pressure": "{type: number, range: [0, 100]}"}
    sums = np.exp(np.array([6.0, 7.5, 6.0, 7.0])[classes] + 1.5 * random.normal(size=nodes))
    kinds = np.where(random.random(nodes) < 0.4, classes, random.integers(0, 6, nodes))
    columns["amount"] = ["" if random.random() < 0.05 else "%.2f" % x for x in np.minimum(sums, 9e5)]
    columns["kind"] = ["ABCDEF"[k] for k in kinds]
    types["amount"] = "{type: number, range: [0, 1000000], scale: log}"
    types["kind"] = "{type: category, values: [A, B, C, D, E, F]}"
    with open(os.path.join(directory, "nodes.csv"), "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["id", "label", *columns])
        table.writerows(zip(range(nodes), ["k%d" % c for c in classes], *columns.values()))
    members = [np.flatnonzero(classes == c) for c in range(4)]
    with open(os.path.join(directory, "edges.csv"), "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["source", "target"])
        for source in random.integers(0, nodes, 3 * nodes):
            own = members[classes[source]]
            table.writerow([source, random.choice(own) if random.random() < 0.6 else random.integers(0, nodes)])
    with open(os.path.join(directory, "schema.yaml"), "w") as file:
        file.write("nodes:\n  id: id\n  label: {column: label, classes: [k0, k1, k2, k3]}\n  columns:\n")
        file.writelines("    %s: %s\n" % item for item in types.items())
        file.write("edges: {source: source, target: target}\n")


def days(cell):
    return float(np.datetime64(cell).astype("datetime64[D]").astype(int))


def encode_number(cells, column, encoding):
    read = days if column["type"] == "date" else float
    values = np.array([np.nan if cell == "" else read(cell) for cell in cells])
    low, high = (read(bound) for bound in column["range"])
    present = ~np.isnan(values)
    if encoding == "raw":
        return np.where(present, values, 0)[:, None]
    if encoding == "binned":
        borders = np.quantile(values[present], np.arange(1, 10) / 10)
        return np.eye(10)[np.searchsorted(borders, np.where(present, values, low))] * present[:, None]
    share = np.clip((np.where(present, values, low) - low) / (high - low), 0, 1)
    if column.get("scale") == "log":
        share = np.log1p(share * high) / math.log1p(high)
    if encoding == "scaled":
        return (share * present)[:, None]
    return np.eye(KNOTS)[np.rint(share * (KNOTS - 1)).astype(int)] * present[:, None]


def encode(rows, columns, encoding):
    blocks = []
    for name, column in columns.items():
        cells = [row[name] for row in rows] if name in rows[0] else []
        if column["type"] in ("number", "date"):
            blocks.append(encode_number(cells, column, encoding))
        elif column["type"] in ("category", "flag"):
            values = column.get("values", ["yes", "no"])
            blocks.append(np.array([[float(cell == value) for value in values] for cell in cells]))
        elif column["type"] == "text":
            block = np.zeros((len(rows), WORDS))
            for i, cell in enumerate(cells):
                for word in cell.lower().replace(",", " ").replace('"', " ").split():
                    block[i, zlib.crc32(word.encode()) % WORDS] += 1
            blocks.append(block)
        elif column["type"] == "vector":
            blocks.append(np.array([[float(x) for x in cell.strip("[]").split()] for cell in cells]))
    return np.hstack(blocks).astype(np.float32)


def accuracy(path, arguments, nodes, transform):
    command = ["dpar-lab", "accuracy", "--graph", path, "--epsilon", str(arguments.epsilon), "--delta",
               repr(0.1 / nodes), "--seeds", str(arguments.seeds), "--json", "--set", "transform=" + transform]
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return json.loads(run.stdout)["accuracy"]["mean"]


def study(name, arguments, directory):
    node_file, edge_file, schema_file = (os.path.join(directory, file) for file in
                                         ("nodes.csv", "edges.csv", "schema.yaml"))
    if name == "bank":
        subprocess.run(["dpar", "graph", "generate", "--tables", directory, "--nodes", str(arguments.nodes), "--seed",
                        "1"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        node_file, edge_file, schema_file = (os.path.join(directory, file) for file in
                                             ("accounts.csv", "transfers.csv", "accounts.schema.yaml"))
    else:
        generate(directory, name, arguments.nodes, 1)
    default = os.path.join(directory, "default.npz")
    subprocess.run(["dpar", "graph", "convert", "--schema", schema_file, "--nodes", node_file, "--edges", edge_file,
                    "-o", default], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    arrays = dict(np.load(default))
    columns = json.loads(arrays["schema"].item())["nodes"]["columns"]
    with open(node_file, newline="") as file:
        rows = list(csv.DictReader(file))
    figures = {"default": (accuracy(default, arguments, len(rows), "sqrt_unit"), "sqrt_unit")}
    for encoding in ("raw", "scaled", "onehot", "binned"):
        path = os.path.join(directory, encoding + ".npz")
        graph = {key: arrays[key] for key in arrays if key.startswith("adj_") or key in ("labels", "num_classes")}
        np.savez(path, attr_matrix=encode(rows, columns, encoding), **graph)
        figures[encoding] = max((accuracy(path, arguments, len(rows), transform), transform)
                                for transform in TRANSFORMS)
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--nodes", type=int, default=50000)
    parser.add_argument("--epsilon", type=float, default=1)
    parser.add_argument("--tables", nargs="+", default=["bank", "signed", "ushaped"])
    arguments = parser.parse_args()
    lost = False
    for name in arguments.tables:
        with tempfile.TemporaryDirectory() as directory:
            figures = study(name, arguments, directory)
        best = max(figures, key=lambda encoding: figures[encoding][0])
        line = ", ".join("%s %.4f (%s)" % (encoding, *figures[encoding]) for encoding in figures)
        print("%s: %s; default - best %s: %+.2f points" %
              (name, line, best, 100 * (figures["default"][0] - figures[best][0])), flush=True)
        lost = lost or figures["default"][0] < figures[best][0] - 0.01
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
