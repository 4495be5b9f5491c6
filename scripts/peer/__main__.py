# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""python3 -m peer: see cli.py."""

import sys

from peer import cli, hostile, ip, mutate

if sys.argv[1:2] == ["hostile"]:
    sys.exit(hostile.main(sys.argv[2:]))
if sys.argv[1:2] == ["ip"]:
    sys.exit(ip.main(sys.argv[2:]))
if sys.argv[1:2] == ["mutate"]:
    sys.exit(mutate.main(sys.argv[2:]))
sys.exit(cli.main(sys.argv[1:]))
