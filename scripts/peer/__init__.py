# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""An independent iWARP implementation in Python over TCP sockets, to test others against.

It shares no code with the driver. `python3 -m peer --help` tells how to use it;
selftest.py checks it against the examples in the RFCs and against itself.
"""
