#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: what is on the wire, as tshark reads it
# TIMEOUT: 90
# CHECK-KERNELS: uml-debug
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/verbs.sh
. "$SELFTESTS/verbs.sh"
# shellcheck source=scripts/selftests/lib/perftest.sh
. "$SELFTESTS/perftest.sh"
# shellcheck source=scripts/selftests/lib/capture.sh
. "$SELFTESTS/capture.sh"

# decoded CRC: checks the capture; CRC is "crc" if all FPDUs must have valid CRCs.
decoded() {
	local -a counts
	mapfile -t counts < <(counts)
	python3 "$SELFTESTS/wire_check.py" "$1" "$PCAP" "${counts[@]}"
}

# One changed octet in any FPDU must be found.
corrupted_is_found() {
	python3 "$SELFTESTS/wire_check.py" corrupt "$PCAP" "$T_DIR/bad.pcap" || return 1
	must_fail python3 "$SELFTESTS/wire_check.py" crc "$T_DIR/bad.pcap" >"$T_DIR/bad" || return 1
	grep "bad CRC" "$T_DIR/bad"
}

no_crc() { echo N >"/sys/module/${KIW_LINK_TYPE%-ext}/parameters/crc" && rdma_up; }

session() {
	local name=$1 crc=$2
	t_run "$name: capture" capture
	t_run "$name: rping" rping_to b "$B4" -C 5 -S 5000
	verbs_between a b "$B4" "$name: " wire send_back write_wrong_rkey
	t_run "$name: capture ends" capture_end
	t_run "$name: tshark reads all of it" decoded "$crc"
}

command -v tshark >/dev/null || bail "the root image has no tshark"
{ load_kiwarp && topo_up 1500 && plain_netdevs && rdma_up; } || bail "no two hosts"
session "CRC" crc
t_run "a corrupted capture is found" corrupted_is_found
rdma_down
t_run "devices without CRC" no_crc
session "no CRC" nocrc

mtu() { ip -n a link set "$NETDEV" mtu "$1" && ip -n b link set "$NETDEV" mtu "$1"; }

with_markers() {
	local dev
	for dev in "$DEV_A" "$DEV_B"; do
		echo y >"/sys/class/infiniband/$dev/policy/markers" || return 1
	done
}

# A Write of many segments, for "wire_check.py aligned"
aligned() {
	local name=$1
	shift
	t_run "$name: capture" capture
	t_run "$name: Writes" perf b ib_write_bw "$B4" 50 -s 65536
	t_run "$name: capture ends" capture_end
	t_run "$name: segments begin with FPDUs" python3 "$SELFTESTS/wire_check.py" aligned \
		"$PCAP" "$@"
}

# fpdus segment|large
fpdus() {
	local dev
	for dev in "$DEV_A" "$DEV_B"; do
		echo "$1" >"/sys/class/infiniband/$dev/policy/fpdu" || return 1
	done
}

# With this MTU a segment ends in a marker now and then, which is not of the FPDU before it.
t_run "MTU 1496" mtu 1496
t_run "FPDUs fit into segments" fpdus segment
aligned "plain"
# The length of an FPDU is a multiple of four, that of such a segment is not.
t_run "MTU 1497" mtu 1497
aligned "odd segments"
t_run "MTU 1496 again" mtu 1496
t_run "markers on" with_markers
aligned "markers" markers
rdma_down
# Messages whose last octets do not fit into a batch, but into one of these segments
with_crc() {
	mtu 65535 && echo Y >"/sys/module/${KIW_LINK_TYPE%-ext}/parameters/crc" && rdma_up &&
		fpdus large
}
t_run "MTU 65535, with CRC" with_crc
t_run "large FPDUs: capture" capture
t_run "large FPDUs: Writes" perf b ib_write_bw "$B4" 20 -s 100000
t_run "large FPDUs: capture ends" capture_end
t_run "large FPDUs: 8 KiB at most" python3 "$SELFTESTS/wire_check.py" largest "$PCAP" 8192
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
