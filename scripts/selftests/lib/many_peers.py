#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""many_peers.py COUNT INTERFACE...: on each, a packet to each of COUNT nodes that are not there."""

import socket
import struct
import sys

ETH_P_IP = 0x0800
# RFC 4755 3.1: connected mode, port 64755 as the QPN, an IPv4-mapped GID
LLADDR = bytes([0x80]) + (64755).to_bytes(3, "big") + bytes(10) + b"\xff\xff"
# An IPv4 header and 8 octets; nobody will read them
PACKET = struct.pack(">BBHHHBBH4s4s8x", 0x45, 0, 28, 0, 0, 64, 17, 0, bytes(4), bytes(4))


def main(count, *interfaces):
    for number, interface in enumerate(interfaces):
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_IP))
        sock.bind((interface, ETH_P_IP))
        for node in range(int(count)):
            gid = struct.pack(">BBH", 10, 80 + number, 256 + node)
            sock.send(LLADDR + gid + struct.pack(">HH", ETH_P_IP, 0) + PACKET)


main(*sys.argv[1:])
