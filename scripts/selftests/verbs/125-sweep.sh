#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: data at every size and page offset, with any SGEs, MTUs, markers, without CRC
# TIMEOUT: 100
# KERNELS: uml uml-debug
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/verbs.sh
. "$SELFTESTS/verbs.sh"

# sweep STEP [SECONDS]: a debug kernel gets fewer.
sweep() {
	[ "$KIW_KERNEL" = uml ] || set -- $(($1 * 16 + 1)) "${2:-}"
	"$PROGRAMS/sweep" "$1" ${2:+"$2"}
}

mtu() { ip -n a link set "$NETDEV" mtu "$1" && ip -n b link set "$NETDEV" mtu "$1"; }

{ load_kiwarp && topo_up 1500 && rdma_up; } || bail "no two hosts"
t_run "every size, every offset" sweep 1 "${KIW_SOAK:-}"
[ -z "${KIW_SOAK:-}" ] || t_run "the product" "$PROGRAMS/sweep" product "$KIW_SOAK"
set_policy crc n
t_run "without CRC" sweep 16
set_policy crc y
set_policy markers y
t_run "with markers" sweep 12
verbs_between a b "$B4" "with markers: " dereg_midway
set_policy markers n
mtu 9000
t_run "MTU 9000" sweep 16
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
