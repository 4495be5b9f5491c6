#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: what a process makes is charged to its memory cgroup and its rdma cgroup
# TIMEOUT: 90
# KERNELS: uml uml-debug 6.12
# CHECK-KERNELS: uml
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"

GROUP=/sys/fs/cgroup/accounting
LIMIT=$(at_most 15)
export LIMIT

# in_group ARGUMENT...: runs accounting.py in the cgroup
in_group() {
	echo max >"$GROUP/memory.max" || return 1
	bash -c 'echo $BASHPID >"$1" && shift && exec nsenter --net=/run/netns/a -- \
		timeout "$LIMIT" python3 "$SELFTESTS/accounting.py" "$@"' - "$GROUP/cgroup.procs" "$DEV_A" "$@"
}

# The structures of a region, its place in the table, and the core's object; 313 octets on uml. What
# the cgroup is charged can lag behind by 64 pages, which is little for that many regions.
costs() {
	local cost
	cost=$(in_group cost mr 30000) || return 1
	echo "$cost octets for each region"
	[ "$cost" -ge 300 ]
}

# The memory of QPs whose numbers lie side by side, and of those that do not, differs by a node of the
# table for each.
table_costs() {
	local dense sparse
	dense=$(in_group cost qp 100) && sparse=$(in_group cost sparse 100) || return 1
	echo "$dense octets for each QP, $sparse if it is alone in a node of the table"
	[ $((sparse - dense)) -ge 450 ]
}

# A process creates as many objects as it can: further ones fail, or the process is killed.
exhausts() {
	local status
	in_group exhaust mr
	status=$?
	echo "status $status"
	[ "$status" = 0 ] || [ "$status" = 137 ]
}

# A work item that connects a QP allocates for the QP's owner. The kernel makes the thread that
# exceeds memory.high sleep for up to two seconds, each time.
not_throttled() { connects_quickly || connects_quickly || connects_quickly; }

connects_quickly() {
	local times quick=0 slow=0
	spawn server b python3 "$SELFTESTS/acceptor.py" "$DEV_B" "$B4" 7701 && wait_listen b 7701 ||
		return 1
	times=$(in_group connect "$B4")
	read -r quick slow <<<"$times"
	spawn_stop server
	echo "$quick ms, $slow ms beyond memory.high"
	[ -n "$slow" ] && [ "$slow" -lt 1000 ]
}

OBJECTS=50
EAGAIN=11

# limits HANDLES OBJECTS. The protection domain is an object, too.
limits() { echo "$DEV_A hca_handle=$1 hca_object=$2" >"$GROUP/rdma.max"; }
in_use() { grep -q "^$DEV_A .*hca_object=$1 " "$GROUP/rdma.current"; }

# Other processes have theirs meanwhile, and nothing stays charged. A limit must not stay, either
# (containers.rst): the kernel would use what it has freed with the cgroup.
# shellcheck disable=SC2016 # for the inner shell
is_limited() {
	local status=0
	echo max >"$GROUP/memory.max" && limits 2 "$OBJECTS" || return 1
	spawn holder a bash -c 'echo $BASHPID >"$1" && shift && exec "$@"' - \
		"$GROUP/cgroup.procs" timeout "$LIMIT" python3 "$SELFTESTS/accounting.py" "$DEV_A" hold mr
	wait_for 20 grep -q "^$OBJECTS $EAGAIN\$" "$T_DIR/holder.log" || status=1
	spawn_log holder
	in_use "$OBJECTS" || { cat "$GROUP/rdma.current"; status=1; }
	"$PROGRAMS/abuse" limits || status=1
	spawn_stop holder
	wait_for 10 in_use 0 || { cat "$GROUP/rdma.current"; status=1; }
	limits max max || status=1
	return "$status"
}

nothing_left() { ! rdma resource show | grep -q -E '(pd|mr) [1-9]'; }

{ load_kiwarp && topo_up 1500 && rdma_up; } || bail "no two hosts"
{ echo "+memory +rdma" >/sys/fs/cgroup/cgroup.subtree_control && mkdir -p "$GROUP"; } || bail "no cgroup"
t_run "a region is charged" costs
t_run "the table of QPs is charged" table_costs
t_run "as many regions as there can be" exhausts
t_run "as many protection domains as there can be" "$PROGRAMS/abuse" limits
t_run "no work item sleeps for memory.high" not_throttled
t_run "the rdma cgroup limits objects, and other processes have theirs" is_limited
t_run "nothing is left" wait_for 20 nothing_left
rmdir "$GROUP"
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
