#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: the wire peer over IPv6: data, revisions, startups and segments that go wrong
# TIMEOUT: 120
# KERNELS: uml uml-debug 6.12
# CHECK-KERNELS: uml-debug
# shellcheck disable=SC2119 # no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/peer.sh
. "$SELFTESTS/peer.sh"

SLOW=${KIW_SLOW:-1}
AT_ONCE="--within $((2 * SLOW))"

data() {
	local kind
	to_server "from the peer" --size 5000
	to_client "to the peer" 3 5000
	to_server "from the peer, in pieces" --size 5000 --segments 1-700:5
	to_client "to the peer, in pieces" 3 5000 --segments 1-700:5
	to_server "64K" --size 65535
	to_client "64K, to the peer" 3 65535
	to_server "FPDUs for segments of 536" --mss 536 --size 5000 --want-largest 500-530
	to_client "FPDUs for segments of 536, to the peer" 3 5000 --mss 536 --want-largest 500-530
	for kind in send write read; do to_server "RTR by $kind" --p2p --prefer $kind; done
}

# A second connection is made to the same address, of revision 1.
revisions() {
	to_server "revision 1" --rev 1
	to_client "a peer of revision 1 only" 3 5000 --only-rev-1 --rev 1 --want-rev 1
	to_client "a peer of revision 1 only, in pieces" 3 5000 --only-rev-1 --rev 1 --segments 1-7
}

startups() {
	to_server "Request with bad-key" --fault bad-key --expect reset "$AT_ONCE"
	to_server "no kind of RTR offered" --p2p --rtr "''" --expect reject "$AT_ONCE"
	to_client "Reply with bad-key" 1 64 --fault bad-key --expect reset --status fail "$AT_ONCE"
	to_client "rejection with private data" 1 64 --reject --pdata 616263 --expect ended \
		--status fail "$AT_ONCE"
	to_server "reset in a Request" --pdata 6162 --fault reset-in-frame --expect reset
	to_client "FIN in a Reply" 1 64 --pdata 6162 --fault fin-in-frame --expect ended "$AT_ONCE"
}

anytime() {
	cat <<-END
		term:2/0/02 crc-payload
		term:2/0/03 length-13
		term:1/2/04 mo-overlap-4
		term:1/1/00 write-stag
		close terminate
		reset reset-in-fpdu
	END
}

target() {
	cat <<-END
		term:1/1/00 write-key
		term:1/1/01 write-after
		term:0/1/01 read-after
	END
}

{ load_kiwarp && topo_up 1500 && policy default; } || bail "no two hosts"
over_ipv6
peer_cases < <(data; revisions; startups)
peer_cases < <(anytime | table server; { anytime; target; } | table client)
t_run "nothing is left" peer_left_nothing
t_run "nor on the other host" nothing_left "$DEV_B"
t_run "connections are made as before" rping_to a "$A6" -C 5 -S 1000
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
