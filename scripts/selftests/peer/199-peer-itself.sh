#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: the wire peer of the tests that follow, against the RFCs and itself
# TIMEOUT: 60
# KERNELS: uml
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/peer.sh
. "$SELFTESTS/peer.sh"

# of CLASS...: its tests.
of() { env "PYTHONPATH=$SELFTESTS/../.." python3 -m peer.selftest "$@"; }

t_run "CRC32c" of Crc
t_run "FPDUs and markers, RFC 5044 figures 4, 5 and 6" of Framing
t_run "Requests and Replies" of Startup
t_run "segments and Terminates" of Messages
t_run "both roles, every option" of Itself
done_testing
