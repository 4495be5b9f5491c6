# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What all that is built on pyverbs shares: constants, failures, file descriptors
that can be watched, and the objects of a connection."""

import contextlib
import os
import select

from pyverbs import enums

SLOW = int(os.environ.get("KIW_SLOW", "1"))
IS_EXT = os.environ.get("KIW_LINK_TYPE") == "kiwarp-ext"
PATIENCE = 10 * SLOW        # seconds for anything that is to happen
# Seconds a case may take: those that can take any time do it twice
CASE_SECONDS = 6 * PATIENCE + 2 * int(os.environ.get("KIW_SOAK", "0"))
CONTROL_PORT = 7700
RDMA_PORT = 7701

LOCAL = int(enums.IBV_ACCESS_LOCAL_WRITE)
RREAD = int(enums.IBV_ACCESS_REMOTE_READ)
RWRITE = int(enums.IBV_ACCESS_REMOTE_WRITE)
ALL = LOCAL | RREAD | RWRITE

CMD_REG_MR, CMD_REREG_MR, CMD_DEREG_MR, CMD_CREATE_CQ = 9, 11, 13, 18    # ib_user_verbs.h
CMD_EX_QUERY_DEVICE = 1 << 31 | 1
REREG_TRANS, REREG_PD, REREG_ACCESS = 1, 2, 4
VERBS_IOCTL = 0xc0181b01            # rdma_user_ioctl_cmds.h
DRIVER, OBJECT_MR, REG_DMABUF_MR = 14 if IS_EXT else 18, 7, 4
UDMABUF_CREATE = 0x40187542         # linux/udmabuf.h
EXPORTER, EXPORTER_MAGIC = "kiwarp_exporter", 0xf700     # ktest/exporter.c
EXPORTER_KINDS = ("plain", "read-only", "no vmap", "I/O memory", "busy", "no memory")


def names(prefix):
    """The enumerators of a family: value to the rest of the name."""
    return {v: k[len(prefix):] for k, v in vars(enums).items() if k.startswith(prefix)}


STATUS = names("IBV_WC_")
STATUS = {v: n for v, n in STATUS.items() if n == "SUCCESS" or n.endswith("_ERR")}
ASYNC_EVENT = names("IBV_EVENT_")
STATE = names("IBV_QPS_")


class Failed(Exception):
    """A check of a case failed."""


def expect(got, wanted, what=""):
    if got != wanted:
        raise Failed(f"{what or 'value'}: got {got!r}, wanted {wanted!r}")


def filling(count):
    """Entries that fill a queue, for which at most COUNT, a power of two, are asked: with the user
    ABI of kiwarp-ext one slot stays empty."""
    return max(count - IS_EXT, 1)


def errno_of(call):
    """0, or why CALL failed."""
    try:
        call()
    except OSError as error:
        return error.errno
    return 0


def event_fds():
    """File descriptors of event channels, of the CM and of devices."""
    found = set()
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            if "infiniband" in os.readlink(f"/proc/self/fd/{fd}"):
                found.add(int(fd))
    return found


class Watched:
    """What makes a file descriptor: pyverbs does not tell which, and only blocks."""

    def __init__(self, make, without=lambda obj: ()):
        before = event_fds()
        self.obj = make()
        self.fd, = event_fds() - before - set(without(self.obj))

    def ready(self, seconds=0.0):
        poll = select.poll()
        poll.register(self.fd, select.POLLIN)
        return bool(poll.poll(seconds * 1000))


class Conn:
    """A connection's objects."""

    def __init__(self):
        self.cmid = self.chan = self.qp = self.scq = self.rcq = self.comp = None
        self.srq = None
        self.borrowed = False   # the CQs are those of another connection

    def close(self):
        cqs = () if self.borrowed else {self.scq, self.rcq}
        for obj in (self.qp, *cqs, self.comp and self.comp.obj, self.cmid, self.chan):
            if obj is not None:
                obj.close()
