#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The plan of the measurements, and the report of their results.

  report.py plan [--smp] --rounds N --ms N --rows REGEX    the plan, as JSON
  report.py seconds PLAN                           estimates how long the plan takes
  report.py follow                                 shows the progress, from lines of results
  report.py report DIR [--compare FILE]            makes results.json, table.txt and plot.png of
                                                   DIR/lines
"""

import argparse
import itertools
import json
import re
import statistics
import sys

import verdict

SIZES = {"64 B": 64, "4 KiB": 4096, "64 KiB": 65536, "1 MiB": 1048576}
OPERATIONS = ("write", "read", "send")
MTUS = (1500, 9000, 65535)
SETUP_SECONDS = 0.4
TUNNEL_MTUS = (1280, 1500, 4092, 9000, 16384, 32768, 65520)
CONNECTIONS = (1, 16, 256, 1000, 4000)
# KiB of memory at each end: fits the L2 cache of a core, the L3 cache of most processors, neither.
# Not more: each page is a mapping of User Mode Linux in the host, which has a limit of 65530.
WORKING_SETS = {"256 KiB": 256, "8 MiB": 8 << 10, "96 MiB": 96 << 10}
SPURIOUS = 10000
# Columns that the other columns of a row are compared with
BASES = ("siw", "plain", "tcp", "segment")
# Setting up a stack and removing it; fio's start; in seconds
STACK_SECONDS = 10
# Storage is measured for longer than other rows, as its work comes in larger pieces
IO_TIMES = 3
FIO_SECONDS = 2


# --- the plan -----------------------------------------------------------------


def bulk_rows(sizes=SIZES):
    rows = [{"row": f"{op} {name}", "arguments": [op, f"size={size}"]}
            for op in OPERATIONS for name, size in SIZES.items() if name in sizes]
    if "64 B" in sizes:
        rows += batched_rows("64 B")
    return rows


def batched_rows(name):
    """The rows with 16 work requests per post."""
    return [{"row": f"{op} {name} x16", "arguments": [op, f"size={SIZES[name]}", "batch=16"]}
            for op in OPERATIONS]


def tcp_rows(crc):
    op = "tcp-crc" if crc else "tcp"
    rows = [{"row": f"{op} {name}", "arguments": [op, f"size={SIZES[name]}"]}
            for name in ("64 KiB", "1 MiB")]
    if crc:
        rows.append({"row": "crc pass 64 KiB", "arguments": ["crc", "size=65536"]})
    return rows


def parameters(driver, crc, markers=False, fpdu="auto"):
    if driver.startswith("kiwarp"):
        return {"crc": "NY"[crc], "markers": "NY"[markers], "fpdu": fpdu}
    return {"mpa_crc_required": "NY"[crc], "mpa_crc_strict": "NY"[crc]}


def setting(group, column, rows, mtu=1500, driver="", values=None):
    return {"group": group, "column": column, "rows": rows, "mtu": mtu, "driver": driver,
            "parameters": values or {}}


def bulk_settings():
    for mtu in MTUS:
        for crc in (False, True):
            group = f"mtu {mtu}, crc {'on' if crc else 'off'}"
            rows = bulk_rows() + (batched_rows("64 KiB") if mtu == 1500 else [])
            for driver in ("kiwarp", "siw") + (("kiwarp-ext",) if mtu == 1500 else ()):
                yield setting(group, driver, rows, mtu, driver, parameters(driver, crc))
            yield setting(group, "tcp", tcp_rows(crc), mtu)
    group = "mtu 1500, crc on"
    yield setting(group, "markers", bulk_rows(("64 KiB",)) + batched_rows("64 KiB"), 1500,
                  "kiwarp", parameters("kiwarp", True, True))


def fpdu_settings():
    """Large FPDUs, compared with FPDUs that fit into segments."""
    rows = bulk_rows(("64 KiB", "1 MiB"))
    for mtu in MTUS:
        for name, crc, markers in (("crc off", False, False), ("crc on", True, False),
                                   ("markers", True, True)):
            for fpdu in ("segment", "large"):
                yield setting(f"fpdu, mtu {mtu}, {name}", fpdu, rows, mtu, "kiwarp",
                              parameters("kiwarp", crc, markers, fpdu))


def once(row, arguments, rounds=1):
    """A row that takes long, or for which one round is enough."""
    return {"row": row, "arguments": arguments, "rounds": rounds}


def small_settings():
    latency = [{"row": op, "arguments": [op, "size=64"]} for op in ("send-lat", "write-lat")]
    many = [once(f"write 4 KiB, {count} QPs",
                 ["write", "size=4096", "depth=16", "batch=16", f"conns={count}"], 5 if count < 1000 else 1)
            for count in CONNECTIONS]
    for driver in ("kiwarp", "siw"):
        values = parameters(driver, False)
        yield setting("latency", driver, latency, 1500, driver, values)
        yield setting("connections", driver, [
            {"row": "conn", "arguments": ["conn"]},
            once(f"conn, {SPURIOUS}", ["conn", f"count={SPURIOUS}"]),
        ], 1500, driver, values)
        yield setting("many", driver, many, 1500, driver, values)
        yield setting("many, crc on", driver,
                      [dict(row) for row in many if "1000 QPs" in row["row"]], 1500, driver,
                      parameters(driver, True))
    for row, group in (("tcp-lat", "latency"), ("tcp-conn", "connections")):
        yield setting(group, "tcp", [{"row": row, "arguments": [row, "size=64"]}])


def working_set_settings():
    """How much depends on the caches: the memory that messages rotate over, at both ends."""
    for crc in (False, True):
        group = f"working set, crc {'on' if crc else 'off'}"
        for column, driver, op in (("kiwarp", "kiwarp", "write"), ("siw", "siw", "write"),
                                   ("tcp", "", "tcp-crc" if crc else "tcp")):
            rows = [{"row": f"64 KiB in {name}", "arguments": [op, "size=65536", f"span={kib}"]}
                    for name, kib in WORKING_SETS.items()]
            yield setting(group, column, rows, 1500, driver,
                          parameters(driver, crc) if driver else None)


def verify_settings():
    for mtu in MTUS:
        for column, driver, crc, markers in (
                ("kiwarp", "kiwarp", False, False), ("kiwarp crc", "kiwarp", True, False),
                ("markers", "kiwarp", True, True), ("siw", "siw", False, False),
                ("siw crc", "siw", True, False)):
            yield setting("verify", column, [once(f"mtu {mtu}", ["verify"])], mtu, driver,
                          parameters(driver, crc, markers))
        for crc in (False, True):
            yield setting("verify", f"segment{' crc' if crc else ''}",
                          [once(f"mtu {mtu}", ["verify"])], mtu, "kiwarp",
                          parameters("kiwarp", crc, False, "segment"))


def rxe_settings():
    """rxe works only in the initial namespace. It, and what it is compared with, talk to their own
    address there."""
    own = ["from=init", "to=init"]
    rows = [{"row": row["row"], "arguments": row["arguments"] + own} for row in bulk_rows()]
    for driver in ("kiwarp", "kiwarp-ext", "siw", "rxe"):
        values = {} if driver == "rxe" else parameters(driver, True)
        yield {**setting("own address, crc on", driver, rows, 1500, driver, values), "own": True}


def ip_settings():
    """IP over RDMA, compared with other ways to carry packets between hosts."""
    rows = [{"row": "tcp 64 KiB", "arguments": ["tcp", "size=65536"]},
            {"row": "tcp-lat", "arguments": ["tcp-lat", "size=64"]},
            {"row": "ping", "ping": 56}]
    by_mtu = [{"row": f"tcp, mtu {mtu}", "arguments": ["tcp", "size=65536"], "tunnel_mtu": mtu}
              for mtu in TUNNEL_MTUS]
    for column, driver, tunnel, crc in (
            ("plain", "", "", False), ("vxlan", "", "vxlan", False),
            ("wireguard", "", "wireguard", False), ("kip", "kiwarp", "kiwarp_ip", False),
            ("kip crc", "kiwarp", "kiwarp_ip", True)):
        values = parameters(driver, crc) if driver else None
        one = setting("ip", column, rows, 1500, driver, values)
        yield {**one, "tunnel": tunnel}
        if driver:
            yield {**one, "tunnel": tunnel, "group": "ip by mtu", "rows": by_mtu}


def io_row(row, mode, size, depth):
    return {"row": row, "io": [f"--rw={mode}", f"--bs={size}", f"--iodepth={depth}"]}


def instead_settings():
    """What a user would run instead: the same protocol over TCP."""
    small = [io_row("random read 4 KiB, 32", "randread", 4096, 32),
             io_row("random read 4 KiB, 1", "randread", 4096, 1),
             io_row("random write 4 KiB, 32", "randwrite", 4096, 32)]
    large = {"nfs": ("1 MiB, 4", 1 << 20, 4), "nvme": ("128 KiB, 8", 1 << 17, 8),
             "iscsi": ("128 KiB, 8", 1 << 17, 8)}
    for stack, (name, size, depth) in large.items():
        rows = [io_row(f"read {name}", "read", size, depth),
                io_row(f"write {name}", "write", size, depth)] + small
        for digests in (False, True):
            group = f"instead, {stack}, {'digests' if digests else 'plain'}"
            for column, transport in (("tcp", "tcp"), ("kiwarp", "rdma")):
                one = setting(group, column, [dict(row) for row in rows])
                yield {**one, "stack": [stack, transport, "ny"[digests]]}


def smp_settings(rounds):
    """Two flows, each on a CPU of its own, compared with one of them alone."""
    def rows(*operations):
        return [{"row": f"{op} {name}", "arguments":
                 [op, f"size={SIZES[size]}", f"batch={batch}", "flows=2", f"rounds={rounds}"]}
                for op in operations
                for name, size, batch in (("64 KiB", "64 KiB", 1), ("64 B x16", "64 B", 16))
                if batch == 1 or op in OPERATIONS]

    for crc in (False, True):
        group = f"two CPUs, crc {'on' if crc else 'off'}"
        for driver in ("kiwarp", "siw"):
            yield setting(group, driver, rows(*OPERATIONS), 1500, driver, parameters(driver, crc))
    yield setting("two CPUs", "tcp", rows("tcp", "crc"))


def make_plan(args):
    wanted = re.compile(args.rows)
    settings = []
    rounds, every = args.rounds, itertools.chain(bulk_settings(), rxe_settings(),
                                                 small_settings(), working_set_settings(),
                                                 ip_settings(), instead_settings(),
                                                 fpdu_settings(), verify_settings())
    if args.smp:
        rounds, every = 1, smp_settings(args.rounds)
    for one in every:
        one["rows"] = [row for row in one["rows"]
                       if wanted.search(f"{one['group']}: {row['row']}")]
        one["rows"] = [{**row, "arguments": row["arguments"] + [f"ms={args.ms}"]}
                       if "arguments" in row else row for row in one["rows"]]
        one["rows"] = [{**row, "io": [str(IO_TIMES * args.ms)] + row["io"]}
                       if "io" in row else row for row in one["rows"]]
        if one["rows"]:
            settings.append(one)
    json.dump({"rounds": rounds, "slices": 4 * args.rounds if args.smp else 2, "ms": args.ms,
               "settings": settings}, sys.stdout, indent=1)


def plan_seconds(args):
    with open(args.plan, encoding="utf-8") as file:
        plan = json.load(file)
    times = sum(min(row.get("rounds", plan["rounds"]), plan["rounds"])
                for one in plan["settings"] for row in one["rows"])
    more = sum(STACK_SECONDS + len(one["rows"]) * (IO_TIMES * plan["ms"] / 1000 + FIO_SECONDS)
               for one in plan["settings"] if "stack" in one) * plan["rounds"]
    print(int(times * (plan["ms"] / 1000 * plan["slices"] + SETUP_SECONDS) + more) + 60)


# --- results ------------------------------------------------------------------


def read_lines(path):
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.startswith("{"):
                yield json.loads(line)


def derive(line):
    """Computes the numbers that are compared from a line of the traffic program."""
    if "error" in line:
        return {}
    ops = line.get("ops") or 1
    values = {name: line[name] for name in
              ("p50_us", "p99_us", "io_p50_us", "io_p99_us", "kib_per_conn", "connect_us", "close_us", "failed")
              if name in line}
    if "flows" in line:
        values["ops_per_s"] = line["ops_per_s"]
        values["mb_per_s"] = line["ops_per_s"] * line["size"] / 1e6
        values["gain"] = line["ops_per_s"] / line["alone_ops_per_s"]
    if "wall_us" not in line:
        return values
    # Do not count the time in which the guest was ready but other processes ran.
    busy = max(line["wall_us"] - line["delay_us"], line["run_us"], 1)
    values["ops_per_s"] = ops / busy * 1e6
    values["mb_per_s"] = line["bytes"] / busy
    values["host_us"] = line["run_us"] / ops
    values["user_ticks"] = line["user_us"]
    values["sys_ticks"] = line["sys_us"]
    if "min_ops" in line:
        values["unfairness"] = line["max_ops"] / max(line["min_ops"], 1)
    return values


def spread(values):
    """Half of the interquartile range, as a fraction of the median."""
    if len(values) < 3 or not statistics.median(values):
        return 0
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / 2 / statistics.median(values)


def split(cell, values):
    """Splits the time into the guest's and the host kernel's part. As ticks are coarse, those of
    all rounds are used."""
    user, system = sum(values.pop("user_ticks", [])), sum(values.pop("sys_ticks", []))
    if "host_us" in values and user + system:
        part = user / (user + system)
        values["guest_us"] = [value * part for value in values["host_us"]]
        cell["artefact"] = [1 - part, 0]


def summarise(lines):
    """{group: {row: {column: {"checked", "bad", "errors", NAME: [median, spread]}}}}"""
    raw = {}
    for line in lines:
        cell = raw.setdefault(line["group"], {}).setdefault(line["row"], {}) \
            .setdefault(line["column"], {"checked": 0, "bad": 0, "errors": [], "values": {}})
        cell["checked"] += line.get("checked", 0)
        cell["bad"] += line.get("bad", 0)
        if "error" in line:
            cell["errors"].append(line["error"])
        for name, value in derive(line).items():
            cell["values"].setdefault(name, []).append(value)
    for rows in raw.values():
        for columns in rows.values():
            for cell in columns.values():
                raw_values = cell.pop("values")
                split(cell, raw_values)
                for name, values in raw_values.items():
                    cell[name] = [statistics.median(values), spread(values)]
    return raw


# --- the table ----------------------------------------------------------------


def headline(cell):
    """The main result of a row: its name, unit and value."""
    if "p50_us" in cell:
        return "us p50", cell["p50_us"]
    if cell.get("mb_per_s", [0])[0] >= 1 and cell["mb_per_s"][0] / cell["ops_per_s"][0] >= 0.004:
        return "MB/s", cell["mb_per_s"]
    if "ops_per_s" in cell:
        return "op/s", cell["ops_per_s"]
    return "", None


def describe(cell):
    if cell["errors"]:
        return "failed: " + cell["errors"][0][:40].replace("\n", " ")
    unit, value = headline(cell)
    text = f"{value[0]:10.4g} {unit:6} ±{value[1] * 100:2.0f}%" if value else ""
    if "guest_us" in cell:
        text += f" {cell['guest_us'][0]:9.3g} us ±{cell['guest_us'][1] * 100:2.0f}%"
        text += f" ({cell['artefact'][0] * 100:2.0f}% host)"
    if cell["bad"]:
        text += f" {cell['bad']} OF {cell['checked']} WRONG"
    elif not value:
        text += f"{cell['checked']} right"
    if "io_p50_us" in cell:
        text += f" p50 {cell['io_p50_us'][0]:.4g} p99 {cell['io_p99_us'][0]:.4g} us"
    if "gain" in cell:
        text += f" {cell['gain'][0]:5.2f} times one flow"
    for name, label in (("kib_per_conn", "KiB/conn"), ("unfairness", "max/min")):
        if "unfairness" in cell:
            text += f" {cell[name][0]:.3g} {label}"
    if cell.get("failed", [0])[0]:
        text += f" {cell['failed'][0]:.0f} FAILED"
    return text


def ratios(cell, other):
    """Ratios to another cell: of throughput (or latency), and of guest CPU time per operation."""
    if not other or cell["errors"] or other["errors"] or not headline(other)[1]:
        return ""
    text = f"{headline(cell)[1][0] / headline(other)[1][0]:6.2f}x"
    if other.get("guest_us", [0])[0]:
        text += f" {cell['guest_us'][0] / other['guest_us'][0]:6.2f}x"
    return text


def table(summary, before=None):
    yield (f"{'':20} {'':8} {'rate or latency':>24} {'guest code per op':>26} "
           f"{'to base: rate, us/op':>20}{' to before' if before else ''}")
    yield ("base: siw; in the groups of kiwarp_ip, TCP on the plain interface; in the groups "
           "\"instead\", the same over TCP")
    for group, rows in summary.items():
        yield f"== {group}"
        for row, columns in rows.items():
            base = next((name for name in BASES if name in columns), None)
            for column, cell in columns.items():
                line = f"{row:20} {column:10} {describe(cell):52}"
                if column != base:
                    line += f" {ratios(cell, columns.get(base)):17}"
                if before:
                    old = before.get(group, {}).get(row, {}).get(column)
                    line += f" {ratios(cell, old)}"
                yield line.rstrip()


def report(args):
    summary = summarise(read_lines(f"{args.dir}/lines"))
    before = None
    if args.compare:
        with open(args.compare, encoding="utf-8") as file:
            before = json.load(file)
    with open(f"{args.dir}/results.json", "w", encoding="utf-8") as file:
        json.dump(summary, file, indent=1)
    lines = list(table(summary, before)) + [""] + list(verdict.lines(summary))
    with open(f"{args.dir}/table.txt", "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    print("\n".join(lines))
    import plot  # pylint: disable=import-outside-toplevel
    plot.draw(summary, f"{args.dir}/plot.png")
    errors = [cell for rows in summary.values() for columns in rows.values()
              for cell in columns.values() if cell["errors"]]
    return 1 if errors or not summary else 0


def follow(_args):
    for line in sys.stdin:
        if not line.startswith("{"):
            print(line, end="", flush=True)
            continue
        one = json.loads(line)
        cell = summarise([one])[one["group"]][one["row"]][one["column"]]
        print(f"{one['round'] + 1} {one['group']:20} {one['row']:20} {one['column']:8} "
              f"{describe(cell)}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parts = parser.add_subparsers(required=True)
    one = parts.add_parser("plan")
    one.add_argument("--smp", action="store_true")
    one.add_argument("--rounds", type=int, default=5)
    one.add_argument("--ms", type=int, default=300)
    one.add_argument("--rows", default=".")
    one.set_defaults(run=make_plan)
    one = parts.add_parser("seconds")
    one.add_argument("plan")
    one.set_defaults(run=plan_seconds)
    one = parts.add_parser("follow")
    one.set_defaults(run=follow)
    one = parts.add_parser("report")
    one.add_argument("dir")
    one.add_argument("--compare")
    one.set_defaults(run=report)
    args = parser.parse_args()
    return args.run(args)


if __name__ == "__main__":
    sys.exit(main())
