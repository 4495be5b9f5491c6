#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: a Terminate of every row of the RFCs' tables, in the middle of 64 KB the other way
# TIMEOUT: 150
# KERNELS: uml
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/peer.sh
. "$SELFTESTS/peer.sh"

TABLE_SIZE=65535
# Checks not how long the Terminate takes, but how much data precedes it
WITHIN="--timeout 40"

# EXPECTED NAME: RFC 5044 8, RFC 5041 8, RFC 5040 4.8 figure 9.
rows() {
	cat <<-END
		term:2/0/02 crc-payload
		term:2/0/03 length-13
		term:1/1/00 write-stag
		term:1/1/04 ddp-version-tagged-2
		term:1/2/01 qn-0xffffffff
		term:1/2/02 no-buffer
		term:1/2/03 msn-skip
		term:1/2/04 mo-skip-12
		term:1/2/05 too-long-17
		term:1/2/06 ddp-version-2
		term:0/1/00 read-stag
		term:0/1/09 invalidate-stag
		term:0/2/05 rdmap-version-2
		term:0/2/06 opcode-12
		term:0/2/ff terminate-3
	END
}

# With memory that rping has advertised; its Read is not over.
target_rows() {
	cat <<-END
		term:1/1/01 write-after
		term:1/1/03 write-wrap
		term:0/1/01 read-after
		term:0/1/04 read-wrap
		term:1/2/02 read-flood
	END
}

a_few() {
	cat <<-END
		term:2/0/02 crc-payload
		term:1/2/04 mo-skip-12
		term:0/1/00 read-stag
	END
}

# After the data that TCP had, only the rest of an FPDU that was begun, and the Terminate, may
# follow.
CUT=$((1460 + 80))

# cut_short OPTIONS...: the lines are EXPECTED FAULT MEMORY [OPTIONS]: what victim.py has
# advertised, and what it does. Nobody reads until it has seen the fault; see victim.py and --cut.
cut_short() {
	local expected fault memory options file
	while read -r expected fault memory options; do
		file=$(mktemp -u "$T_DIR/queued.XXXXXX") || return 1
		to_victim "$fault in the middle of $memory $options${*:+ ($*)}" \
			"$memory $options --file $file" --fault "$fault" --hold "$file" \
			--cut "$CUT" --expect "$expected" "$@"
	done
}

# Of an answer of 16 MB.
answers() {
	cat <<-END
		term:2/0/02 crc-payload long
		term:1/1/00 write-stag long
		term:0/1/00 read-stag long
	END
}

# Of Sends and Writes of the driver's own, whose completions must agree with what has come.
own() {
	cat <<-END
		term:2/0/02 crc-payload plain --load send
		term:1/2/06 ddp-version-2 plain --load write
		term:2/0/02 crc-header plain --load mixed
		term:0/1/02 write-here no-write --load send
		term:0/1/02 read-here no-read --load write
		term:1/1/02 write-here other-pd --load write
		term:0/1/03 read-here other-pd --load send
		term:0/2/07 response-short plain --load send --ask
	END
}

# Whose consumer aborts the connection while the Terminate waits for room in TCP; and one that waits
# so long that the driver does not wait any more.
aborted() {
	local how
	for how in destroy error; do
		cat <<-END
			term:2/0/02 crc-payload plain --load send --abort $how
			term:1/2/06 ddp-version-2 plain --load write --abort $how
		END
	done
	echo "term:2/0/02 crc-payload plain --load send --abort late"
}

# Whose peer has closed its half in the middle of a message, behind the fault.
finished() {
	cat <<-END
		term:2/0/02 crc-later plain --load send
		term:2/0/02 crc-later plain --load write
	END
}

# tiny BEFORE: a Terminate takes the place of Sends of its length, which must not complete with
# it. A small send buffer takes a part of a batch.
tiny() {
	local wmem
	wmem=$(on_a sysctl -n net.ipv4.tcp_wmem) && on_a sysctl -q -w net.ipv4.tcp_wmem="4096 4096 4096"
	peer_cases < <(echo "term:2/0/02 crc-header plain --load tiny" | cut_short --load own)
	on_a sysctl -q -w net.ipv4.tcp_wmem="$wmem"
	t_run "Sends of a few octets were discarded" discards "$1"
}

# discards BEFORE: FPDUs were discarded; otherwise the test would have shown nothing.
discards() {
	local now
	now=$(counter "$DEV_A" tx_discarded)
	echo "$((now - $1)) FPDUs"
	[ "$now" -gt "$1" ]
}

{ load_kiwarp && topo_up 1500 && policy default; } || bail "no two hosts"
# An initiator answers an RDMA Read, a responder does an RDMA Write.
peer_cases < <(rows | table client --load; target_rows | table client --load)
t_run "nothing is left on an initiator" peer_left_nothing
peer_cases < <(rows | table server --size "$TABLE_SIZE" --load)
t_run "nothing is left on a responder" peer_left_nothing
before=$(counter "$DEV_A" tx_discarded)
# Segments that FPDUs do not fill: TCP can be in the middle of one.
peer_cases < <(answers | cut_short --load; own | cut_short --load own
	own | head -n 2 | cut_short --load own --mss 999
	finished | cut_short --load own --finish
	aborted | cut_short --load own --fill
	aborted | head -n 1 | cut_short --load own --fill --mss 999)
t_run "what TCP had not begun was discarded" discards "$before"
tiny "$(counter "$DEV_A" tx_discarded)"
t_run "markers: policy" policy markers=y
peer_cases < <(a_few | table client --load --markers both
	a_few | table server --size "$TABLE_SIZE" --load --markers both
	answers | head -n 2 | cut_short --load --markers both --mss 999
	own | head -n 2 | cut_short --load own --markers both)
t_run "connections are made as before" still_works
t_run "nothing is left" peer_left_nothing
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
