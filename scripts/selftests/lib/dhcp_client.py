#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A DHCP client for interfaces with link-layer addresses of 20 octets (RFC 4390).

Its messages have no hardware address; a client identifier (RFC 4361) takes its place, and the
server is asked to broadcast its answers. Of Debian's clients, ISC's does not know such interfaces
("Unsupported device type 32"), dhcpcd fails to open its packet filter, and busybox's takes every
link-layer address to have 6 octets. That of systemd-networkd works, which guests do not have.
Prints the address that was leased.
"""

import socket
import struct
import sys

HTYPE_INFINIBAND = 32
BROADCAST = 0x8000
COOKIE = b"\x63\x82\x53\x63"
DISCOVER, OFFER, REQUEST, ACK = 1, 2, 3, 5
OPTION_REQUESTED, OPTION_TYPE, OPTION_SERVER, OPTION_CLIENT = 50, 53, 54, 61
XID = 0x4390
IAID_AND_DUID = b"\xff" + b"\0\0\0\1" + b"\0\2\0\0\xab\x11kiwarp-test"


def message(kind, options=()):
    head = struct.pack(">4B I 2H 16s 208s", 1, HTYPE_INFINIBAND, 0, 0, XID, 0, BROADCAST, b"", b"")
    data = head + COOKIE
    for code, value in ((OPTION_TYPE, bytes([kind])), (OPTION_CLIENT, IAID_AND_DUID), *options):
        data += bytes([code, len(value)]) + value
    return data + b"\xff"


def parse(data):
    """Address and options of an answer to us, or None."""
    if len(data) < 240 or data[0] != 2 or struct.unpack_from(">I", data, 4)[0] != XID:
        return None
    options, pos = {}, 240
    while pos < len(data) and data[pos] != 255:
        if data[pos] == 0:
            pos += 1
            continue
        options[data[pos]] = data[pos + 2:pos + 2 + data[pos + 1]]
        pos += 2 + data[pos + 1]
    return data[16:20], options


def exchange(sock, request, kind):
    """Ask until an answer of that kind comes."""
    for _ in range(10):
        sock.sendto(request, ("255.255.255.255", 67))
        try:
            answer = parse(sock.recv(2048))
        except TimeoutError:
            continue
        if answer and answer[1].get(OPTION_TYPE) == bytes([kind]):
            return answer
    sys.exit(f"no answer of type {kind}")


def main():
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, sys.argv[1].encode())
    sock.bind(("", 68))
    sock.settimeout(2)
    address, options = exchange(sock, message(DISCOVER), OFFER)
    chosen = ((OPTION_REQUESTED, address), (OPTION_SERVER, options[OPTION_SERVER]))
    address, _ = exchange(sock, message(REQUEST, chosen), ACK)
    print(socket.inet_ntoa(address))


main()
