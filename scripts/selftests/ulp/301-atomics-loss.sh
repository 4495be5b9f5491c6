#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: atomics and immediates while packets are lost, late, twice there or out of order
# TIMEOUT: 240
# KERNELS: uml uml-debug 6.1 6.12
# CHECK-KERNELS: uml
# shellcheck disable=SC2119 # no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"

KTEST=/sys/kernel/debug/kiwarp_ktest

# run NAME
run() {
	echo "8 9 $1" >"$KTEST/run" && return
	cat "$KTEST/log"
	return 1
}

# netem WHAT...: in both directions
netem() {
	on_a tc qdisc replace dev "$NETDEV" root netem "$@" &&
		on_b tc qdisc replace dev "$NETDEV" root netem "$@"
}

sent() { on "$1" tc -s qdisc show dev "$NETDEV"; }

lost() { [[ $(sent a)$(sent b) =~ dropped\ [1-9] ]]; }

{ load_kiwarp && topo_up && rdma_up && modprobe kiwarp_ktest; } || bail "no two hosts"
exec 8</run/netns/a 9</run/netns/b
while read -r what; do
	read -ra words <<<"$what"
	t_run "$what" netem "${words[@]}"
	for name in atomics-in-order atomics-add-up atomics-two-streams immediates-in-order; do
		t_run "$name: $what" run "$name"
	done
	[[ $what != *loss* ]] || t_run "packets were lost" lost
done <<-END
	delay 1ms loss 2%
	delay 2ms reorder 25% 50%
	delay 1ms duplicate 10%
END
exec 8<&- 9<&-
t_run "unload the consumer" modprobe -r kiwarp_ktest
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
