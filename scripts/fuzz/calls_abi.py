# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""System calls of uverbs and rdma_cm as a process makes them, without libraries, which would refuse
many of them or keep objects of their own. Each function takes a file descriptor first, and raises
OSError. Layouts: ib_user_verbs.h and rdma_user_cm.h, with room for the responses of both user ABIs
behind them (Documentation/uapi.rst)."""

import ctypes
import mmap
import os
import select
import socket
import struct

GET_CONTEXT, ALLOC_PD, DEALLOC_PD, REG_MR, DEREG_MR, ALLOC_MW, DEALLOC_MW = 0, 3, 4, 9, 13, 14, 16
CREATE_CQ, RESIZE_CQ, DESTROY_CQ, ARM_CQ = 18, 19, 20, 23
CREATE_QP, QUERY_QP, MODIFY_QP, DESTROY_QP = 24, 25, 26, 27
CREATE_AH, CREATE_SRQ, MODIFY_SRQ, QUERY_SRQ, DESTROY_SRQ = 5, 32, 33, 34, 35
(CREATE_ID, DESTROY_ID, RESOLVE_ROUTE, CONNECT, LISTEN, ACCEPT, REJECT, DISCONNECT, GET_EVENT,
 MIGRATE_ID, BIND, RESOLVE_ADDR) = 0, 1, 4, 6, 7, 8, 9, 10, 12, 18, 20, 21

RC, UD = 2, 4
STATE_MASK = 1
STATES = ("RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR")
SRQ_SIZE, SRQ_LIMIT = 1, 2
PS_TCP = 0x106
RESOLVE_MS = 3000
UID = 1                 # rdma_cm tells nothing of identifiers with 0
CM_DEVICE = "/dev/infiniband/rdma_cm"
EVENTS = ("ADDR_RESOLVED ADDR_ERROR ROUTE_RESOLVED ROUTE_ERROR CONNECT_REQUEST CONNECT_RESPONSE "
          "CONNECT_ERROR UNREACHABLE REJECTED ESTABLISHED DISCONNECTED DEVICE_REMOVAL "
          "MULTICAST_JOIN MULTICAST_ERROR ADDR_CHANGE TIMEWAIT_EXIT").split()

_MEMORY = mmap.mmap(-1, 16384)
MEMORY = ctypes.addressof(ctypes.c_char.from_buffer(_MEMORY))


def _write(fd, command, body, answer=None):
    """Writes a command; with ANSWER, a number of octets, BODY begins with their address."""
    octets = ctypes.create_string_buffer(answer or 1)
    if answer is not None:
        body = struct.pack("=Q", ctypes.addressof(octets)) + body
    head = struct.pack("=IHH", command, (8 + len(body)) // 4, (answer or 0) // 4)
    os.write(fd, head + body)
    return octets.raw


def _cm_write(fd, command, body, answer=None):
    octets = ctypes.create_string_buffer(answer or 1)
    if answer is not None:
        body = struct.pack("=Q", ctypes.addressof(octets)) + body
    os.write(fd, struct.pack("=IHH", command, len(body), answer or 0) + body)
    return octets.raw


def _first(octets):
    return struct.unpack_from("=I", octets)[0]


def get_context(fd):
    # What tells of asynchronous events is not needed
    os.close(_first(_write(fd, GET_CONTEXT, b"", 16)))


def alloc_pd(fd):
    return _first(_write(fd, ALLOC_PD, b"", 8))


def dealloc_pd(fd, handle):
    _write(fd, DEALLOC_PD, struct.pack("=I", handle))


def reg_mr(fd, pd, size, access):
    return _first(_write(fd, REG_MR, struct.pack("=QQQII8x", MEMORY, size, MEMORY, pd, access), 20))


def dereg_mr(fd, handle):
    _write(fd, DEREG_MR, struct.pack("=I", handle))


def alloc_mw(fd, pd, kind):
    return _first(_write(fd, ALLOC_MW, struct.pack("=IB3x", pd, kind), 8))


def dealloc_mw(fd, handle):
    _write(fd, DEALLOC_MW, struct.pack("=I", handle))


def create_ah(fd, pd):
    return _first(_write(fd, CREATE_AH, struct.pack("=QII32x", 0, pd, 0), 4))


def create_cq(fd, count):
    """Returns handle and size."""
    octets = _write(fd, CREATE_CQ, struct.pack("=QIIiI", 0, count, 0, -1, 0), 24)
    return struct.unpack_from("=II", octets)


def resize_cq(fd, handle, count):
    """Returns the size."""
    return _first(_write(fd, RESIZE_CQ, struct.pack("=II", handle, count), 24))


def arm_cq(fd, handle):
    _write(fd, ARM_CQ, struct.pack("=II", handle, 0))


def destroy_cq(fd, handle):
    _write(fd, DESTROY_CQ, struct.pack("=II", handle, 0), 8)


def create_srq(fd, pd, count):
    """Returns handle and size."""
    octets = _write(fd, CREATE_SRQ, struct.pack("=QIIII", 0, pd, count, 1, 0), 40)
    return struct.unpack_from("=II", octets)


def modify_srq(fd, handle, limit):
    _write(fd, MODIFY_SRQ, struct.pack("=IIII", handle, SRQ_LIMIT, 0, limit))


def resize_srq(fd, handle, count):
    # The driver writes where the new ring is
    _write(fd, MODIFY_SRQ, struct.pack("=IIIIQ", handle, SRQ_SIZE, count, 0, MEMORY))


def query_srq(fd, handle):
    """Returns size and limit."""
    size, _, limit = struct.unpack_from(
        "=III", _write(fd, QUERY_SRQ, struct.pack("=II", handle, 0), 16))
    return size, limit


def destroy_srq(fd, handle):
    _write(fd, DESTROY_SRQ, struct.pack("=II", handle, 0), 4)


def create_qp(fd, pd, scq, rcq, srq, count, kind):
    """SRQ: a handle or None; returns handle and number."""
    body = struct.pack("=QIIIIIIIII4B", 0, pd, scq, rcq, srq or 0, count, 16, 1, 1, 0, 0, kind,
                       srq is not None, 0)
    return struct.unpack_from("=II", _write(fd, CREATE_QP, body, 64))


def query_qp(fd, handle):
    octets = _write(fd, QUERY_QP, struct.pack("=II", handle, STATE_MASK), 128)
    return STATES[octets[108]]


def modify_qp(fd, handle, state):
    _write(fd, MODIFY_QP, struct.pack("=64xIIIIIIIHH16B", handle, STATE_MASK, 0, 0, 0, 0, 0, 0, 0,
                                      STATES.index(state), *[0] * 15))


def destroy_qp(fd, handle):
    _write(fd, DESTROY_QP, struct.pack("=II", handle, 0), 4)


DESTROY = {"pd": dealloc_pd, "mr": dereg_mr, "cq": destroy_cq, "srq": destroy_srq,
           "qp": destroy_qp, "mw": dealloc_mw}


def _address(addr, port):
    return struct.pack("=H2s4s120x", socket.AF_INET, port.to_bytes(2, "big"),
                       socket.inet_aton(addr))


def _param(qpn):
    return struct.pack("=II256x8B", qpn, 0, 0, 0, 1, 1, 0, 0, 0, 1)


def create_id(fd):
    return _first(_create_id(fd))


def _create_id(fd):
    octets = ctypes.create_string_buffer(8)
    body = struct.pack("=QQHB5x", UID, ctypes.addressof(octets), PS_TCP, RC)
    os.write(fd, struct.pack("=IHH", CREATE_ID, len(body), 4) + body)
    return octets.raw


def destroy_id(fd, number):
    _cm_write(fd, DESTROY_ID, struct.pack("=II", number, 0), 4)


def bind(fd, number, addr, port):
    _cm_write(fd, BIND, struct.pack("=IHH", number, 16, 0) + _address(addr, port))


def listen(fd, number):
    _cm_write(fd, LISTEN, struct.pack("=II", number, 16))


def resolve_addr(fd, number, addr, port):
    _cm_write(fd, RESOLVE_ADDR, struct.pack("=IIHHI128x", number, RESOLVE_MS, 0, 16, 0) +
              _address(addr, port))


def resolve_route(fd, number):
    _cm_write(fd, RESOLVE_ROUTE, struct.pack("=II", number, RESOLVE_MS))


def connect(fd, number, qpn):
    _cm_write(fd, CONNECT, _param(qpn) + struct.pack("=IIII", number, 0, 0, 0))


def accept(fd, number, qpn):
    _cm_write(fd, ACCEPT, struct.pack("=Q", UID) + _param(qpn) +
              struct.pack("=IIII", number, 0, 0, 0))


def reject(fd, number):
    _cm_write(fd, REJECT, struct.pack("=IBB2x256x", number, 0, 28))


def disconnect(fd, number):
    _cm_write(fd, DISCONNECT, struct.pack("=I", number))


def migrate_id(fd, number, source):
    _cm_write(fd, MIGRATE_ID, struct.pack("=II", number, source), 4)


def event(fd, seconds):
    """The next event: its name, the identifier that it is for, its status; None: none came."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    if not poll.poll(seconds * 1000):
        return None
    octets = _cm_write(fd, GET_EVENT, b"", 336)
    number, kind, status = struct.unpack_from("=IIi", octets, 8)
    return EVENTS[kind], number, status
