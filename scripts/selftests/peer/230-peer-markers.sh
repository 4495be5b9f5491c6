#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: markers in each direction, with an independent peer; the RDMA Consortium's revision
# TIMEOUT: 300
# KERNELS: uml
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/peer.sh
. "$SELFTESTS/peer.sh"

WITHIN="--within $((3 * ${KIW_SLOW:-1}))"

# matrix REV CRC MARKERS: of FPDU sizes and segments in both roles; a diagonal of it, or all
# of it with KIW_ALL.
matrix() {
	local fpdu segments what name
	for what in "128 1-7:3" "1444 1-700:5" "64768 whole" "128 whole" "128 1-700:5" \
		"1444 whole" "1444 1-7:3" "64768 1-7:3" "64768 1-700:5"; do
		read -r fpdu segments <<<"$what"
		name="rev $1, CRC $2, markers $3, FPDUs of $fpdu, segments $segments"
		to_server "$name, from the peer" --rev "$1" --crc "$2" --markers "$3" \
			--fpdu "$fpdu" --segments "$segments" --size 5000
		to_client "$name, to the peer" 3 5000 --want-rev "$1" --crc "$2" --markers "$3" \
			--fpdu "$fpdu" --segments "$segments"
		[ -n "${KIW_ALL:-}" ] || [ "$what" != "64768 whole" ] || return 0
	done
}

# With the smallest and largest segments, and long enough to pass every place.
lengths() {
	to_server "64K, $1" --markers "$1" --size 65535 --segments 1-3000:7
	to_client "64K, $1, to the peer" 3 65535 --markers "$1"
	to_server "segments of 100, $1" --markers "$1" --size 5000 --mss 100
	to_server "64K in FPDUs of 128, $1" --markers "$1" --size 65535 --fpdu 128 --count 2
	to_client "segments of 536, $1, to the peer" 3 5000 --markers "$1" --mss 536
	to_server "every octet by itself, $1" --markers "$1" --size 600 --segments 1 --count 1
}

# FPDUs of every length modulo the interval: markers at each place of an FPDU.
places() {
	local size
	for ((size = 1024; size < 1536; size += 61)); do
		to_server "pings of $size, $1" --markers "$1" --size $size --count 5
		to_client "pings of $size, $1, to the peer" 5 $size --markers "$1"
	done
}

# What is wrong with a marker is told before anything else; where one is missing, what
# stands there may be a bad CRC as well.
faults() {
	local name
	for name in pointer zero between; do
		to_server "marker-$name" --markers tx --fault marker-$name --expect term:2/0/03 \
			"$WITHIN"
		to_client "marker-$name, to the peer" 1 64 --markers tx --fault marker-$name \
			--expect term:2/0/03 "$WITHIN"
	done
	# RFC 5044 4.2: ignored. rping takes the message, asks for data and waits for it.
	to_server "marker-reserved" --markers tx --fault marker-reserved --expect timeout "$WITHIN"
	for name in position none; do
		to_server "marker-$name" --markers tx --fault marker-$name \
			--expect term:2/0/03,term:2/0/02 "$WITHIN"
	done
	to_victim "marker-later" long --markers tx --fault marker-later --expect term:2/0/03 "$WITHIN"
	to_victim "crc-later, with markers" plain --markers tx --fault crc-later \
		--expect term:2/0/02 "$WITHIN"
	to_server "bad CRC, with markers" --markers tx --fault crc-payload --expect term:2/0/02
	to_server "bad length, with markers" --markers both --fault length-13 --expect term:2/0/03
	to_server "bad STag, with markers" --markers both --fault write-stag --expect term:1/1/00
}

# RFC 5044 appendix C: a peer of revision 0, which knows markers and CRCs only. After an
# enhanced Request it would hand the depths to its ULP, so there is another one.
rdma_consortium() {
	local fpdu segments name
	for fpdu in 128 1444 64768; do
		for segments in whole 1-7:3 1-700:5; do
			name="revision 0, FPDUs of $fpdu, segments $segments"
			to_server "$name, from the peer" --rev 0 --size 5000 --fpdu $fpdu \
				--segments $segments
			to_client "$name, to the peer" 3 5000 --rev 0 --only-rev-1 --fpdu $fpdu \
				--segments $segments
		done
	done
	to_client "revision 0 in answer to revision 2" 3 5000 --rev 0 --only-rev-1 --mistake \
		--want-rev 1
	to_client "a rejection of revision 0 in answer to revision 2" 1 64 --rev 0 --reject \
		--expect ended --status fail "$WITHIN"
	to_server "revision 0, bad version" --rev 0 --fault ddp-version-3 --expect term:1/2/06
	to_server "revision 0, the IETF's version" --rev 0 --fault ddp-version-1 \
		--expect term:1/2/06
}

# round REV [NAME=VALUE...]: with and without markers of the peer.
round() {
	local rev=$1 crc
	shift
	for crc in y n; do
		t_run "policy mpa_rev=$rev crc=$crc $*" policy "mpa_rev=$rev" "crc=$crc" "$@"
		[ $crc = y ] && crc=on || crc=off
		if [ $# = 0 ]; then
			peer_cases < <(matrix "$rev" $crc rx)
		else
			peer_cases < <(matrix "$rev" $crc tx; matrix "$rev" $crc both)
		fi
	done
}

all_markers() {
	round 2
	round 1
	t_run "the defaults" policy default
	peer_cases < <(lengths rx; places rx)
	round 2 markers=y
	round 1 markers=y
	t_run "the driver asks for markers" policy markers=y
	peer_cases < <(lengths both; places both; faults)
}

{ load_kiwarp && topo_up 1500 && policy default; } || bail "no two hosts"
all_markers
t_run "the driver is not permissive" policy default
peer_cases < <(to_server "revision 0 is refused" --rev 0 --expect reject "$WITHIN"
	to_client "revision 0 is refused by the initiator" 1 64 --rev 0 --only-rev-1 \
		--expect ended --status fail "$WITHIN")
t_run "the driver is permissive" policy rdmac=y
peer_cases < <(rdma_consortium)
t_run "nothing is left" peer_left_nothing
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
