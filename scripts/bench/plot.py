# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Plots the results, a panel per group: CPU time of the guest per operation, or throughput if the
rows are the MTUs of a tunnel."""

import re

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402 pylint: disable=wrong-import-position

COLOURS = {"kiwarp": "tab:blue", "markers": "tab:cyan", "kiwarp-ext": "tab:purple",
           "siw": "tab:orange", "rxe": "tab:green", "tcp": "tab:gray", "kip": "tab:blue",
           "kip crc": "tab:cyan", "vxlan": "tab:orange", "wireguard": "tab:green",
           "plain": "tab:gray"}
BY_MTU = re.compile(r"tcp, mtu (\d+)")


def panel(axes, group, rows):
    rows = {row: columns for row, columns in rows.items()
            if any("guest_us" in cell for cell in columns.values())}
    used = [column for column in COLOURS if any(column in columns for columns in rows.values())]
    for number, column in enumerate(used):
        width = 0.8 / len(used)
        at, values, errors = [], [], []
        for index, columns in enumerate(rows.values()):
            if "guest_us" in columns.get(column, {}):
                median, around = columns[column]["guest_us"]
                at.append(index + (number - (len(used) - 1) / 2) * width)
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


def panel_by_mtu(axes, group, rows):
    mtus = [int(BY_MTU.fullmatch(row).group(1)) for row in rows]
    for column in [name for name in COLOURS if any(name in columns for columns in rows.values())]:
        axes.plot(mtus, [columns[column].get("mb_per_s", [float("nan")])[0]
                         for columns in rows.values()],
                  marker="o", color=COLOURS[column], label=column)
    axes.set_xscale("log", base=2)
    axes.set_xticks(mtus, [str(mtu) for mtu in mtus], rotation=60, fontsize=7)
    axes.set_ylim(bottom=0)
    axes.set_title(group, fontsize=9)
    axes.set_xlabel("MTU of the tunnel, bytes", fontsize=8)
    axes.set_ylabel("one TCP flow, MB/s", fontsize=8)
    axes.grid(alpha=0.3)
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
        if all(BY_MTU.fullmatch(row) for row in rows):
            panel_by_mtu(axis, group, rows)
        else:
            panel(axis, group, rows)
    for axis in list(axes.flat)[len(summary):]:
        axis.axis("off")
    figure.tight_layout()
    figure.savefig(path, dpi=100)
    plt.close(figure)
