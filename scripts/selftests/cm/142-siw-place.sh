#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: kiwarp in siw's place: modprobe siw, rdma link add type siw
# TIMEOUT: 40
# CHECK-KERNELS: uml
# shellcheck disable=SC2119 # no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"

CONF=/etc/modprobe.d/siw.conf

is_loaded() { grep -q "^$1 " /proc/modules; }

# Only a kiwarp device has a policy.
is_kiwarp() { [ -d "/sys/class/infiniband/$1/policy" ]; }

with_aliases() { cp /host/packaging/samples/siw.conf "$CONF"; }

by_name() {
	KIW_LINK_TYPE=siw load_kiwarp && is_loaded kiwarp && must_fail is_loaded siw
}

# What test suites ask before they run
is_said_to_be_there() { modprobe -n -q siw && modprobe --show-depends siw | grep -q '/kiwarp\.ko'; }

works() {
	KIW_LINK_TYPE=siw rdma_up && on_a rdma link show && is_kiwarp kiwa && is_kiwarp kiwb &&
		rping_to b "$B4" -C 10
}

both_types() {
	rdma_down && KIW_LINK_TYPE=siw rdma_add a && KIW_LINK_TYPE=kiwarp rdma_add b &&
		wait_for 5 rdma_is_active a && wait_for 5 rdma_is_active b && rping_to a "$A4" -C 10
}

removed() {
	rdma_down
	modprobe -r siw && must_fail is_loaded kiwarp
}

# The kernel asks for the module of the type.
by_type() {
	on_a rdma link add kiwa type siw netdev eth0 && is_kiwarp kiwa && is_loaded kiwarp &&
		must_fail is_loaded siw && rdma_del a && modprobe -r kiwarp
}

only_on_request() {
	modprobe kiwarp siw_type=n && must_fail on_a rdma link add kiwa type siw netdev eth0 &&
		KIW_LINK_TYPE=kiwarp rdma_add a && rdma_del a && modprobe -r kiwarp
}

# A siw that is loaded already, which has the type
siw_first() {
	rm "$CONF"
	modprobe -n -q siw || { skip_this "this kernel has no siw"; return; }
	load_module siw && modprobe kiwarp siw_type=y || return 1
	dmesg_since | grep 'kiwarp: siw_type: siw is loaded' || return 1
	on_a rdma link add kiwa type siw netdev eth0 && must_fail is_kiwarp kiwa && rdma_del a &&
		KIW_LINK_TYPE=kiwarp rdma_add a && is_kiwarp kiwa && rdma_del a &&
		modprobe -r kiwarp && modprobe -r siw
}

topo_up || bail "no two hosts"
with_aliases
t_run "modprobe siw" by_name
t_run "rdma says that siw is present" is_said_to_be_there
t_run "links of type siw" works
t_run "a link of each type" both_types
t_run "modprobe -r siw" removed
t_run "the type loads the module" by_type
t_run "only on request" only_on_request
t_run "siw is loaded already" siw_first
topo_down
done_testing
