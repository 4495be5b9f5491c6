# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A picture of the results: a panel per group, guest code per KiB or per operation."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402 pylint: disable=wrong-import-position

COLUMNS = ("kiwarp", "markers", "siw", "rxe", "tcp")
COLOURS = dict(zip(COLUMNS, ("tab:blue", "tab:cyan", "tab:orange", "tab:green", "tab:gray")))


def panel(axes, group, rows):
    rows = {row: columns for row, columns in rows.items()
            if any("guest_us" in cell for cell in columns.values())}
    for number, column in enumerate(COLUMNS):
        width = 0.8 / len(COLUMNS)
        at, values, errors = [], [], []
        for index, columns in enumerate(rows.values()):
            if "guest_us" in columns.get(column, {}):
                median, around = columns[column]["guest_us"]
                at.append(index + (number - 2) * width)
                values.append(median)
                errors.append(median * around)
        if values:
            axes.bar(at, values, width, yerr=errors, color=COLOURS[column], label=column)
    axes.set_yscale("log")
    axes.set_xticks(range(len(rows)), list(rows), rotation=60, ha="right", fontsize=7)
    axes.set_title(group, fontsize=9)
    axes.set_ylabel("guest code, us per operation", fontsize=8)
    axes.grid(axis="y", alpha=0.3)
    axes.legend(fontsize=7)


def draw(summary, path):
    summary = {group: rows for group, rows in summary.items()
               if any("guest_us" in cell for columns in rows.values()
                      for cell in columns.values())}
    if not summary:
        return
    columns = 2 if len(summary) > 1 else 1
    lines = (len(summary) + columns - 1) // columns
    figure, axes = plt.subplots(lines, columns, figsize=(8 * columns, 4 * lines), squeeze=False)
    for axis, (group, rows) in zip(axes.flat, summary.items()):
        panel(axis, group, rows)
    for axis in list(axes.flat)[len(summary):]:
        axis.axis("off")
    figure.tight_layout()
    figure.savefig(path, dpi=100)
    plt.close(figure)
