# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A peer over plain TCP, which need not follow any rule. Part of End in verbs.py."""

import contextlib
import socket
import struct
import threading
import time

from verbs_base import PATIENCE, RDMA_PORT


class PlainTcp:
    """A peer over plain TCP, which need not follow any rule."""

    def tcp_listen(self, addr, port):
        family = socket.AF_INET6 if ":" in addr else socket.AF_INET
        self.tcp_server = socket.create_server((addr, port), family=family)
        self.tcp_server.settimeout(PATIENCE)

    def tcp_accept(self):
        num = self._number()
        self.tcp[num] = self.tcp_server.accept()[0]
        return num

    def tcp_listen_end(self):
        self.tcp_server.close()

    def tcp_connect(self, addr, port=RDMA_PORT):
        sock = socket.create_connection((addr, port), PATIENCE)
        num = self._number()
        self.tcp[num] = sock
        return num

    def tcp_send(self, num, data):
        self.tcp[num].sendall(data)

    def tcp_close(self, num, reset=False):
        sock = self.tcp.pop(num)
        if reset:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()

    def tcp_half_close(self, num):
        self.tcp[num].shutdown(socket.SHUT_WR)

    def tcp_recv(self, num, size):
        """What the peer sends, SIZE octets or until it closes."""
        data = b""
        self.tcp[num].settimeout(PATIENCE)
        with contextlib.suppress(ConnectionResetError):
            while len(data) < size:
                more = self.tcp[num].recv(size - len(data))
                if not more:
                    break
                data += more
        return data

    def tcp_drain(self, num):
        """Read, in a thread, until the end; see tcp_drained()."""
        def work():
            with contextlib.suppress(OSError):
                while sock.recv(1 << 20):
                    pass

        sock = self.tcp[num]
        self.drain = threading.Thread(target=work)
        self.drain.start()

    def tcp_drained(self, num):
        self.drain.join()
        self.tcp_close(num)

    def tcp_closed(self, num):
        """Wait until the peer closes; return the seconds that took."""
        began = time.monotonic()
        while self.tcp_recv(num, 4096):
            pass
        self.tcp_close(num)
        return time.monotonic() - began
