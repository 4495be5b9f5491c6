#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Includes and calls point down only; each layer sees what it needs and no more.

The tables below are the rule for includes, one of each kind per module; the rooms of the driver are
its folders. calls.py checks the calls between them, in the order of rooms.list. kiwarp_ip has too
few files for rooms: its calls follow the layers of its table, and no two of its files call each
other in a circle. A new file gets its room, or its line in the LAYERS of its module, first: that is
the moment to decide where it belongs.

A header of the same folder is included by its name, any other of the module by its path from the
module's folder.
"""

import posixpath
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

import calls
import rooms
import source

DRIVER = rooms.DRIVER

# Layer of each file, by path without suffix. First match wins.
LAYERS = [
    (0, "proto/wire proto/perr proto/crc"),
    (1, "proto/mpa*"),
    (2, "proto/*"),
    (3, "mem/* queue/* sock/* tx/txbuf tx/txpool policy"),
    (4, "qp/* tx/* rx/* run/*"),
    (5, "cm/* verbs/* device policy_sysfs monitor_sysfs netlink stats trace main"),
]

# Headers that may be used further down than the file they belong to.
HEADER_LAYERS = {"stats.h": 3, "trace.h": 3}

# (files, what they may include or None for anything, what they must not, reason)
RULES = [
    ("proto/*",
     "linux/types.h linux/errno.h linux/bits.h linux/bitfield.h linux/build_bug.h"
     " linux/minmax.h linux/stddef.h linux/string.h linux/crc32c.h"
     " linux/unaligned.h asm/byteorder.h proto/*",
     "",
     "proto/ is bytes and numbers only"),
    ("mem/* queue/*", None, "net/* qp/* cm/*",
     "memory and queues know neither the network nor the QP"),
    # net/sock.h has the allocator of page fragments
    ("tx/txbuf tx/txpool", None, "net/tcp.h net/inet* qp/* cm/*",
     "batches know neither TCP nor the QP"),
    ("sock/*", None, "rdma/* qp/*",
     "sock calls up through its ops table"),
    ("qp/qp qp/qp_table tx/* rx/* run/*", None,
     "rdma/iw_cm.h netlink.h device.h linux/netlink.h net/netlink.h rdma/rdma_netlink.h",
     "engines know neither connection management nor the device's internals"),
    ("cm/*", None, "tx/* rx/*",
     "cm drives the QP, never its engines"),
    ("verbs/* device policy_sysfs monitor_sysfs netlink main", None,
     "proto/wire.h",
     "the verbs never see bytes"),
]

IP_DRIVER = "drivers/infiniband/ulp/kiwarp_ip/"

IP_LAYERS = [
    (0, "proto/wire"),
    (1, "proto/*"),
    (2, "stats sockaddr netns loop"),
    (3, "conn conn_event conn_qp packet peer rx tx udp too_big"),
    (4, "control"),
    (5, "dev ethtool netlink sysfs main"),
]

# What an interface consists of
IP_HEADER_LAYERS = {"dev.h": 3}

IP_RULES = [
    ("proto/*",
     "linux/types.h linux/bits.h linux/build_bug.h linux/minmax.h linux/string.h"
     " linux/unaligned.h asm/byteorder.h proto/*",
     "",
     "proto/ is bytes and numbers only"),
    ("conn conn_event conn_qp peer control rx", None, "net/*", "connections know no sockets"),
    ("udp dev sysfs sockaddr packet too_big netlink", None, "rdma/* conn.h",
     "only connections know RDMA"),
]

# trace.c must define CREATE_TRACE_POINTS and see the types before trace.h.
OWN_HEADER_FIRST_EXEMPT = {"trace.c"}

INCLUDE = re.compile(r'^\s*#\s*include\s*(?P<open>[<"])(?P<name>[^>"]+)[>"]')
VERSION = re.compile(r"\b(LINUX_VERSION_CODE|KERNEL_VERSION|LINUX_VERSION_MAJOR)\b")


def matches(name, patterns):
    return any(fnmatchcase(name, pattern) for pattern in patterns.split())


@dataclass
class Module:
    """A directory, and its tables."""

    driver: str
    layers: list
    header_layers: dict
    rules: list

    def layers_of_calls(self):
        """What calls.check() takes as rooms: the function that names a file's layer, their order"""
        def name(number):
            return f"layer {number}"
        return (lambda stem: name(self.layer_of(stem + ".c")),
                [name(number) for number, _ in self.layers])

    def layer_of(self, name):
        """Layer of a file below driver, or None if the table does not know it."""
        if name in self.header_layers:
            return self.header_layers[name]
        stem = posixpath.splitext(name)[0]
        for layer, patterns in self.layers:
            if matches(stem, patterns):
                return layer
        return None


MODULES = [
    Module(DRIVER, LAYERS, HEADER_LAYERS, RULES),
    Module(IP_DRIVER, IP_LAYERS, IP_HEADER_LAYERS, IP_RULES),
]
KIWARP_IP = MODULES[1]


def includes(tree, path, driver):
    """(line, name as written, name, is_quoted) of each include; NAME is that below DRIVER of ours."""
    folder = posixpath.dirname(path)
    text = source.without_comments(tree.text(path), keep_strings=True)
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        name, is_quoted = match["name"], match["open"] == '"'
        if is_quoted:
            for base in (folder, driver):
                full = posixpath.normpath(posixpath.join(base, name))
                if full in tree.files and full.startswith(driver):
                    name = full[len(driver):]
                    break
        yield number, match["name"], name, is_quoted


def short_name(includer, header):
    """How a file includes a header; both are paths below the module's folder."""
    folder, name = posixpath.split(header)
    return name if folder == posixpath.dirname(includer) else header


def check_file(tree, path, module):
    driver = module.driver
    name = path[len(driver):]
    stem, suffix = posixpath.splitext(name)
    own_layer = module.layer_of(name)
    if own_layer is None:
        yield f"{path}:1: not in the layer table; give it a room, or a line in scripts/lint/layers.py"
        return
    first_quoted = None
    for number, written, include, is_quoted in includes(tree, path, driver):
        where = f"{path}:{number}: includes {include}"
        if is_quoted and driver + include not in tree.files:
            yield f"{where}, which is no header of its module"
        elif is_quoted and written != short_name(name, include):
            yield f"{where} as {written}, not as {short_name(name, include)}"
        if is_quoted and first_quoted is None:
            first_quoted = include
            own = stem + ".h"
            if (suffix == ".c" and include != own and driver + own in tree.files
                    and name not in OWN_HEADER_FIRST_EXEMPT):
                yield f"{where} before its own {own}"
        for files, may, must_not, reason in module.rules:
            if not matches(stem, files):
                continue
            if matches(include, must_not) or (may and not matches(include, may)):
                yield f"{where}: {reason}"
        if driver + include not in tree.files or include.startswith("compat/"):
            continue
        layer = module.layer_of(include)
        if layer is not None and layer > own_layer:
            yield f"{where} of layer {layer}, itself being of layer {own_layer}"


def check(tree):
    for path in tree.c_files():
        if any(path.startswith(module.driver + "compat/") for module in MODULES):
            continue
        text = source.without_comments(tree.text(path))
        for number, line in enumerate(text.splitlines(), 1):
            if VERSION.search(line):
                yield f"{path}:{number}: kernel versions are compared in compat/ only"
        for module in MODULES:
            if path.startswith(module.driver):
                yield from check_file(tree, path, module)
    yield from calls.check(tree, DRIVER, rooms.room_of, *rooms.read_list())
    yield from calls.check(tree, IP_DRIVER, *KIWARP_IP.layers_of_calls(), pairs=set())


if __name__ == "__main__":
    source.run(check)
