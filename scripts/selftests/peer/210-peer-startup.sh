#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: startups that go wrong, in both roles: what is seen of them and what is left
# TIMEOUT: 120
# KERNELS: uml uml-debug 6.1
# CHECK-KERNELS: uml-debug
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/peer.sh
. "$SELFTESTS/peer.sh"

SLOW=${KIW_SLOW:-1}
DEADLINE_MS=$((1000 * SLOW))
AT_ONCE="--within $((2 * SLOW))"
IN_TIME="--within $((3 * SLOW)) --timeout $((5 * SLOW))"
LONG=$(printf '%0600d' 0)

# A malformed frame, and one of an unknown revision, is answered by a reset: connections.rst.
frames_to_server() {
	local name
	for name in bad-key wrong-role rev-3 rev-255 pd-513 pd-65535 short-s; do
		to_server "Request with $name" --fault $name --expect reset "$AT_ONCE"
	done
	to_server "Request with R" --fault r-in-request
	to_server "Request with reserved bits" --fault reserved
	to_server "octets behind the Request" --fault extra
	to_server "octets behind a Request of revision 1" --fault extra --rev 1
	to_server "Request in pieces" --fault dribble
	to_server "no kind of RTR offered" --p2p --rtr "''" --expect reject "$AT_ONCE"
	to_server "more private data than iw_cm takes" --pdata "$LONG" --expect reject "$AT_ONCE"
}

frames_to_client() {
	local name
	for name in bad-key wrong-role rev-3 rev-255 pd-513 pd-65535 short-s; do
		to_client "Reply with $name" 1 64 --fault $name --expect reset --status fail "$AT_ONCE"
	done
	to_client "Reply of revision 0" 1 64 --fault rev-0-reply --expect reset --status fail \
		"$AT_ONCE"
	to_client "Reply without S" 1 64 --fault no-s --expect term:2/0/05 --status fail "$AT_ONCE"
	to_client "Reply that is not enhanced" 1 64 --fault no-s --expect term:2/0/05 --status fail \
		"$AT_ONCE"
	to_client "Reply without A" 1 64 --fault no-a --expect term:2/0/07 --status fail \
		"$AT_ONCE"
	to_client "Reply without RTR" 1 64 --fault no-rtr --expect term:2/0/07 \
		--status fail "$AT_ONCE"
	to_client "Reply with an ORD out of reach" 1 64 --fault ord-huge \
		--expect term:2/0/06 --status fail "$AT_ONCE"
	to_client "Reply with reserved bits" 3 64 --fault reserved
	to_client "Reply in pieces" 3 64 --fault dribble
	to_client "rejection" 1 64 --reject --expect ended --status fail "$AT_ONCE"
	to_client "rejection with private data" 1 64 --reject --pdata 616263 --expect ended \
		--status fail "$AT_ONCE"
	to_client "rejection with more private data than iw_cm takes" 1 64 --reject \
		--pdata "$LONG" --expect ended --status fail "$AT_ONCE"
}

# How streams end: NAME OPTIONS... is to_server NAME, or to_client NAME 1 64.
ends() {
	local point role=("$@")
	for point in before in-frame in-pdata after after-reply; do
		"${role[@]:0:1}" "FIN $point, ${role[0]}" "${role[@]:1}" --pdata 6162 \
			--fault fin-$point --expect ended "$IN_TIME"
		"${role[@]:0:1}" "reset $point, ${role[0]}" "${role[@]:1}" --pdata 6162 \
			--fault reset-$point --expect reset
	done
}

silences() {
	local point role=("$@")
	for point in before in-frame in-pdata; do
		"${role[@]:0:1}" "silence $point, ${role[0]}" "${role[@]:1}" --pdata 6162 \
			--fault stall-$point --expect ended "$IN_TIME"
	done
}

rtr() {
	to_server "RTR with a bad CRC" --p2p --fault rtr-crc --expect term:2/0/02 "$AT_ONCE"
	to_server "RTR that writes nowhere" --p2p --fault rtr-payload --expect term:1/1/00 "$AT_ONCE"
	to_server "RTR that invalidates" --p2p --fault rtr-invalidate --expect term:0/1/09 "$AT_ONCE"
	# A message like any other: rping ends, because it is none of its own.
	to_server "RTR by Send, which was not agreed on" --p2p --rtr write,read --fault rtr-send \
		--expect ended "$AT_ONCE"
}

# What ends at the deadline, and what has none
late() {
	to_server "Request in pieces, too slow" --fault dribble-slow --expect ended "$IN_TIME"
	to_client "Reply in pieces, too slow" 1 64 --fault dribble-slow --pdata "${LONG:0:40}" \
		--expect ended --status fail "$IN_TIME"
	silences to_server
	silences to_client 1 64
	to_server "no RTR" --p2p --fault stall-after-reply --expect ended "$IN_TIME"
	to_server "no first message, and none is due" --fault stall-after-reply \
		--timeout $((2 * SLOW)) --expect timeout
}

# counters_moved NAME...
counters_moved() {
	local name
	for name; do
		[ "$(counter "$DEV_A" "$name")" -gt 0 ] || { echo "$name did not move"; return 1; }
	done
}

# Afterwards, a connection without faults works.
{ load_kiwarp && topo_up 1500; } || bail "no two hosts"
t_run "a deadline that is far away" policy "startup_ms=60000"
peer_cases < <(frames_to_server; rtr)
t_run "nothing is left of bad Requests" peer_left_nothing
peer_cases < <(frames_to_client)
t_run "nothing is left of bad Replies" peer_left_nothing
peer_cases < <(ends to_server; ends to_client 1 64)
t_run "nothing is left of streams that ended" peer_left_nothing
t_run "the counters tell" counters_moved conn_bad_mpa_frame conn_failed
t_run "a deadline of $DEADLINE_MS ms" policy "startup_ms=$DEADLINE_MS"
peer_cases < <(late)
t_run "nothing is left of those that were late" peer_left_nothing
t_run "the counter of timeouts tells" counters_moved conn_timeout
t_run "connections are made as before" still_works
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
