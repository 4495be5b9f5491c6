#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Runs in the guest: measures what the plan lists, round by round, and prints a line of JSON for
each measurement. The two hosts are network namespaces that are connected by a veth pair."""

import json
import os
import re
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MODULES = ["ib_core", "iw_cm", "rdma_cm", "rdma_ucm", "ib_uverbs"]
MODULE_OF = {"rxe": "rdma_rxe", "kiwarp-ext": "kiwarp"}
PAIR = {"a": ("bencha", "eth0"), "b": ("benchb", "eth0")}
# Module and driver name of an accelerated CRC32c; in User Mode Linux, which has none, our own
CRC = {"uml": ("crc32c_hw", "crc32c-hw")}.get(os.environ["KIW_KERNEL"],
                                              ("crc32c_intel", "crc32c-intel"))
OWN = {"init": ("bench0", "own0")}
# For each kind of tunnel: the arguments of "ip link add tun0 type", and its module
TUNNELS = {
    "kiwarp_ip": ("kiwarp_ip", ["link", "eth0", "name", "tun0", "type", "kiwarp_ip"]),
    "vxlan": ("vxlan", ["name", "tun0", "type", "vxlan", "id", "77", "dev", "eth0",
                        "dstport", "4789"]),
    "wireguard": ("wireguard", ["name", "tun0", "type", "wireguard"]),
}
TUNNEL_NET = "10.78.0"
WG_PORT = "51820"
PINGS = 500


def call(*args, check=True):
    result = subprocess.run(args, check=False, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)
    if check and result.returncode:
        raise RuntimeError(f"{' '.join(args)}: {result.stdout.strip()}")
    return result.stdout


def inside(host, *args, check=True):
    return call("nsenter", f"--net=/run/netns/{host}", "--", *args, check=check)


def setup_hosts():
    for host in "ab":
        call("ip", "netns", "add", host)
    # siw cannot listen on two devices whose netdevs have the same index.
    call("ip", "link", "add", "eth0", "index", "101", "netns", "a", "type", "veth",
         "peer", "name", "eth0", "index", "102", "netns", "b")
    for number, host in enumerate("ab", 1):
        call("ip", "-n", host, "link", "set", "lo", "up")
        call("ip", "-n", host, "addr", "add", f"10.77.0.{number}/24", "dev", "eth0")
        call("ip", "-n", host, "link", "set", "eth0", "up")
    for host, other, address in (("a", "b", "10.77.0.2"), ("b", "a", "10.77.0.1")):
        link = json.loads(call("ip", "-j", "-n", other, "link", "show", "eth0"))[0]
        # So that no measurement waits for ARP
        call("ip", "-n", host, "neigh", "replace", address, "lladdr", link["address"],
             "nud", "permanent", "dev", "eth0")


def setup_own():
    """Gives the initial namespace a name and a netdev, for drivers that work only there."""
    with open("/run/netns/init", "w", encoding="ascii"):
        pass
    call("mount", "--bind", "/proc/1/ns/net", "/run/netns/init")
    call("ip", "link", "add", "own0", "type", "dummy")
    call("ip", "addr", "add", "10.77.0.1/24", "dev", "own0")
    call("ip", "link", "set", "own0", "up")


def load(drivers):
    for module in [CRC[0]] + MODULES + sorted(drivers):
        call("modprobe", MODULE_OF.get(module, module))
    with open("/proc/crypto", encoding="ascii") as file:
        if CRC[1] not in file.read():
            raise RuntimeError("no accelerated crc32c")


def is_active(host, name):
    return "state ACTIVE" in inside(host, "rdma", "link", "show", f"{name}/1", check=False)


def devices_of(setting):
    return OWN if setting.get("own") else PAIR


def devices_up(setting):
    for name, value in setting["parameters"].items():
        module = MODULE_OF.get(setting["driver"], setting["driver"])
        path = f"/sys/module/{module}/parameters/{name}"
        with open(path, "w", encoding="ascii") as file:
            file.write(value)
    devices = devices_of(setting)
    for host, (name, netdev) in devices.items():
        inside(host, "rdma", "link", "add", name, "type", setting["driver"], "netdev", netdev)
    deadline = time.monotonic() + 10
    while not all(is_active(host, name) for host, (name, _) in devices.items()):
        if time.monotonic() > deadline:
            raise RuntimeError("a device does not become active")
        time.sleep(0.02)


def devices_down(setting):
    for host, (name, _) in devices_of(setting).items():
        inside(host, "rdma", "link", "delete", name, check=False)


def set_wireguard_peers():
    """Tells each end of the tunnel the other's key, address and port."""
    keys = {}
    for host in "ab":
        private = call("wg", "genkey").strip()
        keys[host] = subprocess.run(["wg", "pubkey"], input=private, check=True, text=True,
                                    stdout=subprocess.PIPE).stdout.strip()
        with open(f"/run/{host}.key", "w", encoding="ascii") as file:
            file.write(private)
    for host, other, number in (("a", "b", 2), ("b", "a", 1)):
        inside(host, "wg", "set", "tun0", "private-key", f"/run/{host}.key",
               "listen-port", WG_PORT, "peer", keys[other], "endpoint",
               f"10.77.0.{number}:{WG_PORT}", "allowed-ips", f"{TUNNEL_NET}.0/24")


def answers(count, *options):
    """Sends COUNT pings, through the tunnel or beside it; returns their times in microseconds."""
    said = inside("a", "ping", "-c", str(count), "-W", "1", *options, check=False)
    return [float(ms) * 1000 for ms in re.findall(r" time=([0-9.]+) ms", said)]


def tunnel_up(kind):
    """Creates tun0 at both hosts and waits until packets pass through it."""
    call("modprobe", TUNNELS[kind][0])
    for number, host in enumerate("ab", 1):
        inside(host, "ip", "link", "add", *TUNNELS[kind][1])
        if kind == "kiwarp_ip":
            # sysfs shows the interfaces of the namespace it was mounted in.
            inside(host, "unshare", "-m", "sh", "-c",
                   "mount -t sysfs sysfs /sys && echo 239.77.0.1 >/sys/class/net/tun0/kiwarp_ip/group")
        inside(host, "ip", "addr", "add", f"{TUNNEL_NET}.{number}/24", "dev", "tun0")
    if kind == "vxlan":
        for host, number in (("a", 2), ("b", 1)):
            inside(host, "bridge", "fdb", "append", "00:00:00:00:00:00", "dev", "tun0",
                   "dst", f"10.77.0.{number}")
    if kind == "wireguard":
        set_wireguard_peers()
    for host in "ab":
        inside(host, "ip", "link", "set", "tun0", "up")
    deadline = time.monotonic() + 10
    while not answers(1, f"{TUNNEL_NET}.2"):
        if time.monotonic() > deadline:
            raise RuntimeError(f"nothing comes through {kind}")


def tunnel_down():
    for host in "ab":
        inside(host, "ip", "link", "delete", "tun0", check=False)


def measure_ping(setting, row):
    """Measures the round trips of pings, each of which is sent after the previous answer."""
    net = TUNNEL_NET if setting["tunnel"] else "10.77.0"
    times = answers(PINGS, "-A", "-s", str(row["ping"]), f"{net}.2")
    if len(times) < PINGS:
        return {"error": f"{PINGS - len(times)} of {PINGS} pings without an answer"}
    return {"p50_us": statistics.median(times), "p99_us": sorted(times)[PINGS * 99 // 100]}


def measure_row(setting, row):
    arguments = list(row.get("arguments", []))
    if setting.get("tunnel"):
        arguments.append(f"net={TUNNEL_NET}")
        for host in "ab" if "tunnel_mtu" in row else "":
            inside(host, "ip", "link", "set", "tun0", "mtu", str(row["tunnel_mtu"]))
    return measure_ping(setting, row) if "ping" in row else measure(arguments)


def measure(arguments):
    result = subprocess.run([f"{HERE}/bench", *arguments], check=False, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    said = result.stderr.strip()[-300:]
    if result.returncode:
        return {"error": f"status {result.returncode}: {said}"}
    return {**json.loads(result.stdout), **({"said": said} if said else {})}


def run_stack(setting, number):
    """Measures rows of a storage protocol, with both ends in the initial namespace."""
    rows = [" ".join(row["io"]) for row in setting["rows"]]
    result = subprocess.run(["bash", f"{HERE}/instead.sh", *setting["stack"], *rows],
                            check=False, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    said = {"error": result.stderr.strip()[-300:]}
    for index, row in enumerate(setting["rows"]):
        print(json.dumps({"round": number, "group": setting["group"],
                          "column": setting["column"], "row": row["row"],
                          **(lines[index] if index < len(lines) else said)}), flush=True)
    if result.returncode:
        raise RuntimeError(f"{setting['group']}, {setting['column']}: {said['error']}")


def run_setting(setting, number):
    for host in "ab":
        call("ip", "-n", host, "link", "set", "eth0", "mtu", str(setting["mtu"]))
    if setting["driver"]:
        devices_up(setting)
    if setting.get("tunnel"):
        tunnel_up(setting["tunnel"])
    for row in setting["rows"]:
        if number >= row.get("rounds", number + 1):
            continue
        print(json.dumps({"round": number, "group": setting["group"],
                          "column": setting["column"], "row": row["row"],
                          **measure_row(setting, row)}), flush=True)
    if setting.get("tunnel"):
        tunnel_down()
    if setting["driver"]:
        devices_down(setting)


def teardown_hosts():
    """The stacks set up their own."""
    for host in "ab":
        call("ip", "netns", "del", host)


def run_rounds(settings, rounds, run):
    for number in range(rounds):
        for group in grouped(settings):
            for setting in group if number % 2 == 0 else reversed(group):
                run(setting, number)


def grouped(settings):
    """Orders the settings so that those to be compared are measured one after the other."""
    groups = {}
    for setting in settings:
        groups.setdefault(setting["group"], []).append(setting)
    return groups.values()


def save_symbols():
    """Saves the kernel's symbols for a profile that is made on the host."""
    with open("/proc/kallsyms", encoding="ascii") as file, \
            open("/out/kallsyms", "w", encoding="ascii") as out:
        out.write(file.read())


def main():
    with open(f"{HERE}/plan.json", encoding="utf-8") as file:
        plan = json.load(file)
    stacks = [setting for setting in plan["settings"] if "stack" in setting]
    others = [setting for setting in plan["settings"] if "stack" not in setting]
    load({setting["driver"] for setting in plan["settings"]} - {""} |
         ({"kiwarp"} if stacks else set()))
    setup_hosts()
    setup_own()
    save_symbols()
    run_rounds(others, plan["rounds"], run_setting)
    if stacks:
        teardown_hosts()
        call("ip", "link", "delete", "own0")
        run_rounds(stacks, plan["rounds"], run_stack)
    return 0


sys.exit(main())
