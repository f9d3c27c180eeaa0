"""Pictures of what dpar-lab sweep and dpar-lab embed measured. dpar-lab plot carries this text and runs it.

usage: DIRECTORY FILE...    (CSV files; DIRECTORY gets NAME.svg and NAME.png)
"""
import csv
import sys
from collections import defaultdict

try:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    import numpy as np
except ImportError as error:
    sys.exit(f"plot: {error}; install Debian's package python3-matplotlib")

# Told apart in grey by marker and line, in colour by colours that differ in lightness.
STYLES = {
    "features": dict(label="Features", color="#000000", marker="o", linestyle="-"),
    "dpar-em0": dict(label="DPAR-EM0", color="#0072b2", marker="s", linestyle="--"),
    "dpar-em1": dict(label="DPAR-EM1", color="#d55e00", marker="^", linestyle="-."),
    "dpar-gm": dict(label="DPAR-GM", color="#009e73", marker="D", linestyle=":"),
    "gap": dict(label="GAP", color="#cc79a7", marker="v", linestyle="-"),
    "sage": dict(label="SAGE", color="#7f6000", marker="P", linestyle="--"),
}
AXES = {
    "accounting": ("epsilon by the paper's theorems", "log"),
    "epsilon": ("epsilon", "log"),
    "ratio": ("share of epsilon for DP-APPR", "linear"),
    "bound": ("clipping bound of DP-APPR (C1 of GM, C2 of EM)", "log"),
    "top-k": ("K, entries of a row", "log"),
    "appr-nodes": ("M, nodes with a DP-APPR row", "log"),
    "batch": ("B, expected batch size (rows)", "log"),
    "gradient-clip": ("C, bound of a gradient's norm", "log"),
    "node-sampling": ("q', share of the nodes that is sampled", "log"),
    "hops": ("hops of GAP", "linear"),
    "aggregation-clip": ("R, bound of a sum over neighbours", "log"),
    "neighbours": ("neighbours that SAGE samples", "log"),
    "promise": ("D, degree promise, in multiples of the largest degree", "log"),
}
ACCOUNTANTS = {
    "as-published": "noise as published, the paper's plan",
    "sound": "SOUND noise, our plan",
}
TITLES = {"cora_ml": "Cora-ML", "coauthor_cs": "CS", "coauthor_phy": "Physics"}
INFERENCES = {"power": "power iteration", "mean-field": "mean-field", "none": "their own inference"}
# Methods that read training edges, priced under a degree promise: pictures of their own.
RIVALS = ("gap", "sage")
LETTERS = {"features": "F", "dpar-em0": "0", "dpar-em1": "1", "dpar-gm": "G", "gap": "P", "sage": "S"}


def read(path):
    try:
        with open(path, newline="") as stream:
            rows = list(csv.DictReader(stream))
    except (OSError, UnicodeDecodeError) as error:
        sys.exit(f"plot: cannot read '{path}': {error}")
    columns = set(rows[0]) if rows else set()
    if not ({"sweep", "value", "method"} <= columns or {"node", "label", "e0"} <= columns):
        sys.exit(f"plot: '{path}' is no CSV file of dpar-lab sweep or dpar-lab embed")
    return rows


def plain(value):
    return f"{value:g}"


def save(figure, directory, name, dpi=110):
    for ending in ("svg", "png"):
        figure.savefig(
            f"{directory}/{name}.{ending}",
            dpi=dpi,
            bbox_inches="tight",
            metadata={"Date": None} if ending == "svg" else {},
        )
    plt.close(figure)


def aside(value, values, places, scale):
    """The value moved a little, so that bars and stars of several methods do not hide each other."""
    share = 0.010 * places
    if scale == "log":
        return value * (max(values) / min(values)) ** share
    return value + share * (max(values) - min(values))


def draw_curves(axes, rows, scale):
    """One curve a method, with a standard deviation to either side, and what the paper reports as a star."""
    curves = defaultdict(list)
    for row in rows:
        curves[row["method"]].append(row)
    values = [float(row["value"]) for row in rows]
    # Pictures without rivals have a place for each method, so that a method has the same in all of them.
    order = [method for method in STYLES if (method in curves if set(RIVALS) & set(curves) else method not in RIVALS)]
    for method, points in curves.items():
        points.sort(key=lambda row: float(row["value"]))
        style = STYLES[method]
        place = order.index(method) - (len(order) - 1) / 2
        axes.errorbar(
            [aside(float(row["value"]), values, place, scale) for row in points],
            [float(row["mean"]) for row in points],
            yerr=[float(row["std"]) for row in points],
            capsize=3,
            linewidth=1.4,
            markersize=5,
            elinewidth=0.8,
            **style,
        )
        stars = [
            (aside(float(row["value"]), values, 2 * place, scale), float(row["paper"]))
            for row in points
            if row["paper"]
        ]
        if stars:
            axes.plot(
                *zip(*stars),
                linestyle="none",
                marker="*",
                markersize=13,
                markerfacecolor="white",
                markeredgecolor=style["color"],
                zorder=5 + order.index(method),
            )
            # A star does not say whose it is in grey; its letter does.
            for x, y in stars:
                axes.annotate(
                    LETTERS[method],
                    (x, y),
                    fontsize=5.5,
                    ha="center",
                    va="center",
                    zorder=20,
                )


def set_ticks(axes, values, scale):
    axes.set_xscale(scale)
    axes.set_xticks(values)
    axes.set_xticklabels([plain(value) for value in values])
    axes.minorticks_off()


def plot_sweep(name, graph, rows):
    accountants = [a for a in ACCOUNTANTS if any(row["accountant"] == a for row in rows)]
    swept = name == "epsilon"
    epsilons = [None] if swept else sorted({float(row["epsilon"]) for row in rows})
    title, scale = AXES[name]
    figure, grid = plt.subplots(
        len(epsilons),
        len(accountants),
        figsize=(4.6 * len(accountants), 3.3 * len(epsilons)),
        sharey=True,
        squeeze=False,
    )
    for i, epsilon in enumerate(epsilons):
        for j, accountant in enumerate(accountants):
            axes = grid[i][j]
            here = [
                row for row in rows if row["accountant"] == accountant and epsilon in (None, float(row["epsilon"]))
            ]
            draw_curves(axes, here, scale)
            set_ticks(axes, sorted({float(row["value"]) for row in here}), scale)
            inference = INFERENCES[here[0]["inference"]]
            if len({row["inference"] for row in here}) > 1:
                inference = next(f"Features: {INFERENCES[row['inference']]}" for row in here if row["inference"] != "none")
            heading = f"{ACCOUNTANTS[accountant]} ({inference})"
            axes.set_title(heading if swept else f"epsilon {plain(epsilon)}, {heading}", fontsize=8.5)
            axes.grid(True, linewidth=0.3, color="0.8")
            axes.set_xlabel(title)
            if j == 0:
                axes.set_ylabel("accuracy (share of nodes)")
    finish(figure, grid, rows, graph, stars=any(row["paper"] for row in rows))
    return figure


def finish(figure, grid, rows, graph, stars):
    handles, labels = grid[0][0].get_legend_handles_labels()
    if stars:
        handles.append(
            matplotlib.lines.Line2D(
                [], [], linestyle="none", marker="*", markersize=11, markerfacecolor="white", markeredgecolor="black"
            )
        )
        letters = ", ".join(letter for method, letter in LETTERS.items() if any(row["method"] == method for row in rows))
        labels.append(f"paper's Table 1 ({letters})")
    seeds = sorted({int(row["seeds"]) for row in rows if row.get("seeds")})
    spread = f", bars: standard deviation over {' or '.join(map(str, seeds))} seeds" if seeds else ""
    delta = plain(float(rows[0]["delta"]))
    figure.suptitle(f"{TITLES[graph]}, delta {delta}, {rows[0]['split']} split{spread}", fontsize=10)
    figure.tight_layout(rect=(0, 0.3 / figure.get_figheight(), 1, 1))
    figure.legend(handles, labels, loc="lower center", ncol=len(labels), frameon=False, fontsize=8.5)


def plot_accounting(name, graph, rows):
    figure, grid = plt.subplots(1, 1, figsize=(5.6, 4.2), squeeze=False)
    axes = grid[0][0]
    for method, style in STYLES.items():
        here = [row for row in rows if row["method"] == method]
        points = sorted((float(row["published_epsilon"]), float(row["sound_epsilon"])) for row in here)
        if points:
            # The three of DPAR nearly coincide: rings of several sizes show all of them.
            size = {"features": 5, "dpar-em0": 11, "dpar-em1": 8, "dpar-gm": 4}.get(method, 6)
            axes.plot(*zip(*points), linewidth=1.4, markersize=size, fillstyle="none", **style)
    values = sorted({float(row["value"]) for row in rows})
    axes.plot(values, values, color="0.5", linewidth=0.8, label="the claim itself")
    set_ticks(axes, values, "log")
    axes.set_yscale("log")
    prices = values + [float(row["sound_epsilon"]) for row in rows]
    ticks = [0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000]
    ticks = [tick for tick in ticks if min(prices) / 1.5 <= tick <= 1.5 * max(prices)]
    axes.set_yticks(ticks)
    axes.set_yticklabels([plain(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel(AXES[name][0])
    axes.set_ylabel("epsilon of the same noise, SOUND")
    axes.grid(True, linewidth=0.3, color="0.8")
    finish(figure, grid, rows, graph, stars=False)
    return figure


def affinities(squares, perplexity):
    """Row-wise Gaussian affinities whose entropy is ln(perplexity), by bisection, made symmetric."""
    count = len(squares)
    squares = squares + np.diag(np.full(count, np.inf))
    squares = squares - squares.min(axis=1, keepdims=True)
    low, high = np.full(count, 1e-12), np.full(count, 1e12)
    for _ in range(80):
        beta = np.sqrt(low * high)
        weights = np.exp(-beta[:, None] * squares)
        p = weights / weights.sum(axis=1, keepdims=True)
        entropy = -(p * np.log(np.maximum(p, 1e-300))).sum(axis=1)
        wide = entropy > np.log(perplexity)
        low, high = np.where(wide, beta, low), np.where(wide, high, beta)
    return np.maximum((p + p.T) / (2 * count), 1e-12)


def tsne(points, iterations=350, perplexity=30.0):
    """Exact t-SNE (van der Maaten and Hinton 2008) from the two main components on, so that no chance is in it."""
    points = points - points.mean(axis=0)
    points = points / max(np.sqrt((points**2).sum(axis=1).mean()), 1e-12)
    squares = np.maximum(((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2), 0)
    p = affinities(squares, perplexity)
    u, s, _ = np.linalg.svd(points, full_matrices=False)
    place = u[:, :2] * s[:2]
    place = 1e-4 * place / max(place.std(), 1e-12)
    velocity, gain = np.zeros_like(place), np.ones_like(place)
    for step in range(iterations):
        sums = (place**2).sum(axis=1)
        kernel = 1 / (1 + sums[:, None] + sums[None, :] - 2 * place @ place.T)
        np.fill_diagonal(kernel, 0)
        pull = ((12.0 if step < 100 else 1.0) * p - kernel / kernel.sum()) * kernel
        gradient = 4 * (pull.sum(axis=1)[:, None] * place - pull @ place)
        same = np.sign(gradient) == np.sign(velocity)
        gain = np.maximum(np.where(same, gain * 0.8, gain + 0.2), 0.01)
        velocity = (0.5 if step < 100 else 0.8) * velocity - 200.0 * gain * gradient
        place = place + velocity
        place -= place.mean(axis=0)
    return place


def plot_embeddings(directory, rows):
    dimensions = sorted((c for c in rows[0] if c[0] == "e" and c[1:].isdigit()), key=lambda c: int(c[1:]))
    panels = defaultdict(list)
    for row in rows:
        panels[(row["accountant"], row["method"]), float(row["epsilon"])].append(row)
    kinds = list(dict.fromkeys(kind for kind, _ in panels))
    epsilons = sorted({epsilon for _, epsilon in panels})
    labels = sorted({int(row["label"]) for row in rows})
    colours = plt.get_cmap("viridis")(np.linspace(0, 0.88, len(labels)))
    figure, grid = plt.subplots(
        len(kinds), len(epsilons), figsize=(3.1 * len(epsilons), 3.1 * len(kinds)), squeeze=False
    )
    for i, kind in enumerate(kinds):
        for j, epsilon in enumerate(epsilons):
            here = panels[kind, epsilon]
            place = tsne(np.array([[float(row[c]) for c in dimensions] for row in here]))
            owner = np.array([int(row["label"]) for row in here])
            axes = grid[i][j]
            for label, colour, marker in zip(labels, colours, "osD^v<>Pp*Xhd+x" * len(labels)):
                chosen = place[owner == label]
                axes.scatter(
                    chosen[:, 0], chosen[:, 1], s=7, color=colour, marker=marker, linewidths=0.4, rasterized=True,
                    label=f"class {label}",
                )
            axes.set_xticks([])
            axes.set_yticks([])
            name = "auto" if kind == ("sound", "features") else STYLES[kind[1]]["label"]
            claim = "as published" if kind[0] == "as-published" else "SOUND"
            axes.set_title(f"{name}, {claim}, epsilon {plain(epsilon)}", fontsize=9)
    handles, names = grid[0][0].get_legend_handles_labels()
    figure.suptitle(
        f"{TITLES[rows[0]['graph']]}: t-SNE of the logits of {len(here)} training nodes (not private)", fontsize=10
    )
    figure.tight_layout(rect=(0, 0.04, 1, 1))
    figure.legend(handles, names, loc="lower center", ncol=min(len(names), 8), frameon=False, fontsize=8.5)
    save(figure, directory, "embeddings", dpi=66)


def main(directory, paths):
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "dpar-lab", "font.size": 9})
    sweeps = defaultdict(list)
    for path in paths:
        rows = read(path)
        if "e0" in rows[0]:
            plot_embeddings(directory, rows)
        else:
            sweeps[rows[0]["sweep"], rows[0]["graph"]] += rows
    for (name, graph), rows in sweeps.items():
        alone = sum(other == name for other, _ in sweeps) == 1
        stem = name if alone else f"{name}-{graph}"
        draw = plot_accounting if name == "accounting" else plot_sweep
        others = [row for row in rows if row["method"] not in RIVALS]
        if others:
            save(draw(name, graph, others), directory, stem)
        if len(others) < len(rows):
            # Beside what needs no promise, where that was measured too.
            shown = [row for row in rows if row["method"] in RIVALS + ("features",)]
            save(draw(name, graph, shown), directory, f"{stem}-rivals")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
