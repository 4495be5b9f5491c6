# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shellcheck shell=bash
#
# Sourced after rc: runs tables of cases of scripts/peer, each a test case of its own.
# The peer is on host b; rping, over the driver, on host a.

PARAMETERS=/sys/module/${KIW_LINK_TYPE%-ext}/parameters
export PYTHONDONTWRITEBYTECODE=1

ON_A="nsenter --net=/run/netns/a -- timeout 60"
RPING_SERVER="$ON_A rping -s -S 65535"
RPING_CLIENT="$ON_A rping -c -V -a $B4"
PEER_A=$A4 PEER_B=$B4
# From a fault to its outcome
WITHIN="--within $((3 * ${KIW_SLOW:-1}))"
# Of the connection that behaves
GOOD_PORT=7190
# Pings of these cases
TABLE_SIZE=64

# over_ipv6: the tables that follow
over_ipv6() {
	PEER_A=$A6 PEER_B=$B6
	RPING_SERVER="$ON_A rping -s -a $A6 -S 65535"
	RPING_CLIENT="$ON_A rping -c -V -a $B6"
}

# to_server NAME [OPTIONS...]: a line of a table: the peer connects to rping.
to_server() {
	local name=$1
	shift
	printf '%s | client %s --run "%s" %s\n' "$name" "$PEER_A" "$RPING_SERVER" "$*"
}

# to_client NAME COUNT SIZE [OPTIONS...]: rping connects to the peer.
to_client() {
	local name=$1 count=$2 size=$3
	shift 3
	printf '%s | server %s --count %s --size %s --run "%s -C %s -S %s" %s\n' "$name" "$PEER_B" \
		"$count" "$size" "$RPING_CLIENT" "$count" "$size" "$*"
}

# to_victim NAME "MEMORY [OPTIONS...]" [OPTIONS...]: victim.py connects to the peer.
to_victim() {
	local name=$1 memory=$2
	shift 2
	printf '%s | server %s --run "%s %s %s 7174 %s" --status ok --timeout 60 %s\n' "$name" "$B4" \
		"$ON_A python3 $SELFTESTS/victim.py" "$DEV_A" "$B4" "$memory" "$*"
}

# table ROLE [OPTIONS...]: cases of the lists on standard input, "EXPECTED FAULT..." in each line;
# the options are in their names, too. ROLE is that of rping.
table() {
	local role=$1 expected names name where=
	shift
	[ $# = 0 ] || where=" ($*)"
	while read -r expected names; do
		for name in $names; do
			if [ "$role" = server ]; then
				to_server "$name to a responder$where" --fault "$name" \
					--expect "$expected" "$WITHIN" "$@"
			else
				to_client "$name to an initiator$where" 1 $TABLE_SIZE --fault "$name" \
					--expect "$expected" "$WITHIN" --status ends "$@"
			fi
		done
	done
}

# told CMD...: cases of which CMD says "ok NAME", or what happened and "not ok NAME". TOLD: how many.
told() {
	local line
	TOLD=0
	: >"$T_DIR/case"
	while IFS= read -r line; do
		case $line in
		"ok "*) ok "${line#ok }"; TOLD=$((TOLD + 1)); : >"$T_DIR/case" ;;
		"not ok "*)
			not_ok "${line#not ok }" "$(tail -n 30 "$T_DIR/case")"
			TOLD=$((TOLD + 1))
			: >"$T_DIR/case"
			;;
		*) printf '%s\n' "$line" >>"$T_DIR/case" ;;
		esac
	done < <("$@" 2>&1)
}

# all_told COUNT
all_told() {
	[ "$TOLD" = "$1" ] ||
		not_ok "all cases" "$TOLD cases ended"$'\n'"$(tail -n 30 "$T_DIR/case")"
}

_peer() {
	on_b env "PYTHONPATH=$SELFTESTS/../.." python3 -m peer cases <"$T_DIR/table"
}

# peer_cases: the table on standard input.
peer_cases() {
	cat >"$T_DIR/table"
	told _peer
	all_told "$(wc -l <"$T_DIR/table")"
}

# set_parameter NAME=VALUE
set_parameter() {
	local file=$PARAMETERS/${1%%=*}
	[ "$(<"$file")" = "${1#*=}" ] || echo "${1#*=}" >"$file"
}

# policy default|NAME=VALUE...: devices that are made with it, and the defaults else.
policy() {
	local setting
	if [ -z "${POLICY_DEFAULTS:-}" ]; then
		POLICY_DEFAULTS=$(cd "$PARAMETERS" && grep -H '' ./* | sed 's/^\.\///; s/:/=/')
	fi
	! rdma link show "$DEV_A/1" >/dev/null 2>&1 || rdma_down
	while IFS= read -r setting; do
		set_parameter "$setting" || return 1
	done <<<"$POLICY_DEFAULTS"
	[ "$1" != default ] || shift
	for setting in "$@"; do
		set_parameter "$setting" || return 1
	done
	rdma_up
}

# Sockets of the device on host a that are not over.
a_has_sockets() { on_a ss -Htn state all | grep -v -i time-wait | grep .; }

# peer_left_nothing: of what the cases did.
peer_left_nothing() {
	nothing_left "$DEV_A" && wait_gone 10 a_has_sockets
}

# Pings without end, from host b. Its device sees nothing of the storm.
start_good() {
	spawn good-server a rping -s -a "$A4" -p "$GOOD_PORT" -S 20000 &&
		wait_listen a "$GOOD_PORT" || return 1
	spawn good-client b rping -c -V -a "$A4" -p "$GOOD_PORT" -S 20000
	wait_for 5 good_moves
}

# good_moves: the connection that behaves has moved data since the last call.
good_moves() {
	local now
	now=$(counter "$DEV_B" rx_writes)
	[ "$now" != "${GOOD_LAST:=$now}" ] || return 1
	GOOD_LAST=$now
}

end_good() {
	good_moves || wait_for 2 good_moves || return 1
	spawn_running good-server && spawn_running good-client || return 1
	spawn_stop good-client
	spawn_wait good-server 10
	return 0
}

# good_beside NAME SECONDS PATIENCE: until what was spawned as NAME has ended, which it must
# in time and well, the connection that behaves does not stand still for PATIENCE seconds,
# and the target lives.
good_beside() {
	local end=$((SECONDS + $2)) status
	while spawn_running "$1"; do
		spawn_running target || { spawn_log target; return 1; }
		wait_for "$3" good_moves || { echo "the good connection stands still"; return 1; }
		[ "$SECONDS" -lt "$end" ] || { echo "no end"; return 1; }
	done
	spawn_wait "$1" 5
	status=$?
	spawn_log "$1"
	return "$status"
}

end_target() {
	spawn_running target || { spawn_log target; return 1; }
	spawn_stop target
	wait_gone 10 is_listening a 7174
}

still_works() { rping_to a "$A4" -C 5 -S 1000; }
