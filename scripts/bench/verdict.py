# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The ratios that kiwarp should reach, and those that were measured."""

BULK = ("write 64 KiB", "read 64 KiB", "send 64 KiB")
BATCHED = tuple(f"{row} x16" for row in BULK)
OFF = "mtu 1500, crc off"
ON = "mtu 1500, crc on"


class Results:
    """Ratios between medians; None where one of them was not measured."""

    def __init__(self, summary):
        self.summary = summary

    def value(self, group, row, column, name):
        cell = self.summary.get(group, {}).get(row, {}).get(column, {})
        value = cell.get(name, [None])[0]
        return None if cell.get("errors") else value

    def ratio(self, name, group, row, column, other, other_row=None):
        mine = self.value(group, row, column, name)
        theirs = self.value(group, other_row or row, other, name)
        return mine / theirs if mine is not None and theirs else None


def at_least(what, value, limit):
    return what, value, limit, value is not None and value >= limit, ">="


def at_most(what, value, limit):
    return what, value, limit, value is not None and value <= limit, "<="


def crc_off(r):
    for row, limit in zip(BULK + BATCHED, (4, 7, 4) * 2):
        yield at_least(f"1 {OFF}: {row}, MB/s to siw",
                       r.ratio("mb_per_s", OFF, row, "kiwarp", "siw"), limit)
    for row in BULK + BATCHED:
        yield at_most(f"1 {OFF}: {row}, us to siw's write",
                      r.ratio("guest_us", OFF, row, "kiwarp", "siw", BULK[0]), 1 / 6)
    yield at_least(f"1 {OFF}: write 1 MiB, MB/s to TCP",
                   r.ratio("mb_per_s", OFF, "write 1 MiB", "kiwarp", "tcp", "tcp 1 MiB"), 0.95)


def crc_on(r):
    for row, limit in zip(BULK + BATCHED, (3, 4, 3) * 2):
        yield at_least(f"2 {ON}: {row}, MB/s to siw",
                       r.ratio("mb_per_s", ON, row, "kiwarp", "siw"), limit)
    for row in BULK + BATCHED:
        yield at_most(f"2 {ON}: {row}, us to TCP and two CRC passes",
                      r.ratio("guest_us", ON, row, "kiwarp", "tcp", "tcp-crc 64 KiB"), 1.05)
    for row in BULK + BATCHED:
        yield at_most(f"2 {ON}: {row}, us with markers to without",
                      r.ratio("guest_us", ON, row, "markers", "kiwarp"), 1.15)


def large_mtu(r):
    for mtu in (9000, 65535):
        for crc in ("off", "on"):
            group = f"mtu {mtu}, crc {crc}"
            for row in BULK + tuple(row.replace("64 KiB", "1 MiB") for row in BULK):
                yield at_least(f"3 {group}: {row}, MB/s to siw",
                               r.ratio("mb_per_s", group, row, "kiwarp", "siw"), 1)


def small(r):
    for row in ("write 64 B x16", "send 64 B x16"):
        yield at_most(f"4 {OFF}: {row}, us to siw",
                      r.ratio("guest_us", OFF, row, "kiwarp", "siw"), 0.7)


def rest(r):
    for row in ("send-lat", "write-lat"):
        yield at_most(f"4 latency: {row}, p50 to siw",
                      r.ratio("p50_us", "latency", row, "kiwarp", "siw"), 1)
    yield at_least("5 connections per second to siw",
                   r.ratio("ops_per_s", "connections", "conn", "kiwarp", "siw"), 1)
    yield at_most("5 connections: us to siw",
                  r.ratio("guest_us", "connections", "conn", "kiwarp", "siw"), 1)
    yield at_most("5 connections: failures in 10000",
                  r.value("connections", "conn, 10000", "kiwarp", "failed"), 0)
    row = "write 4 KiB, 1000 QPs"
    yield at_most(f"6 {row}: memory to siw",
                  r.ratio("kib_per_conn", "many", row, "kiwarp", "siw"), 0.7)
    for group in ("many", "many, crc on"):
        yield at_least(f"6 {group}: {row}, operations per second to siw",
                       r.ratio("ops_per_s", group, row, "kiwarp", "siw"), 1.2)
    for row in (row, "write 4 KiB, 4000 QPs"):
        yield at_most(f"6 {row}: fairness, max to min",
                      r.value("many", row, "kiwarp", "unfairness"), 1.1)


def ip(r):
    row = "tcp 64 KiB"
    for column, limit in (("kip", 0.3), ("kip crc", 0.2)):
        yield at_least(f"9 ip: {row}, {column}, MB/s to plain",
                       r.ratio("mb_per_s", "ip", row, column, "plain"), limit)
    for column in ("kip", "kip crc"):
        yield at_most(f"9 ip: ping, {column}, p50 to plain",
                      r.ratio("p50_us", "ip", "ping", column, "plain"), 3)


def two_cpus(r):
    for crc in ("off", "on"):
        group = f"two CPUs, crc {crc}"
        for row in BULK:
            yield at_least(f"8 {group}: {row}, two flows to one",
                           r.value(group, row, "kiwarp", "gain"), 1.7)


def instead(r):
    """CPU time per operation, compared with the same storage protocol over TCP."""
    limits = {
        ("nfs, plain", "read"): 1.3, ("nfs, plain", "write"): 1.0, ("nfs, plain", "random"): 1.0,
        ("nfs, digests", "read"): 1.8, ("nfs, digests", "write"): 1.3,
        ("nvme, plain", "read"): 1.0, ("nvme, plain", "write"): 1.0,
        ("nvme, plain", "random"): 0.9, ("nvme, digests", ""): 0.9, ("iscsi", ""): 0.9,
    }
    for group, rows in r.summary.items():
        if not group.startswith("instead, "):
            continue
        for row in rows:
            limit = next((value for (stack, begin), value in limits.items()
                          if group[len("instead, "):].startswith(stack) and row.startswith(begin)),
                         None)
            if limit:
                yield at_most(f"10 {group}: {row}, us to TCP",
                              r.ratio("guest_us", group, row, "kiwarp", "tcp"), limit)


def lines(summary):
    """Lines of text about what was measured."""
    results = Results(summary)
    yield "Done when (median to median):"
    for part in (crc_off, crc_on, large_mtu, small, rest, ip, instead, two_cpus):
        for what, value, limit, is_met, sign in part(results):
            if value is not None:
                yield f"{'yes' if is_met else 'NO':4} {what:60} {value:7.3f} {sign} {limit:.3f}"
    bad = {}
    for group in summary.values():
        for columns in group.values():
            for column, cell in columns.items():
                counts = bad.setdefault(column, [0, 0])
                counts[0] += cell["bad"]
                counts[1] += cell["checked"]
    for column, (wrong, checked) in bad.items():
        if checked:
            yield f"data: {column}: {wrong} wrong of {checked} checked"
