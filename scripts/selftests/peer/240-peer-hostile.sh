#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: hundreds of hostile connections beside one that behaves
# TIMEOUT: 120
# KERNELS: uml uml-debug 6.12
# CHECK-KERNELS: uml-debug
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/peer.sh
. "$SELFTESTS/peer.sh"

SLOW=${KIW_SLOW:-1}
ROUNDS=1000
case $KIW_KERNEL${KIW_ALL:+/all} in 6.12) ROUNDS=100 ;; 6.12/all) ROUNDS=300 ;; esac

# The target: accepts what can be accepted.
target() {
	spawn target a python3 "$SELFTESTS/acceptor.py" "$DEV_A" "$A4" 7174
	wait_listen a 7174
}

storm() {
	spawn hostile b env "PYTHONPATH=$SELFTESTS/../.." python3 -m peer hostile "$A4" \
		--rounds "$1" --seconds $((60 * SLOW)) --seed "$KIW_SEED"
	good_beside hostile $((100 * SLOW)) $((2 * SLOW))
}

# TCP has a message of its own for a flood of connections. Messages of the test, of TCP and about
# slow timers are not the driver's.
others() { grep -v -e 'kiwarp-test: ' -e 'TCP: ' -e 'hrtimer: interrupt took'; }

silent() { ! dmesg_since | others | tail -n +"$1" | grep .; }

lines() { dmesg_since | others | wc -l; }

{ load_kiwarp && topo_up 1500 && policy "startup_ms=$((1000 * SLOW))"; } || bail "no two hosts"
t_run "a connection that behaves" start_good
t_run "a server" target
before=$(lines)
t_run "$ROUNDS that do not" storm $ROUNDS
diag "$(spawn_log hostile)"
t_run "the connection that behaves goes on" end_good
t_run "the server can end" end_target
t_run "nothing of it is logged" silent $((before + 1))
t_run "nothing is left" peer_left_nothing
t_run "nor on the other host" nothing_left "$DEV_B"
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
