#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Runs commands on host b for host a, over the control network of a pair.

One request per connection, a line of text:
  run ID B64     runs the bash script B64; the answer is its output. When the
                 client goes away first, the script is killed.
  err ID         what the script wrote to stderr, once it has ended
  status ID      its exit status, once it has ended
  ping           answers "pong"
  end            powers this guest off
"""

import base64
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading


class Job:
    """A script, from its start until its exit status has been requested."""

    def __init__(self):
        self.ended = threading.Event()
        self.status = 255
        self.err = tempfile.TemporaryFile()

    def kill(self, proc):
        for sig in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(proc.pid, sig)
                proc.wait(2)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                pass

    def run(self, conn, script):
        proc = subprocess.Popen(
            ["bash", "-c", script], stdin=subprocess.DEVNULL, stdout=conn,
            stderr=self.err, start_new_session=True)
        done = os.pidfd_open(proc.pid)
        poll = select.poll()
        poll.register(done, select.POLLIN)
        poll.register(conn, select.POLLIN | select.POLLHUP)
        if all(fd != done for fd, _ in poll.poll()):
            self.kill(proc)
        os.close(done)
        code = proc.wait()
        self.status = code if code >= 0 else 128 - code
        self.ended.set()


class Agent:
    """All jobs, and the requests about them."""

    def __init__(self):
        self.jobs = {}
        self.over = threading.Event()

    def request(self, conn):
        words = conn.makefile("r").readline().split()
        if words[:1] == ["run"] and len(words) == 3:
            job = self.jobs[words[1]] = Job()
            job.run(conn, base64.b64decode(words[2]).decode())
        elif words[:1] == ["err"] and words[1] in self.jobs:
            job = self.jobs[words[1]]
            job.ended.wait()
            job.err.seek(0)
            conn.sendall(job.err.read())
        elif words[:1] == ["status"] and words[1] in self.jobs:
            job = self.jobs[words[1]]
            job.ended.wait()
            conn.sendall(b"%d\n" % job.status)
            del self.jobs[words[1]]
        elif words == ["ping"]:
            conn.sendall(b"pong\n")
        elif words == ["end"]:
            self.over.set()

    def serve(self, conn):
        try:
            self.request(conn)
            # A background child of the script may hold the socket open.
            conn.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        finally:
            conn.close()


def main():
    agent = Agent()
    listener = socket.create_server((sys.argv[1], int(sys.argv[2])), backlog=64)

    def accept():
        while True:
            conn, _ = listener.accept()
            threading.Thread(target=agent.serve, args=(conn,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    agent.over.wait()


main()
