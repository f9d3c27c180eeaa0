#!/usr/bin/env python3
"""GAP and SAGE without privacy, as their papers have them, in plain PyTorch: what `dpar-lab accuracy --method gap
--non-private` (and sage) is held against. Shares no code with the project.

    rival_reference.py gap|sage GRAPH.npz [--seeds N] [--length N]

GAP (Sajadmanesh et al. 2023): an encoder of two layers with SELU, trained with a linear head; its outputs scaled to
length 1 and summed over neighbours, twice; a layer for each hop, side by side, and a linear head. Both trained for 100
epochs by Adam at 0.01 on batches of 256, as the node-private configuration of its released code, noise left out. SAGE: one layer
of GraphSAGE with the mean of at most 5 sampled neighbours, 100 units, a linear head; Adam at 0.003 on batches of a
ninth of the nodes, 3,000 steps, as the code of Daigavane et al. (2021).

Features are square roots of counts, scaled to length 1, as in this project. Splits are those of dpar-lab: the fifth of
the nodes with the smallest XXH64 of their numbers is predicted, and edges between the parts are removed. Prints the
accuracy of every split and their mean. Needs python3-torch and python3-numpy.
"""
import argparse

import numpy as np
import torch
from torch import nn
from torch.nn import functional

MASK = (1 << 64) - 1


def xxh64_of_slot(slot, seed):
    """XXH64 of the slot as eight little-endian bytes."""
    p1, p2, p3, p4, p5 = (
        11400714785074694791,
        14029467366897019727,
        1609587929392839161,
        9650029242287828579,
        2870177450012600261,
    )

    def rotate(x, r):
        return ((x << r) | (x >> (64 - r))) & MASK

    h = (seed + p5 + 8) & MASK
    k = (rotate((slot * p2) & MASK, 31) * p1) & MASK
    h = ((rotate(h ^ k, 27) * p1) + p4) & MASK
    h = ((h ^ (h >> 33)) * p2) & MASK
    h = ((h ^ (h >> 29)) * p3) & MASK
    return h ^ (h >> 32)


class Graph:
    """One part of the graph: sparse features by rows, edges in both directions, labels."""

    def __init__(self, rows, columns, values, sources, targets, labels, feature_count):
        self.labels = torch.as_tensor(labels)
        self.count = len(labels)
        self.feature_count = feature_count
        self.rows, self.columns, self.values = rows, columns, values
        self.starts = np.searchsorted(rows, np.arange(self.count + 1))
        self.edges = torch.as_tensor(np.stack([sources, targets]))

    def bag(self, nodes):
        """Indices, offsets and weights of the nodes' features, for an embedding bag."""
        lengths = self.starts[nodes + 1] - self.starts[nodes]
        offsets = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        places = np.repeat(self.starts[nodes] - offsets, lengths) + np.arange(lengths.sum())
        return torch.as_tensor(self.columns[places]), torch.as_tensor(offsets), torch.as_tensor(self.values[places])


def read(path):
    file = np.load(path, allow_pickle=True)
    get = lambda name: file[name] if name in file else file[name.replace("adj_", "adj_matrix.").replace("attr_", "attr_matrix.")]
    count = int(get("adj_shape")[0])
    sources = np.repeat(np.arange(count), np.diff(get("adj_indptr")))
    targets = get("adj_indices").astype(np.int64)
    kept = sources != targets
    pairs = np.unique(
        np.concatenate([sources[kept] * count + targets[kept], targets[kept] * count + sources[kept]])
    )
    rows = np.repeat(np.arange(count), np.diff(get("attr_indptr")))
    columns = get("attr_indices").astype(np.int64)
    values = np.sqrt(np.maximum(get("attr_data").astype(np.float64), 0))
    order = np.lexsort((columns, rows))
    rows, columns, values = rows[order], columns[order], values[order]
    norms = np.sqrt(np.bincount(rows, values**2, count))
    values = (values / norms[rows]).astype(np.float32)
    return rows, columns, values, pairs // count, pairs % count, file["labels"].astype(np.int64), int(get("attr_shape")[1])


def split(whole, seed):
    rows, columns, values, sources, targets, labels, feature_count = whole
    count = len(labels)
    order = sorted(range(count), key=lambda slot: (xxh64_of_slot(slot, seed), slot))
    is_query = np.zeros(count, bool)
    is_query[order[: round(0.2 * count)]] = True
    parts = []
    for here in (~is_query, is_query):
        number = np.cumsum(here) - 1
        entries = here[rows]
        inside = here[sources] & here[targets]
        parts.append(
            Graph(
                number[rows[entries]],
                columns[entries],
                values[entries],
                number[sources[inside]],
                number[targets[inside]],
                labels[here],
                feature_count,
            )
        )
    return parts


class FirstLayer(nn.Module):
    """A linear layer on sparse rows."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, bag):
        return functional.embedding_bag(bag[0], self.weight, bag[1], per_sample_weights=bag[2], mode="sum") + self.bias


class Encoder(nn.Module):
    def __init__(self, inputs, classes, width=16):
        super().__init__()
        self.first = FirstLayer(inputs, width)
        self.second = nn.Linear(width, width)
        self.head = nn.Linear(width, classes)

    def encode(self, bag):
        return self.second(functional.selu(self.first(bag)))

    def forward(self, bag):
        return self.head(functional.selu(self.encode(bag)))


class HopClassifier(nn.Module):
    def __init__(self, hops, classes, width=16):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(hops + 1)])
        self.head = nn.Linear(width * (hops + 1), classes)

    def forward(self, rows):
        return self.head(functional.selu(torch.cat([layer(x) for layer, x in zip(self.layers, rows)], 1)))


def fit(model, inputs_of, labels, epochs, rate, batch=256):
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for _ in range(epochs):
        order = torch.randperm(len(labels))
        for start in range(0, len(labels), batch):
            nodes = order[start : start + batch]
            optimizer.zero_grad()
            functional.cross_entropy(model(inputs_of(nodes)), labels[nodes]).backward()
            optimizer.step()


def hop_rows(encoder, graph, hops):
    with torch.no_grad():
        rows = [functional.normalize(encoder.encode(graph.bag(np.arange(graph.count))))]
        for _ in range(hops):
            total = torch.zeros_like(rows[-1]).index_add(0, graph.edges[0], rows[-1][graph.edges[1]])
            rows.append(functional.normalize(total))
    return rows


def gap(train, query, classes, epochs, hops=2):
    encoder = Encoder(train.feature_count, classes)
    fit(encoder, lambda nodes: train.bag(nodes.numpy()), train.labels, epochs, 0.01)
    classifier = HopClassifier(hops, classes)
    rows = hop_rows(encoder, train, hops)
    fit(classifier, lambda nodes: [block[nodes] for block in rows], train.labels, epochs, 0.01)
    return classifier(hop_rows(encoder, query, hops))


class Sage(nn.Module):
    def __init__(self, inputs, classes, width=100):
        super().__init__()
        self.own = FirstLayer(inputs, width)
        self.neighbours = FirstLayer(inputs, width)
        self.head = nn.Linear(width, classes)

    def forward(self, own, listed, places, weights, count):
        mean = torch.zeros(count, self.head.in_features)
        if len(places):
            embedded = functional.embedding_bag(
                listed[0], self.neighbours.weight, listed[1], per_sample_weights=listed[2], mode="sum"
            )
            mean = mean.index_add(0, places, embedded * weights[:, None])
        return self.head(functional.relu(self.own(own) + mean + self.neighbours.bias))


def lists_of(graph):
    sources, targets = graph.edges.numpy()
    order = np.argsort(sources, kind="stable")
    return np.split(targets[order], np.searchsorted(sources[order], np.arange(1, graph.count)))


def sage(train, query, classes, steps):
    model = Sage(train.feature_count, classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    random = np.random.default_rng(torch.initial_seed() % 2**32)
    lists = [random.choice(some, 5, replace=False) if len(some) > 5 else some for some in lists_of(train)]

    def logits(graph, neighbours, nodes):
        lengths = np.array([len(neighbours[node]) for node in nodes])
        listed = np.concatenate([neighbours[node] for node in nodes]) if lengths.sum() else np.zeros(0, np.int64)
        places = np.repeat(np.arange(len(nodes)), lengths)
        weights = torch.as_tensor(1 / np.maximum(lengths, 1)[places], dtype=torch.float32)
        return model(graph.bag(nodes), graph.bag(listed), torch.as_tensor(places), weights, len(nodes))

    for _ in range(steps):
        nodes = np.flatnonzero(random.random(train.count) < 1 / 9)
        optimizer.zero_grad()
        functional.cross_entropy(logits(train, lists, nodes), train.labels[nodes]).backward()
        optimizer.step()
    with torch.no_grad():
        return logits(query, lists_of(query), np.arange(query.count))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=["gap", "sage"])
    parser.add_argument("graph")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--length", type=int, help="epochs of gap (100), steps of sage (3000)")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    whole = read(arguments.graph)
    accuracies = []
    for seed in range(1, arguments.seeds + 1):
        torch.manual_seed(seed)
        train, query = split(whole, seed)
        classes = int(whole[5].max()) + 1
        with_labels = (
            gap(train, query, classes, arguments.length or 100)
            if arguments.model == "gap"
            else sage(train, query, classes, arguments.length or 3000)
        )
        accuracies.append(float((with_labels.argmax(1) == query.labels).float().mean()))
        print("seed %d: %.4f" % (seed, accuracies[-1]), flush=True)
    print("mean %.4f, deviation %.4f" % (np.mean(accuracies), np.std(accuracies, ddof=min(1, len(accuracies) - 1))))


if __name__ == "__main__":
    main()
