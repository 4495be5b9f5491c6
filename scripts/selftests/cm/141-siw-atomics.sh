#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: immediate data and atomics to siw, which does not know RFC 7306
# TIMEOUT: 60
# KERNELS: uml 6.1 6.12
# EXCEPT: smp-debug uml-smp
# CHECK-KERNELS: uml
#
# Not on kernels with lockdep: see 140-siw.sh.
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"

KTEST=/sys/kernel/debug/kiwarp_ktest

# run HOST NAME: in the network namespace of the host that has siw, which makes its sockets in that
# of the caller.
run() {
	on "$1" tee "$KTEST/run" <<<"8 9 $2" && return
	cat "$KTEST/log"
	return 1
}

# devices HOST: which has kiwarp; the other one has siw.
devices() {
	local other=b
	[ "$1" = a ] || other=a
	rdma_add "$1" && KIW_LINK_TYPE=siw rdma_add "$other" &&
		wait_for 5 rdma_is_active a && wait_for 5 rdma_is_active b
}

unload_both() { unload_kiwarp && unload_module siw; }

{ load_kiwarp && load_module siw && topo_up 1500 && modprobe kiwarp_ktest; } || bail "no two hosts"
exec 8</run/netns/a 9</run/netns/b
t_run "kiwarp on a, siw on b" devices a
t_run "siw accepts" run b ext-to-siw
rdma_down
t_run "siw on a, kiwarp on b" devices b
t_run "siw connects" run a ext-from-siw
exec 8<&- 9<&-
t_run "unload the consumer" modprobe -r kiwarp_ktest
rdma_down
topo_down
t_run "unload" unload_both
done_testing
