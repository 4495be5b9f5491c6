#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: a Terminate of every row of the RFCs' tables, in the middle of 64 KB the other way
# TIMEOUT: 120
# KERNELS: uml
# shellcheck source=scripts/selftests/rc
. "$(dirname "$0")/rc"
# shellcheck source=scripts/selftests/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/peer.sh
. "$SELFTESTS/peer.sh"

TABLE_SIZE=65535
# How long it takes is not looked at, but how much comes before it
WITHIN="--timeout 40"

# EXPECTED NAME: RFC 5044 8, RFC 5041 8, RFC 5040 4.8 figure 9.
rows() {
	cat <<-END
		term:2/0/02 crc-payload
		term:2/0/03 length-13
		term:1/1/00 write-stag
		term:1/1/04 ddp-version-tagged-2
		term:1/2/01 qn-3
		term:1/2/02 no-buffer
		term:1/2/03 msn-skip
		term:1/2/04 mo-skip-12
		term:1/2/05 too-long-17
		term:1/2/06 ddp-version-2
		term:0/1/00 read-stag
		term:0/1/09 invalidate-stag
		term:0/2/05 rdmap-version-2
		term:0/2/06 opcode-9
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

# Of an answer of 16 MB, no more comes than TCP and the batch that is its next hold.
cut_short() {
	local fault expected
	while read -r expected fault; do
		printf '%s | server %s --run "%s" --fault %s --load --cut 2000000 %s\n' \
			"$fault in the middle of 16 MB" "$B4" \
			"$ON_A python3 $SELFTESTS/victim.py $DEV_A $B4 7174 long" "$fault" \
			"--expect $expected --status ok --timeout 60"
	done
}

{ load_kiwarp && topo_up 1500 && policy default; } || bail "no two hosts"
# An initiator answers an RDMA Read, a responder does an RDMA Write.
peer_cases < <(rows | table client --load; target_rows | table client --load)
t_run "nothing is left on an initiator" peer_left_nothing
peer_cases < <(rows | table server --size "$TABLE_SIZE" --load)
t_run "nothing is left on a responder" peer_left_nothing
peer_cases < <(rows | grep -e crc-payload -e write-stag -e read-stag | cut_short)
t_run "markers: policy" policy markers=y
peer_cases < <(a_few | table client --load --markers both
	a_few | table server --size "$TABLE_SIZE" --load --markers both)
t_run "connections are made as before" still_works
t_run "nothing is left" peer_left_nothing
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
