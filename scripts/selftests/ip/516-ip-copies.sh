#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: kiwarp_ip: copies of a broadcast while peers are removed
# TIMEOUT: 60
# SMP: 2
# CHECK-KERNELS: uml-smp
# shellcheck disable=SC2119 # no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-ip
. "$SELFTESTS/rc-ip"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"

BROADCASTS=60
GO=60
STAY=60
# The other end has all addresses from 10.77.0.128 on, without kiwarp_ip.
FIRST=128

listens() { grep -q listens "$T_DIR/copies.log"; }

# UDP sends copies to some peers at a time. Those that stay get one each, whoever goes meanwhile.
to_all() {
	local status=0
	on_b ip route add local 10.77.0.128/25 dev lo || return 1
	spawn copies b python3 "$SELFTESTS/ip_copies.py" receive "$BROADCASTS" "$STAY" $((FIRST + GO))
	wait_for 10 listens && _in_sys a "python3 $SELFTESTS/ip_copies.py \
		send $BROADCASTS $GO $STAY $FIRST $(_kip_file peers)" || status=1
	spawn_wait copies 60 || status=1
	spawn_log copies
	kip_is_zero a tx_udp_errors tx_queue_full || status=1
	on_b ip route del local 10.77.0.128/25 dev lo && return "$status"
}

if ! load_ip || ! topo_up || ! rdma_up || ! kip_add a || ! kip_up a; then bail "no interface"; fi
t_run "copies to those that stay" to_all
on_a ip link del kip0
rdma_down
topo_down
t_run "unload" unload_ip
done_testing
