#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: a kernel consumer with both ends in its hands (ktest/)
# TIMEOUT: 90
# KERNELS: uml uml-debug
# shellcheck disable=SC2119 # no arguments meant
# shellcheck source=scripts/selftests/rc
. "$(dirname "$0")/rc"

KTEST=/sys/kernel/debug/kiwarp_ktest

# run NAME
run() {
	echo "8 9 $1" >"$KTEST/run" && return
	cat "$KTEST/log"
	return 1
}

if ! load_kiwarp || ! topo_up || ! rdma_up || ! modprobe kiwarp_ktest; then
	bail "no two hosts"
fi
exec 8</run/netns/a 9</run/netns/b
while read -r name; do
	t_run "$name" run "$name"
done <"$KTEST/cases"
exec 8<&- 9<&-
t_run "unload the consumer" modprobe -r kiwarp_ktest
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
