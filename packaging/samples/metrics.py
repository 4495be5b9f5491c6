#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Prints the counters of all RDMA devices for the textfile collector of node_exporter:

    cd /var/lib/prometheus/node-exporter
    python3 metrics.py >rdma.prom.new && mv rdma.prom.new rdma.prom

Run it from a timer. Each counter becomes rdma_NAME{device="kiw0",port="1"}; the documentation of
kiwarp, counters.rst, says what each counts.
"""

import json
import subprocess

FIXED = ("ifindex", "ifname", "port")


def main():
    output = subprocess.run(["rdma", "-j", "statistic", "show"], check=True, capture_output=True)
    links = json.loads(output.stdout or b"[]")
    # Each name has to be in one place, with all of its devices.
    for name in dict.fromkeys(key for link in links for key in link if key not in FIXED):
        print(f"# TYPE rdma_{name} counter")
        for link in links:
            if name in link:
                labels = f'device="{link["ifname"]}",port="{link["port"]}"'
                print(f"rdma_{name}{{{labels}}} {link[name]}")


main()
