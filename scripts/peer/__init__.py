# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""An iWARP implementation of its own, of sockets and Python only, to test another with.

It shares no code with the driver. `python3 -m peer --help` tells how to use it;
selftest.py proves it against the RFCs' examples and against itself.
"""
