#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""refused.py ADDRESS PORT COUNT [plain]: callers whose Request no consumer hears of.

plain: callers with a Request for a consumer, which rejects it.

Each sends its Request, reads the rejection to its FIN, and keeps its own half open. They all
stay until standard input ends. Says "N rejected" then, counting those that could read it all.
"""

import os
import resource
import socket
import sys

# There is a peer.py beside this, too.
sys.path[0] = os.path.join(sys.path[0], "..", "..")
from peer import mpa    # noqa: E402 pylint: disable=wrong-import-position

# Peer-to-peer without any RTR: RFC 6581 9.2 has no Reply for that
NO_RTR = mpa.Frame(p2p=True, ird=1, ord=1).encode()
# More private data than iw_cm can carry
LONG = mpa.Frame(rev=1, pdata=bytes(300)).encode()
PLAIN = mpa.Frame(rev=1).encode()


def call(address, request):
    """A caller, and whether it was rejected with a proper Reply."""
    sock = socket.create_connection(address)
    sock.settimeout(20)
    sock.sendall(request)
    said = b""
    try:
        while part := sock.recv(100):
            said += part
    except ConnectionResetError:
        pass
    rejected = len(said) >= 20 and said[:16] == mpa.KEY_REPLY and said[16] & mpa.R
    return sock, bool(rejected)


def main():
    address, count = (sys.argv[1], int(sys.argv[2])), int(sys.argv[3])
    resource.setrlimit(resource.RLIMIT_NOFILE, (count + 100, count + 100))
    requests = [PLAIN] if sys.argv[4:] else [NO_RTR, LONG]
    callers = [call(address, requests[number % len(requests)]) for number in range(count)]
    print("done", flush=True)
    sys.stdin.read()
    print(sum(rejected for _, rejected in callers), "rejected")


main()
