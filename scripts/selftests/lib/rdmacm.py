# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""librdmacm by ctypes: pyverbs 44 sends no private data with a connection, and shows
neither the depths of an event nor its file descriptor."""

import collections
import ctypes
import os
import select
import socket
import struct

PS_TCP = 0x106
RESOLVE_MS = 5000
OPTION_ID, OPTION_ID_REUSEADDR = 0, 1

EVENTS = ("ADDR_RESOLVED ADDR_ERROR ROUTE_RESOLVED ROUTE_ERROR CONNECT_REQUEST "
          "CONNECT_RESPONSE CONNECT_ERROR UNREACHABLE REJECTED ESTABLISHED DISCONNECTED "
          "DEVICE_REMOVAL MULTICAST_JOIN MULTICAST_ERROR ADDR_CHANGE TIMEWAIT_EXIT").split()

# An event: its private data is copied, id is a pointer; ird: READs we shall have to serve,
# ord: that we may have outstanding.
Event = collections.namedtuple("Event", "name status id listen_id data ird ord")


class _ConnParam(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("data_len", ctypes.c_uint8),
                ("responder_resources", ctypes.c_uint8), ("initiator_depth", ctypes.c_uint8),
                ("flow_control", ctypes.c_uint8), ("retry_count", ctypes.c_uint8),
                ("rnr_retry_count", ctypes.c_uint8), ("srq", ctypes.c_uint8),
                ("qp_num", ctypes.c_uint32)]


class _Event(ctypes.Structure):
    # The union at the end is larger than what is used of it; librdmacm allocates it.
    _fields_ = [("id", ctypes.c_void_p), ("listen_id", ctypes.c_void_p),
                ("event", ctypes.c_int), ("status", ctypes.c_int), ("conn", _ConnParam)]


def _library():
    lib = ctypes.CDLL("librdmacm.so.1", use_errno=True)
    ptr, num = ctypes.c_void_p, ctypes.c_int
    lib.rdma_create_event_channel.restype = ptr
    for name, *args in (
            ("create_event_channel",), ("destroy_event_channel", ptr),
            ("create_id", ptr, ptr, ptr, num), ("destroy_id", ptr),
            ("get_cm_event", ptr, ptr), ("ack_cm_event", ptr),
            ("bind_addr", ptr, ptr), ("listen", ptr, num),
            ("resolve_addr", ptr, ptr, ptr, num), ("resolve_route", ptr, num),
            ("connect", ptr, ptr), ("accept", ptr, ptr),
            ("set_option", ptr, num, num, ptr, ctypes.c_size_t),
            ("reject", ptr, ptr, ctypes.c_uint8), ("disconnect", ptr)):
        getattr(lib, "rdma_" + name).argtypes = args
    return lib


_LIB = _library()


def _call(name, *args):
    if getattr(_LIB, "rdma_" + name)(*args):
        err = ctypes.get_errno()
        raise OSError(err, f"rdma_{name}: {os.strerror(err)}")


def _sockaddr(addr, port):
    if ":" in addr:
        return struct.pack("=H2sI16sI", socket.AF_INET6, port.to_bytes(2, "big"), 0,
                           socket.inet_pton(socket.AF_INET6, addr), 0)
    return struct.pack("=H2s4s8x", socket.AF_INET, port.to_bytes(2, "big"),
                       socket.inet_pton(socket.AF_INET, addr))


class Channel:
    """An event channel."""

    def __init__(self):
        self.ptr = _LIB.rdma_create_event_channel()
        if not self.ptr:
            raise OSError(ctypes.get_errno(), "rdma_create_event_channel")
        self.fd = ctypes.cast(self.ptr, ctypes.POINTER(ctypes.c_int))[0]

    def close(self):
        _LIB.rdma_destroy_event_channel(self.ptr)

    def ready(self, seconds=0.0):
        poll = select.poll()
        poll.register(self.fd, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def event(self):
        """The next event, acknowledged; blocks."""
        ptr = ctypes.c_void_p()
        _call("get_cm_event", self.ptr, ctypes.byref(ptr))
        raw = ctypes.cast(ptr, ctypes.POINTER(_Event)).contents
        data = ctypes.string_at(raw.conn.data, raw.conn.data_len) if raw.conn.data else b""
        event = Event(EVENTS[raw.event], raw.status, raw.id, raw.listen_id, data,
                      raw.conn.responder_resources, raw.conn.initiator_depth)
        _call("ack_cm_event", ptr)
        return event


class Id:
    """An rdma_cm_id: one's own, or that of a CONNECT_REQUEST."""

    def __init__(self, channel, ptr=None):
        if ptr is None:
            made = ctypes.c_void_p()
            _call("create_id", channel.ptr, ctypes.byref(made), None, PS_TCP)
            ptr = made.value
        self.ptr = ptr

    def close(self):
        _call("destroy_id", self.ptr)

    def bind(self, addr, port):
        _call("bind_addr", self.ptr, _sockaddr(addr, port))

    def bind_shared(self, addr, port):
        """Binds to a port that others may be bound to."""
        yes = ctypes.c_int(1)
        _call("set_option", self.ptr, OPTION_ID, OPTION_ID_REUSEADDR, ctypes.byref(yes),
              ctypes.sizeof(yes))
        self.bind(addr, port)

    def listen_bound(self, backlog):
        _call("listen", self.ptr, backlog)

    def listen(self, addr, port, backlog):
        self.bind(addr, port)
        self.listen_bound(backlog)

    def resolve_addr(self, addr, port):
        _call("resolve_addr", self.ptr, None, _sockaddr(addr, port), RESOLVE_MS)

    def resolve_route(self):
        _call("resolve_route", self.ptr, RESOLVE_MS)

    @staticmethod
    def _param(qp_num, ird, ord_, data):
        buf = ctypes.create_string_buffer(data, len(data) or 1)
        param = _ConnParam(ctypes.addressof(buf) if data else None, len(data), ird, ord_,
                           qp_num=qp_num)
        param.keep = buf
        return param

    def connect(self, qp_num, ird, ord_, data=b""):
        _call("connect", self.ptr, ctypes.byref(self._param(qp_num, ird, ord_, data)))

    def accept(self, qp_num, ird, ord_, data=b""):
        _call("accept", self.ptr, ctypes.byref(self._param(qp_num, ird, ord_, data)))

    def reject(self, data=b""):
        _call("reject", self.ptr, data, len(data))

    def disconnect(self):
        _call("disconnect", self.ptr)
