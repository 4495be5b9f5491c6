#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: data to and from an independent peer: revisions, CRC, RTR, FPDU sizes, segments
# TIMEOUT: 180
# KERNELS: uml 6.12
# CHECK-KERNELS: uml
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/peer.sh
. "$SELFTESTS/peer.sh"

# sizes REV CRC: FPDUs of the smallest size, of one segment, and of the largest size.
sizes() {
	local fpdu segments name
	for fpdu in 128 1444 64768; do
		for segments in whole 1-7:3 1-700:5; do
			name="rev $1, CRC $2, FPDUs of $fpdu, segments $segments"
			to_server "$name, from the peer" --rev "$1" --crc "$2" --fpdu $fpdu \
				--segments $segments --size 5000
			to_client "$name, to the peer" 3 5000 --want-rev "$1" --crc "$2" \
				--fpdu $fpdu --segments $segments
		done
	done
}

# What the driver makes of small segments: its FPDUs fit them, but MULPDU is never under 128.
mss() {
	to_server "FPDUs for segments of 536" --mss 536 --size 5000 --want-largest 500-530
	to_server "FPDUs for segments of 100" --mss 100 --size 2000 --want-largest 128-130
	to_client "FPDUs for segments of 536, to the peer" 3 5000 --mss 536 --want-largest 500-530
	to_client "FPDUs for segments of 100, to the peer" 3 2000 --mss 100 --want-largest 128-130
}

rtr() {
	local kind
	for kind in send write read; do
		to_server "RTR by $kind from the peer" --p2p --prefer $kind
		to_server "RTR by $kind, nothing else offered" --p2p --rtr $kind
		to_client "RTR by $kind to the peer" 3 100 --rtr $kind --want-rtr $kind --want-p2p on
	done
	to_server "RTR by read without an ORD" --p2p --rtr read --ord 0 --ird 1 --size 16
	to_server "not peer-to-peer"
	to_server "revision 2, not enhanced" --plain
	to_server "revision 1" --rev 1
}

# More of the same, one octet at a time and large.
extremes() {
	to_server "every octet by itself" --segments 1 --size 300 --count 2
	to_client "every octet by itself, to the peer" 2 300 --segments 1
	to_server "64K" --size 65535 --segments 1-3000:7
	to_client "64K, to the peer" 3 65535 --segments 1-3000:7
	to_server "the least that rping can do" --size 16
	to_server "private data" --pdata 00112233445566778899
	to_client "private data, to the peer" 3 100 --pdata 00112233445566778899
	to_server "deep" --ird 128 --ord 128
	to_server "depths left to the ULPs" --ird 0x3fff --ord 0x3fff
}

depths() {
	to_client "the peer has an ORD of $1" 3 100 --ord "$1" --ird 7
}

one_crc() {
	to_server "only the peer asks for CRC" --crc on
	to_client "only the peer asks for CRC, to the peer" 3 5000 --crc on --want-crc off
	to_server "revision 1, only the peer asks for CRC" --crc on --rev 1 --size 5000
}

no_crc() {
	to_server "nobody asks for CRC, RTR by write" --crc off --p2p --prefer write
	to_client "nobody asks for CRC, 64K, to the peer" 3 65535 --crc off --segments 1-700:3
	to_server "nobody asks for CRC, announced" --crc off --p2p --announce --size 60000 "$LARGEST"
	to_client "nobody asks for CRC, announced, to the peer" 3 60000 --crc off --announce \
		--markers rx "$LARGEST"
	sizes 2 off
}

# FPDUs that are larger than segments, to peers that have announced that they take them. ULPDUs that
# fit into a segment have up to 1442 octets; those with CRCs are in FPDUs of up to 8 KiB.
SMALL="--want-largest 1400-1442" LARGE="--want-largest 8000-8186"
LARGEST="--want-largest 20000-64768"

large() {
	to_server "announced: large FPDUs" --p2p --announce --want-announced on --size 60000 "$LARGE"
	to_server "announced, in pieces" --p2p --announce --want-announced on --size 60000 \
		--fpdu 64768 --segments 1-3000:7 "$LARGE"
	to_server "announced, with markers" --p2p --announce --want-announced on --size 60000 \
		--markers rx "$LARGE"
	to_server "announced, in small segments" --p2p --announce --want-announced on --size 60000 \
		--mss 100 --fpdu 64768 "$LARGE"
	to_server "not announced" --p2p --want-announced off --size 60000 "$SMALL"
	to_server "not announced by an RTR by send" --p2p --prefer send --announce \
		--want-announced off --size 60000 "$SMALL"
	to_server "not announced without peer-to-peer" --want-announced off --size 60000 "$SMALL"
	to_client "announced to the peer" 3 60000 --want-announced on "$SMALL"
	to_client "announced to the peer and by it" 3 60000 --announce --want-announced on "$LARGE"
	to_client "announced by the peer, with markers" 3 60000 --announce --markers rx "$LARGE"
	to_client "announced by the peer without an RTR" 3 60000 --announce --plain --rev 1 \
		--only-rev-1 "$LARGE"
}

never_large() {
	to_server "segment: an announcement is ignored" --p2p --announce --want-announced off \
		--size 60000 "$SMALL"
	to_client "segment: nothing is announced" 3 60000 --announce --want-announced off "$SMALL"
}

always_large() {
	to_server "large: to a silent peer" --p2p --want-announced off --size 60000 "$LARGE"
	to_server "large: an announcement is answered" --p2p --announce --want-announced on \
		--size 60000 "$LARGE"
	to_client "large: from the first FPDU on" 3 60000 --want-announced on "$LARGE"
	to_client "large: revision 1" 3 60000 --only-rev-1 --rev 1 "$LARGE"
}

# Without peer-to-peer mode: the driver's consumer must send first.
rev_1() {
	sizes 1 on
	# RFC 6581 10: such a Request is malformed
	to_server "a Request of revision 2 is closed upon" --expect ended
}

rtr_only() {
	to_client "RTR by $1, all offered" 3 100 --want-rtr "$1"
	to_server "RTR by $1, all offered by the peer" --p2p --prefer "$1"
}

# RFC 6581 10: a peer that knows no revision 2 closes.
fallback() {
	to_client "a peer of revision 1 only" 3 5000 --only-rev-1 --rev 1 --want-rev 1
	to_client "a peer of revision 1 only, in pieces" 3 5000 --only-rev-1 --rev 1 --segments 1-7
}

{ load_kiwarp && topo_up 1500 && policy default; } || bail "no two hosts"
peer_cases < <(sizes 2 on; mss; rtr; extremes; depths 0; depths 128)
peer_cases < <(to_server "only the driver asks for CRC" --crc off --size 5000
	to_client "only the driver asks for CRC, to the peer" 3 5000 --crc off --want-crc on)
t_run "nothing is left" peer_left_nothing
peer_cases < <(large)
t_run "FPDUs fit into segments" policy fpdu=segment
peer_cases < <(never_large)
t_run "FPDUs are large" policy fpdu=large
peer_cases < <(always_large)
t_run "FPDUs as by default" policy default
t_run "the driver asks for no CRC" policy crc=n
peer_cases < <(one_crc; no_crc)
t_run "the driver speaks revision 1" policy mpa_rev=1
peer_cases < <(rev_1)
t_run "revision 1 without CRC" policy mpa_rev=1 crc=n
peer_cases < <(sizes 1 off)
for kind in write read send; do
	t_run "the driver sends RTR by $kind only" policy "rtr=$kind"
	peer_cases < <(rtr_only "$kind")
done
t_run "the driver prefers RTR by read" policy rtr=read,send,write
peer_cases < <(to_client "RTR by read, the best" 3 100 --want-rtr read
	to_client "RTR by send, the next" 3 100 --rtr send,write --want-rtr send)
t_run "the driver is not for peer-to-peer" policy p2p=n
peer_cases < <(to_client "no peer-to-peer" 3 100 --want-p2p off
	to_server "no peer-to-peer, from a peer that asks for it" --p2p)
t_run "the defaults" policy default
peer_cases < <(fallback)
t_run "nothing is left after that" peer_left_nothing
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
