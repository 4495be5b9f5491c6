#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Pings of many sizes: python3 ip_sizes.py ADDRESS SECONDS all|borders

Sends an echo request of each size, never in fragments, and compares what comes back. "all" is
every size of payload up to the longest that a packet of the interface's MTU, 65520, has room for;
"borders" is those around each page border of the payload, the packet and the message, and the
first and last ones. Several requests may be under way. Ends with an error when one is not answered
in SECONDS, or by something else than what was sent.
"""

import os
import random
import socket
import struct
import sys

MTU = 65520
PAGE = 4096
ENCAPSULATION = 4
ICMP = 8
# Octets and requests that may be under way
WINDOW = 40000
REQUESTS = 16
IP_MTU_DISCOVER, IPV6_MTU_DISCOVER, DO = 10, 23, 2
SO_RCVBUFFORCE = 33


def checksum(octets):
    """The Internet checksum. 2 ** 16 is 1 modulo 0xffff: the remainder is the sum of all words."""
    octets += bytes(len(octets) % 2)
    return ~(int.from_bytes(octets, "big") % 0xffff or 0xffff) & 0xffff


class Pinger:
    """Echo requests to an address of either family."""

    def __init__(self, address, seconds):
        self.is_ipv6 = ":" in address
        self.ip_header = 40 if self.is_ipv6 else 20
        self.ident = os.getpid() & 0xffff
        self.block = random.Random(int(os.environ.get("KIW_SEED", "5040"))).randbytes(2 * MTU)
        self.waiting = {}
        self.under_way = 0
        if self.is_ipv6:
            self.request, self.reply = 128, 129
            self.sock = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
            self.sock.setsockopt(socket.IPPROTO_IPV6, IPV6_MTU_DISCOVER, DO)
            self.sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_DONTFRAG, 1)
        else:
            self.request, self.reply = 8, 0
            self.sock = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
            self.sock.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, DO)
        for option in (SO_RCVBUFFORCE, socket.SO_SNDBUF):
            self.sock.setsockopt(socket.SOL_SOCKET, option, 4 << 20)
        self.sock.settimeout(seconds)
        self.sock.connect((address, 0))

    def most(self):
        """The largest payload."""
        return MTU - self.ip_header - ICMP

    def payload(self, size):
        start = size % MTU
        return self.block[start:start + size]

    def send(self, size):
        number = size & 0xffff
        head = struct.pack(">BBHHH", self.request, 0, 0, self.ident, number)
        data = head + self.payload(size)
        if not self.is_ipv6:
            data = data[:2] + struct.pack(">H", checksum(data)) + data[4:]
        self.sock.send(data)
        self.waiting[number] = size
        self.under_way += size

    def receive(self):
        """One answer; others' packets are let go."""
        data = self.sock.recv(1 << 17)
        if not self.is_ipv6:
            data = data[4 * (data[0] & 15):]
        kind, _, _, ident, number = struct.unpack_from(">BBHHH", data)
        if kind != self.reply or ident != self.ident:
            return
        size = self.waiting.pop(number)
        self.under_way -= size
        if data[ICMP:] != self.payload(size):
            raise ValueError(f"the answer to {size} octets is another: {len(data) - ICMP} octets")

    def run(self, sizes):
        for size in sizes:
            while self.waiting and (self.under_way + size > WINDOW or
                                    len(self.waiting) >= REQUESTS):
                self.receive()
            self.send(size)
        while self.waiting:
            self.receive()


def borders(pinger):
    """Sizes of the payload."""
    most = pinger.most()
    sizes = set(range(20)) | set(range(most - 19, most + 1))
    for page in range(PAGE, MTU + 1, PAGE):
        for ahead in (0, ICMP, ICMP + pinger.ip_header, ICMP + pinger.ip_header + ENCAPSULATION):
            sizes |= set(range(page - ahead - 2, page - ahead + 3))
    return sorted(size for size in sizes if 0 <= size <= most)


def main():
    address, seconds, what = sys.argv[1:]
    pinger = Pinger(address, float(seconds))
    sizes = range(pinger.most() + 1) if what == "all" else borders(pinger)
    try:
        pinger.run(sizes)
    except (OSError, ValueError) as error:
        print(f"{error}, waiting for {sorted(pinger.waiting.values())}")
        return 1
    print(f"{len(sizes)} sizes, {min(sizes)} to {max(sizes)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
