"""A full-batch linear step in SciPy, for train_benchmark: scipy_step.py GRAPH.npz STEPS

Prints the milliseconds, of processor time, of the fastest of STEPS steps. The rows are centred as in core/train, with
the mean folded into the bias algebra, so that they stay sparse. float64 csr, noise from NumPy's generator. One thread,
if the caller sets OPENBLAS_NUM_THREADS=1. Exits with 3 when SciPy is not installed.
"""

import sys
import time

try:
    import numpy as np
    import scipy.sparse as sp
except ImportError:
    sys.exit(3)

CLIP = 0.3
NOISE = 4.0
MOMENTUM = 0.9
RATE = 1.0
BIAS = 0.1


def load(path):
    """Rows scaled as they enter the model, each row's share of the mean, the mean, and the labels."""
    file = np.load(path, allow_pickle=False)
    x = sp.csr_matrix((file["attr_data"], file["attr_indices"], file["attr_indptr"]),
                      shape=tuple(file["attr_shape"])).astype(np.float64)
    x.data = np.sqrt(np.maximum(x.data, 0))
    norms = np.sqrt(np.asarray(x.multiply(x).sum(axis=1)).ravel())
    x = sp.diags(1 / np.maximum(norms, 1e-12)) @ x
    mean = np.asarray(x.mean(axis=0)).ravel()
    distance = np.sqrt(np.maximum(1 - 2 * (x @ mean) + mean @ mean, 1e-12))
    shift = np.sqrt(0.99) / distance
    return (sp.diags(shift) @ x).tocsr(), shift, mean, file["labels"]


def main():
    x, shift, mean, labels = load(sys.argv[1])
    steps = int(sys.argv[2])
    n, d = x.shape
    c = int(labels.max()) + 1
    rows = np.arange(n)
    rng = np.random.default_rng()
    weights = np.zeros((d + 1, c))
    velocity = np.zeros_like(weights)
    best = float("inf")
    # The transposed product is taken from whichever form of the transpose is faster.
    for transposed in (x.T, x.T.tocsr()):
        for _ in range(steps):
            start = time.process_time()
            logits = x @ weights[:-1] - np.outer(shift, mean @ weights[:-1]) + BIAS * weights[-1]
            logits -= logits.max(axis=1, keepdims=True)
            residual = np.exp(logits)
            residual /= residual.sum(axis=1, keepdims=True)
            residual[rows, labels] -= 1
            norms = np.sqrt(np.einsum("ij,ij->i", residual, residual))
            residual *= np.minimum(1, CLIP / np.maximum(norms, 1e-12))[:, None]
            gradient = np.empty_like(weights)
            gradient[:-1] = transposed @ residual - np.outer(mean, shift @ residual)
            gradient[-1] = BIAS * residual.sum(axis=0)
            gradient += NOISE * rng.standard_normal(gradient.shape)
            velocity = MOMENTUM * velocity + gradient / n
            weights = weights - RATE * velocity
            best = min(best, time.process_time() - start)
    print(best * 1e3)


main()
