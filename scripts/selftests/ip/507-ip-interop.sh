#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: kiwarp_ip between two drivers: kiwarp on host a, siw on b, CRC on and off
# TIMEOUT: 120
# KERNELS: uml 6.1 6.12
# CHECK-PAIRS: uml
# TOPOLOGY: pair
# shellcheck disable=SC2317,SC2119 # t_run calls them; no arguments meant
#
# Not where lockdep watches: see 140-siw.
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-ip
. "$SELFTESTS/rc-ip"

# y|n
devices() {
	kiwarp_default crc "$1" && rdma_add a && KIW_LINK_TYPE=siw rdma_add b &&
		wait_for 5 rdma_is_active a && wait_for 5 rdma_is_active b
}

packets() {
	wait_for 20 kip_pings a "$KB4" -W 1 -s 60000 -M "do" && kip_crc_is "$1" &&
		on_a "$SELFTESTS/ip_sizes.py" "$KB4" $((5 * ${KIW_SLOW:-1})) borders &&
		on_a "$SELFTESTS/ip_sizes.py" "$KB6" $((5 * ${KIW_SLOW:-1})) borders
}

streams() { kip_stream a b "$KB4" 8 && kip_stream b a "$KA6" 8; }

sound() {
	local rules=(rx_overrun rx_bad_control conn_stalled conn_silent rx_bad_type rx_short)
	kip_is_zero a "${rules[@]}" && KIW_LINK_TYPE=siw kip_is_zero b "${rules[@]}"
}

if ! load_ip || ! load_module siw || ! topo_up || ! devices y || ! ip_up; then bail "no interfaces"; fi
t_run "CRC: packets" packets 1
t_run "CRC: streams" streams
rdma_down
t_run "devices without CRC" devices n
t_run "no CRC: packets" packets 0
t_run "no CRC: streams" streams
t_run "no rule was broken" sound
diag "a: $(kip_counts a | paste -sd' ')"
diag "b: $(kip_counts b | paste -sd' ')"
ip_down
rdma_down
t_run "unload siw" unload_module siw
t_run "unload" unload_ip
done_testing
