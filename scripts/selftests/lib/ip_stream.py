#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Verified messages over TCP between addresses that come and go.

The server echoes the sequence number of each message whose CRC is right, and ends with an error
when one is wrong. The client connects again whenever a connection fails. It writes the number of
messages that were answered into the progress file, and ends in good order when the stop file
exists.
"""

import argparse
import os
import random
import socket
import struct
import sys
import zlib

HEADER = struct.Struct(">QII")
TIMEOUT = 5


def read_exactly(sock, size):
    """That many bytes, or ConnectionError."""
    data = bytearray()
    while len(data) < size:
        part = sock.recv(min(size - len(data), 1 << 20))
        if not part:
            raise ConnectionError("closed")
        data += part
    return data


def serve_one(sock):
    """Messages of a connection until it ends; False if one was wrong."""
    sock.settimeout(TIMEOUT)
    while True:
        number, size, crc = HEADER.unpack(read_exactly(sock, HEADER.size))
        if zlib.crc32(read_exactly(sock, size)) != crc:
            print(f"message {number} of {size} bytes is wrong", flush=True)
            return False
        sock.sendall(struct.pack(">Q", number))


def serve(address, port):
    # The address may go and come: any one is listened at.
    server = socket.create_server(("", port))
    print(f"ready for {address}", flush=True)
    while True:
        sock = server.accept()[0]
        with sock:
            try:
                if not serve_one(sock):
                    return 1
            except OSError:
                pass


def send(sock, number, stop, rng, block):
    """Messages until the stop file exists; yields the number of each that was answered."""
    while not os.path.exists(stop):
        size = rng.choice((1, 64, 1460, 9000, 65000, rng.randrange(1, len(block))))
        start = rng.randrange(len(block) - size + 1)
        data = block[start:start + size]
        number += 1
        sock.sendall(HEADER.pack(number, size, zlib.crc32(data)) + data)
        if struct.unpack(">Q", read_exactly(sock, 8))[0] != number:
            raise ValueError(f"message {number} has another's answer")
        yield number


def call(address, port, stop, progress):
    rng = random.Random(int(os.environ.get("KIW_SEED", "5040")))
    block = rng.randbytes(1 << 18)
    number = failures = 0
    while not os.path.exists(stop):
        try:
            with socket.create_connection((address, port), timeout=TIMEOUT) as sock:
                for number in send(sock, number, stop, rng, block):
                    with open(progress, "w", encoding="ascii") as f:
                        f.write(f"{number}\n")
        except OSError:
            failures += 1
    print(f"{number} messages, {failures} connections failed", flush=True)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("--port", type=int, default=5002)
    parser.add_argument("--stop", help="client: end when this file exists")
    parser.add_argument("--progress", help="client: the number of messages that were answered")
    args = parser.parse_args()
    if args.stop:
        return call(args.address, args.port, args.stop, args.progress)
    return serve(args.address, args.port)


if __name__ == "__main__":
    sys.exit(main())
