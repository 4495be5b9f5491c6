#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""false_mapper.py PORT OTHER-PORT: pose as the iWARP port mapper of the host until killed, and say
that PORT of any address is mapped to OTHER-PORT. Prints "ready" when the kernel knows of it, and
each question that it answers; "denied" and ends if the kernel does not let it.
"""

import os
import socket
import struct
import sys

NETLINK_RDMA = 20
GROUP_IWPM = 2
CLIENT_IWCM = 2 << 10
REG_PID, ADD_MAPPING, QUERY_MAPPING, HELLO = (CLIENT_IWCM + op for op in (0, 1, 2, 8))
ABI_VERSION = 4
NLMSG_ERROR = 2
NLM_F_REQUEST = 1
HEADER = struct.Struct("=IHHII")


def attr(kind, data):
    size = 4 + len(data)
    return struct.pack("=HH", size, kind) + data + bytes(-size % 4)


def attrs(data):
    found = {}
    while len(data) >= 4:
        size, kind = struct.unpack_from("=HH", data)
        if size < 4:
            break
        found[kind] = data[4:size]
        data = data[(size + 3) & ~3:]
    return found


def messages(data):
    while len(data) >= HEADER.size:
        size, kind, _, seq, _ = HEADER.unpack_from(data)
        yield kind, struct.pack("=I", seq), data[HEADER.size:size]
        data = data[(size + 3) & ~3:]


def mapped(sockaddr, port, other):
    if struct.unpack_from(">H", sockaddr, 2)[0] != port:
        return sockaddr
    return sockaddr[:2] + struct.pack(">H", other) + sockaddr[4:]


def main(port, other):
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_RDMA)
    sock.bind((os.getpid(), GROUP_IWPM))

    def send(kind, *values):
        body = b"".join(attr(number, value) for number, value in values)
        sock.send(HEADER.pack(HEADER.size + len(body), kind, NLM_F_REQUEST, 1, os.getpid()) + body)

    none = struct.pack("=H", 0)
    version = struct.pack("=H", ABI_VERSION)
    send(HELLO, (1, version))
    while True:
        for kind, seq, body in messages(sock.recv(65536)):
            if kind == NLMSG_ERROR:
                error, = struct.unpack_from("=i", body)
                raise OSError(-error, os.strerror(-error))
            given = attrs(body)
            if kind == HELLO:
                print("ready", flush=True)
            elif kind == REG_PID:
                name = given[3].rstrip(b"\0") + b"\0"
                send(REG_PID, (1, seq), (2, name), (3, b"iWarpPortMapperUser\0"), (4, version),
                     (5, none))
            elif kind == ADD_MAPPING:
                print("asked to map", given[2][:8].hex(), flush=True)
                send(ADD_MAPPING, (1, seq), (2, given[2]), (3, mapped(given[2], port, other)),
                     (4, none))
            elif kind == QUERY_MAPPING:
                print("asked where is", given[3][:8].hex(), flush=True)
                send(QUERY_MAPPING, (1, seq), (2, given[2]), (3, given[3]), (4, given[2]),
                     (5, mapped(given[3], port, other)), (6, none))


try:
    main(int(sys.argv[1]), int(sys.argv[2]))
except PermissionError as denial:
    print("denied:", denial, flush=True)
