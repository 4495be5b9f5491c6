#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""fdpair.py N CMD...: runs CMD with N connected socket pairs open.

Their numbers are in KIW_FDS, "A1 B1 A2 B2 ...". They connect the interfaces of two UML guests:
they keep packets apart, lose none, and have no names that could clash.
"""

import os
import socket
import sys

BUFFER = 4 << 20
fds = []
for _ in range(int(sys.argv[1])):
    for end in socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        os.set_inheritable(end.fileno(), True)
        fds.append(str(end.detach()))
os.environ["KIW_FDS"] = " ".join(fds)
os.execvp(sys.argv[2], sys.argv[2:])
