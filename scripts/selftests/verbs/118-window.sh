#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: TCP's receive buffer is small, and what comes is put together in large pieces
# TIMEOUT: 60
# KERNELS: uml 6.1
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/verbs.sh
. "$SELFTESTS/verbs.sh"

# buffers DEFAULT MAX: octets of a new socket's receive buffer, which TCP itself does not enlarge.
buffers() {
	local host
	for host in a b; do
		on "$host" sysctl -q -w "net.ipv4.tcp_rmem=4096 $1 $2" \
			net.ipv4.tcp_moderate_rcvbuf=0 || return 1
	done
}

{ load_kiwarp && topo_up 9000 && rdma_up; } || bail "no two hosts"
for size in 65536 32768; do
	t_run "buffers of $size" buffers $size 6291456
	verbs_between a b "$B4" "buffers of $size: " write_sizes send_sizes
done
# An FPDU is larger than the buffer may become.
for size in 32768 8192; do
	t_run "buffers of $size at most" buffers $size $size
	verbs_between a b "$B4" "buffers of $size at most: " write_sizes send_sizes
done
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
