#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Programs of other people's interfaces, for 350-stacks.sh.

stacks.py server|client ADDRESS PORT: TCP sockets. The client sends, the server says what
    arrived; it knows nothing of RDMA.
stacks.py mpi: a rank of MPI; Sends of small and large messages, a reduction, one-sided access.
"""

import hashlib
import os
import socket
import sys

SIZE = 4000000


def digest_of(conn):
    """The SHA-256 of SIZE octets from a connection."""
    digest, left = hashlib.sha256(), SIZE
    while left:
        data = conn.recv(min(left, 100000))
        if not data:
            raise SystemExit(f"ended with {left} octets to come")
        digest.update(data)
        left -= len(data)
    return digest.digest()


def server(addr, port):
    """One connection."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((addr, port))
        listener.listen(1)
        conn, _ = listener.accept()
        with conn:
            conn.sendall(digest_of(conn))
            conn.recv(1)


def client(addr, port):
    """Sends data, and compares the checksum with that of the server."""
    data = os.urandom(SIZE)
    with socket.create_connection((addr, port)) as conn:
        conn.sendall(data)
        if conn.recv(32, socket.MSG_WAITALL) != hashlib.sha256(data).digest():
            raise SystemExit("something else arrived")


def pattern(seed, size):
    """Octets that are the same on all ranks."""
    return bytearray(hashlib.shake_128(b"%d" % seed).digest(size))


def mpi():
    """A rank."""
    from mpi4py import MPI  # pylint: disable=import-outside-toplevel

    comm = MPI.COMM_WORLD
    rank, ranks = comm.Get_rank(), comm.Get_size()
    right, left = (rank + 1) % ranks, (rank - 1) % ranks
    for size in (1, 100, 4096, 20000, 300000, 1000000):
        got = bytearray(size)
        comm.Sendrecv([pattern(rank + size, size), MPI.BYTE], right, 5,
                      [got, MPI.BYTE], left, 5)
        assert got == pattern(left + size, size), f"{size} octets of rank {left}"
    assert comm.allreduce(rank + 1) == ranks * (ranks + 1) // 2
    window = MPI.Win.Create(bytearray(50000), comm=comm)
    window.Fence()
    window.Put([pattern(rank, 50000), MPI.BYTE], right)
    window.Fence()
    assert bytearray(window.tomemory()) == pattern(left, 50000), "one-sided"
    window.Free()
    print(f"rank {rank} of {ranks} verified", flush=True)


def main():
    """See above."""
    if sys.argv[1] == "mpi":
        mpi()
    else:
        {"server": server, "client": client}[sys.argv[1]](sys.argv[2], int(sys.argv[3]))


main()
