#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: what rdma res, rdma statistic and the trace events show
# TIMEOUT: 60
# CHECK-KERNELS: uml-debug
# shellcheck disable=SC2317,SC2119 # t_run calls them; no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"

TRACING=/sys/kernel/tracing

# --- resources ------------------------------------------------------------------

# shows KIND DEV REGEX: a line of rdma res show KIND.
shows() {
	local line
	while IFS= read -r line; do
		[[ $line =~ (dev|link)\ $2[/\ ] && $line =~ $3 ]] && return 0
	done < <(rdma res show "$1")
	echo "rdma res show $1 does not have $2 ... $3:"
	rdma res show "$1"
	return 1
}

resources() {
	local server client
	spawn server a rping -s -a "$A4" -V && wait_listen a 7174 &&
		spawn client b rping -c -a "$A4" -V || return 1
	wait_for 10 shows qp "$DEV_A" 'state RTS' && wait_for 10 shows qp "$DEV_B" 'state RTS' || return 1
	kill -STOP "$(cat "$T_DIR/server.pid")" "$(cat "$T_DIR/client.pid")"
	server="pid $(cat "$T_DIR/server.pid") comm rping"
	client="pid $(cat "$T_DIR/client.pid") comm rping"
	lists
	local status=$?
	kill -9 "$(cat "$T_DIR/server.pid")" "$(cat "$T_DIR/client.pid")"
	spawn_wait server 5
	spawn_wait client 5
	nothing_left "$DEV_A" "$DEV_B" && return "$status"
}

# tells KIND DEV NAME=REGEX...: one object of KIND has driver details that match all of them.
tells() {
	local kind=$1 dev=$2 wanted
	shift 2
	rdma -j -dd res show "$kind" | tr -d '\n\t ' | sed 's/},{/}\n{/g' |
		grep -E "\"ifname\":\"$dev\"" >"$T_DIR/details"
	cp "$T_DIR/details" "$T_DIR/left"
	for wanted in "$@"; do
		grep -E "\"drv_${wanted%%=*}\":\"?(${wanted#*=})\"?[],}]" "$T_DIR/left" >"$T_DIR/next"
		if ! [ -s "$T_DIR/next" ]; then
			echo "rdma -dd res show $kind does not have $dev ... $wanted:"
			cat "$T_DIR/details"
			return 1
		fi
		mv "$T_DIR/next" "$T_DIR/left"
	done
}

# details: the driver's details of the objects of connected programs are right.
details() {
	tells qp "$DEV_A" kiwarp_state=RTS role=responder ddp_version=1 crc=1 tx_markers=0 \
		rx_markers=0 ird='[1-9][0-9]*' ord='[1-9][0-9]*' emss='[1-9][0-9]*' \
		mulpdu='[1-9][0-9]*' large_fpdus=1 sq_size='[1-9][0-9]*' rq_size='[1-9][0-9]*' reads_in='[01]' &&
		tells qp "$DEV_B" kiwarp_state=RTS role=initiator reads_out='[01]' &&
		tells cq "$DEV_A" size='[1-9][0-9]*' posted='[1-9][0-9]*' overrun=0 &&
		tells mr "$DEV_A" kind=user valid=1 access=7 &&
		tells cm_id "$DEV_A" ep='[1-9][0-9]*' ep_state=LISTENING half_open=0 \
			backlog='[1-9][0-9]*' &&
		tells cm_id "$DEV_A" ep='[1-9][0-9]*' ep_state=OPEN mpa_revision=2 p2p=1 &&
		tells cm_id "$DEV_B" ep='[1-9][0-9]*' ep_state=OPEN mpa_revision=2 p2p=1
}

# lists: the objects of connected programs are listed, each with its owner.
lists() {
	shows cm_id "$DEV_A" "state LISTEN ps TCP $server src-addr $A4:7174" &&
		shows cm_id "$DEV_A" "qp-type RC state CONNECT .* $server src-addr $A4:7174 dst-addr $B4:" &&
		shows cm_id "$DEV_B" "qp-type RC state CONNECT .* $client src-addr $B4:.* dst-addr $A4:7174" &&
		shows qp "$DEV_A" "lqpn [0-9]+ .*type RC state RTS .* $server" &&
		shows qp "$DEV_B" "lqpn [0-9]+ .*type RC state RTS .* $client" &&
		shows cq "$DEV_A" "cqe [1-9][0-9]* users [1-9].* $server" &&
		shows mr "$DEV_A" "mrlen 64 .* $server" &&
		shows pd "$DEV_A" "users [1-9].* $server" &&
		shows ctx "$DEV_A" "$server" && details
}

# --- counters -------------------------------------------------------------------

# Every documented counter exists, and every counter is documented.
# shellcheck disable=SC2016 # of literals, no commands
names() {
	local shown wanted
	shown=$(rdma statistic show link "$DEV_A/1" | tr ' ' '\n' | grep '_' | sort)
	wanted=$(grep '^``' /host/counters.rst | grep -o '``[a-z_]*``' | tr -d '`' | sort)
	diff <(echo "$wanted") <(echo "$shown")
}

# readings ARRAY DEV: sets ARRAY[DEV.COUNTER] to the value of each counter.
# shellcheck disable=SC2034 # a reference
readings() {
	local -n into=$1
	local i
	local -a words
	read -r -a words < <(rdma statistic show link "$2/1")
	for ((i = 2; i + 1 < ${#words[@]}; i += 2)); do
		into[$2.${words[i]}]=${words[i + 1]}
	done
}

declare -A BEFORE NOW
snapshot() { readings BEFORE "$1"; }

# since DEV.COUNTER: prints by how much it had increased at the last reading.
since() { echo "$((NOW[$1] - BEFORE[$1]))"; }

# moved DEV COUNTER BY...: each counter has increased by BY since the snapshot.
moved() {
	local dev=$1 bad=0
	readings NOW "$dev"
	shift
	while [ $# -gt 1 ]; do
		if [ "$((NOW[$dev.$1] - BEFORE[$dev.$1]))" != "$2" ]; then
			echo "$dev $1: $(since "$dev.$1"), not $2"
			bad=1
		fi
		shift 2
	done
	return "$bad"
}

# A ping is, for the server, a READ of SIZE octets, two SENDs of 16 each way,
# and a WRITE of SIZE octets. On top of that, the first FPDU of the client is an empty WRITE, and so
# is that of the server, which announces itself in return. Nothing is an error.
rping_counts() {
	local n=20 size=3000 bad=0
	snapshot "$DEV_A"
	snapshot "$DEV_B"
	rping_to b "$B4" -C "$n" -S "$size" && nothing_left "$DEV_A" "$DEV_B" || return 1
	moved "$DEV_B" conn_requested 1 conn_established 1 conn_closed 1 conn_initiated 0 \
		tx_sends $((2 * n)) rx_sends $((2 * n)) tx_writes $((n + 1)) rx_writes 1 \
		tx_read_requests "$n" rx_read_responses "$n" rx_read_requests 0 tx_read_responses 0 \
		tx_terminates 0 rx_terminates 0 rx_crc_errors 0 rx_mpa_errors 0 \
		rx_ddp_errors 0 rx_rdmap_errors 0 rx_no_buffer 0 conn_failed 0 wr_invalid 0 || bad=1
	moved "$DEV_A" conn_initiated 1 conn_established 1 conn_closed 1 conn_requested 0 \
		tx_sends $((2 * n)) rx_sends $((2 * n)) rx_writes $((n + 1)) tx_writes 1 \
		rx_read_requests "$n" tx_read_responses "$n" tx_read_requests 0 rx_read_responses 0 \
		tx_terminates 0 rx_terminates 0 rx_crc_errors 0 rx_mpa_errors 0 \
		rx_ddp_errors 0 rx_rdmap_errors 0 rx_no_buffer 0 conn_failed 0 wr_invalid 0 || bad=1
	return "$bad"
}

# agree WHAT SENDER RECEIVER: the sender's counter and the receiver's counter agree.
agree() {
	[ "$(since "$2.tx_$1")" = "$(since "$3.rx_$1")" ] && return 0
	echo "$1 from $2 to $3: sent $(since "$2.tx_$1"), received $(since "$3.rx_$1")"
	return 1
}

both_ends_agree() {
	local what bad=0
	snapshot "$DEV_A"
	snapshot "$DEV_B"
	rping_to b "$B4" -C 10 -S 3000 && nothing_left "$DEV_A" "$DEV_B" || return 1
	readings NOW "$DEV_A"
	readings NOW "$DEV_B"
	for what in bytes fpdus sends writes read_requests read_responses; do
		agree "$what" "$DEV_A" "$DEV_B" || bad=1
		agree "$what" "$DEV_B" "$DEV_A" || bad=1
	done
	return "$bad"
}

in_file() { cat "/sys/class/infiniband/$DEV_A/ports/1/hw_counters/$1"; }
set_lifespan() { echo "$1" >"/sys/class/infiniband/$DEV_A/ports/1/hw_counters/lifespan"; }
file_has_moved() { [ "$(in_file tx_sends)" -gt "$1" ]; }

# The files keep their values for as long as lifespan says, in milliseconds, 10000 at most.
lifespan() {
	local before now began took=0
	wait_for 5 file_has_moved 0 && before=$(in_file tx_sends) && set_lifespan 10000 || return 1
	began=${EPOCHREALTIME/./}
	if rping_to b "$B4" -C 5; then
		now=$(in_file tx_sends)
		took=$(((${EPOCHREALTIME/./} - began) / 1000))
	fi
	echo "$before, $took ms later $now"
	set_lifespan 10 && wait_for 5 file_has_moved "$before" &&
		{ [ "$now" = "$before" ] || [ "$took" -gt 9900 ]; }
}

# --- trace events -----------------------------------------------------------------

# Events of several CPUs are put in order by their time, so the clock has to tell them apart.
trace_on() {
	echo 0 >"$TRACING"/tracing_on && echo counter >"$TRACING"/trace_clock && echo >"$TRACING"/trace &&
		echo 1 >"$TRACING"/events/kiwarp/enable && echo 1 >"$TRACING"/tracing_on
}

trace_off() {
	echo 0 >"$TRACING"/tracing_on
	echo 0 >"$TRACING"/events/kiwarp/enable
	grep -v '^#' "$TRACING"/trace >"$T_DIR/trace"
	echo local >"$TRACING"/trace_clock
}

# ways EVENT DEV KEY: prints the states of each object, as "ID A B C ...". A step that
# does not begin where the last one ended is shown as "?".
ways() {
	awk -v event="$1:" -v dev="dev=$2" -v key="$3=" '
		{
			for (i = 1; i < NF; i++)
				if ($i == event)
					break
			if (i == NF || $(i + 1) != dev || index($(i + 2), key) != 1)
				next
			id = $(i + 2)
			if (!(id in at)) {
				way[id] = $(i + 3)
				at[id] = $(i + 3)
			}
			if ($(i + 3) != at[id])
				way[id] = way[id] " ?"
			at[id] = $(i + 5)
			way[id] = way[id] " " $(i + 5)
		}
		END { for (id in way) print id, way[id] }' "$T_DIR/trace"
}

# goes EVENT DEV KEY REGEX: the states of one object match REGEX exactly.
goes() {
	local got
	got=$(ways "$1" "$2" "$3" | cut -d' ' -f2-)
	grep -q -x -E -e "$4" <<<"$got" && ! grep -q '?' <<<"$got" && return 0
	echo "$1 on $2: '$got', not '$4'"
	cat "$T_DIR/trace"
	return 1
}

states() {
	trace_on || return 1
	rping_to b "$B4" -C 3 && nothing_left "$DEV_A" "$DEV_B"
	local status=$?
	trace_off
	[ "$status" = 0 ] &&
		goes kiw_ep_state "$DEV_B" ep 'IDLE LISTENING CLOSED' &&
		goes kiw_ep_state "$DEV_B" ep 'IDLE WAIT_REQUEST REQUEST_GIVEN (WAIT_FIRST )?OPEN CLOSED' &&
		goes kiw_ep_state "$DEV_A" ep 'IDLE CONNECTING WAIT_REPLY OPEN CLOSED' &&
		goes kiw_qp_state "$DEV_A" qp 'IDLE RTS (CLOSING )?ERROR' &&
		goes kiw_qp_state "$DEV_B" qp 'IDLE RTS (CLOSING )?ERROR' &&
		grep -E "kiw_mr: dev=$DEV_A stag=0x[0-9a-f]{8} registered base=0x[0-9a-f]+ length=64 " \
			"$T_DIR/trace" &&
		grep -E "kiw_mr: dev=$DEV_A stag=0x[0-9a-f]{8} deregistered " "$T_DIR/trace" &&
		grep -E 'kiw_sock_close: lport=7174 rport=[1-9][0-9]* closed err=0' "$T_DIR/trace"
}

# fault WHAT ANSWER COUNTER EVENT REGEX [CLASS]: a peer commits the fault WHAT and gets ANSWER.
# COUNTER, and that of the class, increase by one and no other does; the event matches REGEX.
fault() {
	local what=$1 answer=$2 counter=$3 event=$4 regex=$5 class=${6:-} status
	snapshot "$DEV_A"
	trace_on || return 1
	on_b timeout 60 python3 "$SELFTESTS/peer.py" "$A4" 7174 "$what" >"$T_DIR/peer"
	status=$?
	wait_for 5 _not moved "$DEV_A" "$counter" 0
	trace_off
	cat "$T_DIR/peer" "$T_DIR/trace"
	[ "$status" = 0 ] && grep -q -x -E -e "$answer" "$T_DIR/peer" &&
		moved "$DEV_A" "$counter" 1 && { [ -z "$class" ] || moved "$DEV_A" "$class" 1; } &&
		only "$counter" "$class" &&
		grep -q -E -e "$event: dev=$DEV_A .*$regex" "$T_DIR/trace"
}

CLASSES=(rx_stag rx_stag_assoc rx_bounds rx_to_wrap rx_access rx_invalidate rx_version rx_opcode
	rx_response rx_malformed rx_qn rx_msn rx_mo rx_too_long rx_no_buffer)

# only COUNTER CLASS: of the error counters, only these have increased.
only() {
	local name
	local -a others=()
	for name in rx_crc_errors rx_mpa_errors rx_ddp_errors rx_rdmap_errors rx_terminates \
		conn_bad_mpa_frame conn_timeout "${CLASSES[@]}"; do
		[ "$name" = "$1" ] || [ "$name" = "$2" ] || others+=("$name" 0)
	done
	moved "$DEV_A" "${others[@]}"
}

# ------------------------------------------------------------------------------

if ! load_kiwarp || ! topo_up || ! rdma_up; then bail "no devices"; fi
t_run "rdma res show while connected" resources
t_run "every counter is there" names
t_run "counters of an rping" rping_counts
t_run "counters of both ends agree" both_ends_agree
t_run "files are as old as lifespan says" lifespan
t_run "states of QPs and endpoints" states

spawn server a rping -s -P -a "$A4"
wait_listen a 7174 || bail "rping -s does not listen"
t_run "fault: CRC" fault crc 'terminate 2 0 0x02' rx_crc_errors kiw_perr_tx \
	'MPA CRC error \(layer=2 etype=0 code=0x02\)'
t_run "fault: FPDU too short" fault length 'terminate 2 0 0x03' rx_mpa_errors kiw_perr_tx \
	'MPA marker and ULPDU length disagree'
t_run "fault: DDP version" fault ddp_version 'terminate 1 2 0x06' rx_ddp_errors kiw_perr_tx \
	'DDP invalid version, untagged' rx_version
t_run "fault: DDP queue" fault queue 'terminate 1 2 0x01' rx_ddp_errors kiw_perr_tx \
	'DDP invalid queue number' rx_qn
t_run "fault: DDP message number" fault msn 'terminate 1 2 0x03' rx_ddp_errors kiw_perr_tx \
	'DDP MSN out of range' rx_msn
t_run "fault: STag of a Write" fault write_stag 'terminate 1 1 0x00' rx_ddp_errors kiw_perr_tx \
	'DDP invalid STag .* opcode=0' rx_stag
t_run "fault: STag of a Read" fault read_stag 'terminate 0 1 0x00' rx_rdmap_errors kiw_perr_tx \
	'RDMAP invalid STag .* opcode=1' rx_stag
t_run "fault: Send too long" fault too_long 'terminate 1 2 0x05' rx_ddp_errors kiw_perr_tx \
	'DDP message too long .* opcode=3' rx_too_long
t_run "fault: RDMAP opcode" fault opcode 'terminate 0 2 0x06' rx_rdmap_errors kiw_perr_tx \
	'RDMAP unexpected opcode' rx_opcode
t_run "fault of ours, says the peer" fault terminate 'closed' rx_terminates kiw_perr_rx \
	'RDMAP invalid STag'
t_run "fault: MPA Request" fault garbage_request 'closed' conn_bad_mpa_frame kiw_mpa_bad ''
spawn_stop server
t_run "nothing left" nothing_left "$DEV_A" "$DEV_B"
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
