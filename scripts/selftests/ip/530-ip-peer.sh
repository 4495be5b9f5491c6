#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: kiwarp_ip: a peer that knows the RFC only, breaks the rules of credit, lies, floods
# TIMEOUT: 120
# CHECK-KERNELS: uml
# shellcheck disable=SC2317,SC2119,SC2086 # t_run calls them; no arguments; no blanks
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-ip
. "$SELFTESTS/rc-ip"
# shellcheck source=scripts/selftests/lib/peer.sh
. "$SELFTESTS/peer.sh"

B_LLADDR=80:00:fc:f3:00:00:00:00:00:00:00:00:00:00:ff:ff:0a:4d:00:02

a_alone() {
	kip_add a && kip_set a group $KIP_GROUP && kip_up a && wait_for 5 kip_listens a &&
		on_a ip neigh replace "$KB4" dev kip0 lladdr $B_LLADDR nud permanent
}

hostile() {
	on_b env "PYTHONPATH=$SELFTESTS/../.." python3 -m peer ip "$A4" "$B4" "$KA4" "$KB4"
}

# No receive was missing, and what follows the rules works as before
as_before() {
	on_a rdma statistic show link "$DEV_A" | grep -q 'rx_no_buffer 0 ' || return 1
	kip_set a rx_depth 32 && kip_add b && kip_set b group $KIP_GROUP && kip_up b &&
		on_a ip neigh del "$KB4" dev kip0 && wait_for 10 kip_pings a "$KB4" -W 1 -s 60000 &&
		kip_stream a b "$KB4" 4
}

if ! load_ip || ! topo_up || ! rdma_up || ! a_alone; then bail "no interfaces"; fi
told hostile
all_told 25
t_run "then it works as before" as_before
diag "a: $(kip_counts a | paste -sd' ')"
ip_down
rdma_down
topo_down
t_run "unload" unload_ip
done_testing
