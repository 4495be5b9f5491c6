#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: RFC 8167: the server's calls go the other way of the client's own connection
# TIMEOUT: 180
# KERNELS: uml uml-debug 6.1 6.12
# CHECK-KERNELS: uml
# SOAK-ONLY: uml+pair 6.1 6.12
# CHECK-PAIRS: none
# TOPOLOGY: any
#
# A client has a delegation; a second client wants the file, so the server recalls the delegation.
# CALL and REPLY of the recall go in the opposite direction of all others, on the same RDMA
# connection. The test looks for them in the trace events of both ends and, on uml, on the wire.
# shellcheck disable=SC2086,SC2119 # names without blanks; no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/rc-ulp
. "$SELFTESTS/rc-ulp"
# shellcheck source=scripts/selftests/lib/rc-nfs
. "$SELFTESTS/rc-nfs"
# shellcheck source=scripts/selftests/lib/capture.sh
. "$SELFTESTS/capture.sh"

VERSION=4.2
[ "$KIW_KERNEL" != 6.1 ] || VERSION=4.1
TRACING=/sys/kernel/tracing
EVENTS_A=(rpcrdma:xprtrdma_cb_call rpcrdma:xprtrdma_cb_reply nfs4:nfs4_cb_recall
	nfs4:nfs4_delegreturn_exit)
EVENTS_B=(nfsd:nfsd_deleg_read nfsd:nfsd_cb_recall nfsd:nfsd_cb_setup)

# _trace EVENT...: enables these trace events of this host, and clears the buffer
_trace() {
	local event
	echo 0 >"$TRACING/tracing_on"
	echo >"$TRACING/trace"
	for event in "$@"; do echo 1 >"$TRACING/events/${event/://}/enable" || return 1; done
	echo 1 >"$TRACING/tracing_on"
}

_no_trace() { echo 0 >"$TRACING/events/enable" && echo >"$TRACING/trace"; }

on_b_here() { on_b bash -c "TRACING=$TRACING; $(declare -f _trace _no_trace); $*"; }

trace_start() {
	if is_pair; then
		_trace "${EVENTS_A[@]}" && on_b_here _trace "${EVENTS_B[@]}"
	else
		_trace "${EVENTS_A[@]}" "${EVENTS_B[@]}"
	fi
}

trace_end() {
	_no_trace && { ! is_pair || on_b_here _no_trace; }
}

# traced EVENT [TEXT]: prints such events of both hosts; fails if there is none
traced() { { cat "$TRACING/trace"; on_other cat "$TRACING/trace"; } | grep -e " $1: .*${2:-}"; }

# connections: prints how many connections host a has to the server's port
connections() { on_a ss -Htn state established "dport = :$NFS_PORT" | wc -l; }
one_connection() { [ "$(connections)" = 1 ] || { on_a ss -tn; return 1; }; }

# Whether the server has given the first client a delegation.
_delegations() { grep -l 'type: deleg' /proc/fs/nfsd/clients/*/states; }
has_delegation() { on_b bash -c "$(declare -f _delegations); _delegations" | grep -q .; }

# Opens the file repeatedly, because the server decides when it grants a delegation.
delegated() {
	local i
	for i in {1..20}; do
		exec 5<"$NFS_MNT/$1" && cat <&5 >/dev/null || return 1
		! has_delegation || return 0
		exec 5<&-
		_pause 0.3
	done
	echo "no delegation after $i tries"
	return 1
}

# recall NAME: the second client writes to a file of which the first has a delegation.
recall() {
	local status=1
	echo "before" >"$NFS_MNT/$1" && delegated "$1" && trace_start &&
		on_b timeout $((40 * ${KIW_SLOW:-1})) sh -c "echo after >$NFS_MNT2/$1" &&
		wait_for 5 traced nfs4_delegreturn_exit && [ "$(<"$NFS_MNT/$1")" = after ] && status=0
	exec 5<&-
	recalled || status=1
	trace_end
	one_connection && return $status
}

# recalled: whether the CALL reached the client over RDMA, and its REPLY went back with the same
# XID.
recalled() {
	local xid
	traced nfsd_cb_recall && traced nfs4_cb_recall 'error=0' || return 1
	xid=$(traced xprtrdma_cb_call | sed -n 's/.*xid=\(0x[0-9a-f]*\).*/\1/p' | head -n 1)
	[ -n "$xid" ] && traced xprtrdma_cb_reply "xid=$xid" && return
	cat "$TRACING/trace"
	return 1
}

# with_traffic NAME: recalls a delegation while the client writes and reads another file
with_traffic() {
	local status=1
	truncate -s 256K "$NFS_MNT/traffic" &&
		io_start "$NFS_MNT/traffic" 256K --block 4K &&
		under recall "$1" && io_stop && status=0
	return $status
}

# Whether to capture the traffic: on uml only. Offloads are off then, so that tshark can decode it.
captured() { [ "$KIW_KERNEL" = uml ] && ! is_pair; }

recall_captured() {
	local status=1
	plain_netdevs && capture || return 1
	two_mounts || return 1
	# Some traffic, so little that tcpdump can follow, and in messages without chunks
	spawn writes a fio --name=x --filename="$NFS_MNT/little" --size=64k --bs=1k --rw=randwrite \
		--direct=1 --rate_iops=50 --time_based --runtime=$((300 * ${KIW_SLOW:-1})) --thread
	wait_for 20 test -s "$NFS_MNT/little" && recall zero && spawn_running writes && status=0
	spawn_stop writes
	capture_end && return $status
}

# _rpcs: prints for each RPC message over RDMA the sender, both ports, the XID, the credits, 0 for
# CALL or 1 for REPLY, and the program. CALLs with chunks are left out: tshark shows them at their
# last RDMA Read Response. Heuristics come first, because the client's port may be one that tshark
# knows from another protocol.
_rpcs() {
	tshark -o tcp.try_heuristic_first:TRUE -r "$PCAP" -Y "rpcordma.xid && rpc.msgtyp" -T fields -E occurrence=f -e ip.src -e tcp.srcport -e tcp.dstport \
		-e rpcordma.xid -e rpcordma.flow_control -e rpc.msgtyp -e rpc.program
}

# Forward and backward are told apart by the program; 1073741824 is that of callbacks.
on_the_wire() {
	_rpcs >"$T_DIR/rpcs" && awk -v client="$A4" -v server="$B4" -v port="$NFS_PORT" '
		function wrong(what) { print what ": " $0; bad = 1 }
		{ back = $7 == 1073741824; kind = (back ? "backward" : "forward") ($6 ? " REPLY" : " CALL")
		  if ($1 != ((back != $6) ? server : client)) wrong("not that way")
		  if ($2 != port && $3 != port) wrong("another port")
		  ports[$2 + $3 - port] = 1
		  count[kind]++
		  if (kind in credits && credits[kind] != $5) wrong("other credits")
		  credits[kind] = $5
		  if (back && !$6) { calls[$4] = 1; before = count["forward CALL"] }
		  if (back && $6 && !calls[$4]) wrong("a reply to nothing") }
		END {
		  for (p in ports) connections++
		  for (kind in count) print count[kind], kind, "with", credits[kind], "credits"
		  print connections, "connection(s),", before, "forward CALLs before the backward one"
		  exit bad || connections != 1 || !before || count["forward CALL"] == before ||
			count["backward CALL"] != 1 || count["backward REPLY"] != 1 ||
			!count["forward REPLY"] ||
			credits["backward CALL"] == credits["forward CALL"]
		}' "$T_DIR/rpcs"
}

two_mounts() { nfs_mount "vers=$VERSION" && nfs_is_rdma && nfs_mount2 "vers=$VERSION"; }

# The connection is lost; the client makes another one, and the server uses that.
reconnect() {
	device_again a && timeout $((60 * ${KIW_SLOW:-1})) ls "$NFS_MNT" && one_connection
}

{ load_kiwarp && topo_up && rdma_up; } || bail "no two hosts"
t_run "a server" nfs_serve
if captured; then
	t_run "a delegation is recalled while the wire is watched" recall_captured
	t_run "calls and replies in both directions, on one connection" on_the_wire
else
	t_run "two clients" two_mounts
	t_run "a delegation is recalled on the connection that has traffic" with_traffic one
fi
t_run "the connection is another one" reconnect
t_run "a delegation is recalled on the new connection" recall two
nfs_all_ends
done_testing
