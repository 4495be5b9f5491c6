#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: each fault of a peer in full operation, and the Terminate it gets, in both roles
# TIMEOUT: 120
# KERNELS: uml uml-debug 6.12
# CHECK-KERNELS: uml-debug
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/peer.sh
. "$SELFTESTS/peer.sh"

# EXPECTED NAME...: RFC 5040 4.8 figure 9, RFC 5041 8, RFC 5044 8.
anytime() {
	local ext='opcode-8 opcode-9 opcode-10 opcode-11' queue=1/2/01
	# With kiwarp-ext, processes have what RFC 7306 defines: 254-peer-atomics.
	[ "$KIW_LINK_TYPE" != kiwarp-ext ] || ext='' queue=0/2/06
	cat <<-END
		term:2/0/02 crc-header crc-payload crc-pad crc-field
		term:2/0/03 length-0 length-1 length-13 length-17 length-64769 length-65535
		term:1/2/06 ddp-version-0 ddp-version-2 ddp-version-3
		term:1/1/04 ddp-version-tagged-0 ddp-version-tagged-2
		term:0/2/05 rdmap-version-0 rdmap-version-2 rdmap-version-3
		term:0/2/06 $ext opcode-12 opcode-13 opcode-14
		term:0/2/06 between-write between-read between-send between-send-se
		term:0/2/06 opcode-15 send-tagged write-untagged qn-1 qn-2 response-unasked
		term:$queue qn-3
		term:1/2/01 qn-0xffffffff
		term:1/2/02 no-buffer
		term:1/2/03 msn-skip msn-zero msn-repeat read-msn
		term:1/2/04 mo-first mo-skip-12 mo-overlap-4
		term:1/2/05 too-long-17 too-long-1000 too-long-later read-request-29
		term:1/1/00 write-stag first-of-two
		term:0/1/00 read-stag
		term:0/1/09 invalidate-stag
		term:0/2/ff read-request-27 terminate-3
		close terminate fin-idle
		ended fin-in-fpdu fin-in-message
		reset reset-idle reset-in-fpdu reset-in-message
	END
}

# Faults in the middle of a message, after valid segments; the names say which field is wrong.
going_on() {
	cat <<-END
		term:1/2/03 on-msn
		term:1/2/04 on-mo
		term:1/2/05 on-length on-end
		term:1/2/06 on-version
		term:0/2/05 on-rdmap-version
		term:0/2/06 on-qn on-opcode
	END
}

# Faults while a Read of the driver is outstanding, whose sink is exposed only to its Response.
asked() {
	cat <<-END
		term:1/1/00 write-sink response-stag
		term:0/1/00 read-sink
		term:1/1/01 response-long response-to
		term:0/2/07 response-short response-empty response-empty-stag
		term:0/2/06 response-twice
	END
}

# With memory that rping has advertised.
target() {
	cat <<-END
		term:1/1/00 write-key write-index on-stag
		term:1/1/01 write-after write-before write-far on-to on-end-to
		term:1/1/03 write-wrap
		term:0/1/00 read-key read-index
		term:0/1/01 read-after read-before read-far
		term:0/1/04 read-wrap
		term:1/2/02 read-flood
		term:0/1/09 invalidate-rkey
		term:0/2/06 on-response
	END
}

# What must not be done to the memory that victim.py advertises.
forbidden() {
	local memory expected fault
	while read -r memory fault expected; do
		to_victim "$fault of memory: $memory" "$memory" --fault "$fault" \
			--expect "$expected" "$WITHIN"
	done <<-END
		no-write write-here term:0/1/02
		no-read read-here term:0/1/02
		other-pd write-here term:1/1/02
		other-pd read-here term:0/1/03
		gone write-here term:1/1/00
		gone read-here term:0/1/00
		plain crc-write term:2/0/02
		plain crc-later term:2/0/02
	END
}

# Memory that becomes invalid in the middle of a Response: the Terminate says at which offset.
going() {
	to_victim "memory goes while it is read" "going --file $T_DIR/gone" --fault read-gone \
		--hold "$T_DIR/gone" --expect term:0/1/00
}

a_few() {
	cat <<-END
		term:2/0/03 length-13
		term:1/2/06 ddp-version-2
		term:1/2/04 mo-overlap-4
		term:1/1/00 write-stag
	END
}

# A FIN right behind a fault, inside a message or not: the Terminate is sent nevertheless.
finished() {
	cat <<-END
		term:2/0/02 crc-header
		term:1/2/03 on-msn
		term:1/2/04 mo-skip-12 on-mo
		term:1/2/05 too-long-17 too-long-later
		term:0/2/06 between-write on-opcode
	END
}

# A header that arrives byte by byte, whose length is less, or more, than what arrives.
lengths() { echo "term:2/0/03 length-0 length-1 length-17 length-64769 length-65535"; }

moved() {
	local name
	for name in rx_crc_errors rx_mpa_errors rx_ddp_errors rx_rdmap_errors rx_stag \
		rx_stag_assoc rx_bounds rx_to_wrap rx_access rx_invalidate rx_version rx_opcode \
		rx_response rx_malformed rx_qn rx_msn rx_mo rx_too_long rx_no_buffer \
		tx_terminates rx_terminates wc_flushed wc_bad_resp wc_loc_len; do
		[ "$(counter "$DEV_A" "$name")" -gt 0 ] || { echo "$name did not move"; return 1; }
	done
}

{ load_kiwarp && topo_up 1500 && rdma_up; } || bail "no two hosts"
peer_cases < <(anytime | table server; asked | table server; going_on | table server)
t_run "nothing is left on a responder" peer_left_nothing
peer_cases < <(anytime | table client; target | table client; forbidden; going)
t_run "nothing is left on an initiator" peer_left_nothing
peer_cases < <({ a_few; lengths; } | table server --segments 1; a_few | table server --p2p
	a_few | table server --rev 1; a_few | table client --segments 1-7
	finished | table server --finish)
t_run "the counters tell" moved
t_run "connections are made as before" still_works
t_run "nothing is left" peer_left_nothing
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
