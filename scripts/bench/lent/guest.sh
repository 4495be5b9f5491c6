#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# Runs on host a of lent.sh: writes to host b with each setting. Prints the kernel's functions, and
# for each window of time the setting and the numbers of mark.c: 4-byte words sent by RDMA, bytes
# that were lent, packets sent and received.

# shellcheck source=scripts/selftests/lib/rc
. /host/selftests/lib/rc

# The emulated guests are slow, and so may be the machine.
export KIW_SLOW=20

ROUNDS=3
# Windows of a round, each with the counts since the one before; the first ones are the warm-up
WINDOWS=12
WINDOW_MS=1000
# Of one run of ib_write_bw, which is stopped
SECONDS_MAX=300
T_DIR=$(mktemp -d)

# writes SETTING
writes() {
	local port=/sys/class/infiniband/$DEV_A/ports/1 net=/sys/class/net/$NETDEV/statistics
	local -a bw=(timeout "$SECONDS_MAX" ib_write_bw -R -F -s 65536 -D 600)
	spawn server b "${bw[@]}" -d "$DEV_B"
	wait_listen b 18515 || return 1
	spawn client a "${bw[@]}" -d "$DEV_A" "$B4"
	wait_for 20 moves "$port" || return 1
	echo "SETTING $1"
	/host/job/mark "$WINDOWS" "$WINDOW_MS" "$port/counters/port_xmit_data" \
		"$port/zero_copy/lent_bytes" "$net/tx_packets" "$net/rx_packets" || return 1
	spawn_stop client
	spawn_stop server
}

moves() { [ "$(cat "$1/counters/port_xmit_data")" -gt 1000000 ]; }

{ load_kiwarp && topo_up 1500 && kiwarp_default crc n; } || exit 1
grep ' [tTwW] ' /proc/kallsyms | sed 's/^/SYMBOL /'
ethtool -k "$NETDEV" | grep -E '^(tx-checksumming|scatter-gather|tcp-segmentation-offload):'
for _ in $(seq "$ROUNDS"); do
	for setting in off on auto; do
		echo "$setting" >/sys/module/kiwarp/parameters/zero_copy && rdma_up || exit 1
		writes "$setting" || exit 1
		rdma_down
	done
done
