#!/usr/bin/env python3
"""Draws the membership table of `dpar-lab audit --full`, read from stdin, as SVG on stdout.

    dpar-lab audit --full | tests/audit/plot_membership.py > docs/results/membership.svg
"""

import sys

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 24, 44, 52
LEVELS = ["no noise", "8", "4", "1"]
COLOURS = {"features": "#1b6ca8", "dpar-em0": "#c1440e", "dpar-em1": "#3a7d44", "dpar-gm": "#7b4b94"}


def read_table(lines):
    """{method: {level: (area, deviation)}} of the lines that follow the header MEMBERSHIP."""
    table, inside = {}, False
    for line in lines:
        if line.startswith("MEMBERSHIP"):
            inside = True
            continue
        words = line.split()
        if not inside or len(words) < 4:
            inside = inside and bool(words)
            continue
        method, level = words[0], " ".join(words[1:-2])
        table.setdefault(method, {})[level] = (float(words[-2]), float(words[-1]))
    return table


def x_of(index):
    return LEFT + (WIDTH - LEFT - RIGHT) * (index + 0.5) / len(LEVELS)


def y_of(area):
    return TOP + (HEIGHT - TOP - BOTTOM) * (1.02 - area) / (1.02 - 0.48)


def draw(table):
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="20" font-size="14">Membership attack on the released model: area under the ROC curve</text>',
    ]
    for tenths in range(5, 11):
        y = y_of(tenths / 10)
        dashes = ' stroke-dasharray="5 4"' if tenths == 5 else ""
        stroke = "#666" if tenths == 5 else "#ddd"
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="{stroke}"{dashes}/>')
        out.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tenths / 10:.1f}</text>')
    out.append(f'<text x="{LEFT + 6}" y="{y_of(0.5) - 5:.1f}" fill="#666">guessing by a coin</text>')
    for index, level in enumerate(LEVELS):
        label = level if level == "no noise" else f"epsilon {level}"
        out.append(f'<text x="{x_of(index):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{label}</text>')
    for place, (method, levels) in enumerate(table.items()):
        colour = COLOURS.get(method, "#000")
        shift = 6 * (place - (len(table) - 1) / 2)
        points = [(x_of(i) + shift, *levels[level]) for i, level in enumerate(LEVELS)]
        path = " ".join(f"{x:.1f},{y_of(area):.1f}" for x, area, _ in points)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        for x, area, deviation in points:
            out.append(
                f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y_of(area - deviation):.1f}" y2="{y_of(area + deviation):.1f}" '
                f'stroke="{colour}"/><circle cx="{x:.1f}" cy="{y_of(area):.1f}" r="3.5" fill="{colour}"/>'
            )
        x = WIDTH - RIGHT - 90
        y = TOP + 14 + 18 * place
        out.append(f'<circle cx="{x}" cy="{y - 4}" r="3.5" fill="{colour}"/><text x="{x + 10}" y="{y}">{method}</text>')
    out.append("</svg>")
    return "\n".join(out)


def main():
    table = read_table(sys.stdin)
    if not table:
        sys.exit("plot_membership.py: no membership table on stdin")
    print(draw(table))


if __name__ == "__main__":
    main()
