#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: the port counters and names that monitoring programs read in sysfs
# TIMEOUT: 60
# CHECK-KERNELS: uml-debug
# shellcheck disable=SC2086,SC2119,SC2317 # words; no arguments meant; t_run calls them
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"

SYS=/sys/class/infiniband

# For each file: the counters that it adds up, and its unit in bytes.
FILES="port_xmit_data:tx_bytes:4 port_rcv_data:rx_bytes:4
	port_xmit_packets:tx_fpdus:1 port_rcv_packets:rx_fpdus:1
	unicast_xmit_packets:tx_fpdus:1 unicast_rcv_packets:rx_fpdus:1
	port_xmit_discards:tx_discarded:1
	port_rcv_errors:rx_crc_errors+rx_mpa_errors+rx_ddp_errors+rx_rdmap_errors:1"

# value DEV SUM: prints a sum of counters of `rdma statistic`, which caches values for 10 ms.
value() {
	_pause
	rdma statistic show link "$1/1" | awk -v names="+$2+" '{
		for (i = 3; i < NF; i += 2)
			if (index(names, "+" $i "+"))
				sum += $(i + 1)
	} END { printf "%d\n", sum }'
}

# agrees DEV NAME SUM UNIT
agrees() {
	local shown wanted
	wanted=$(($(value "$1" "$3") / $4))
	read -r shown <"$SYS/$1/ports/1/counters/$2" || return 1
	[ "$shown" = "$wanted" ] || { echo "$1 $2 is $shown, $3 / $4 is $wanted"; return 1; }
}

# all_agree: all FILES agree with the counters on both devices, and there are no other files.
all_agree() {
	local dev file name sum unit bad=0
	for dev in "$DEV_A" "$DEV_B"; do
		for file in $FILES; do
			IFS=: read -r name sum unit <<<"$file"
			agrees "$dev" "$name" "$sum" "$unit" || bad=1
		done
		diff <(ls "$SYS/$dev/ports/1/counters") \
			<(printf '%s\n' $FILES | cut -d: -f1 | sort) || bad=1
	done
	return "$bad"
}

# counter DEV NAME
counter() { cat "$SYS/$1/ports/1/counters/$2"; }

# is_counter DEV NAME VALUE
is_counter() { [ "$(counter "$1" "$2")" = "$3" ]; }

# A Read and a Write of 4000 bytes each: a thousand units either way, and some for the Sends.
data_counted() {
	local xmit rcv
	xmit=$(counter "$DEV_A" port_xmit_data) rcv=$(counter "$DEV_B" port_rcv_data)
	rping_to b "$B4" -C 10 -S 4000 || return 1
	xmit=$(($(counter "$DEV_A" port_xmit_data) - xmit))
	rcv=$(($(counter "$DEV_B" port_rcv_data) - rcv))
	echo "sent $xmit, received $rcv units"
	[ "$xmit" -ge 10000 ] && [ "$xmit" -lt 10500 ] && [ "$rcv" = "$xmit" ] && all_agree
}

# A Write to memory that was never registered, and an undefined opcode: one FPDU in error each.
errors_counted() {
	local before what
	before=$(counter "$DEV_A" port_rcv_errors)
	spawn server a rping -s -a "$A4" -P && wait_listen a 7174 || return 1
	for what in write_stag opcode; do
		on_b timeout 60 python3 "$SELFTESTS/peer.py" "$A4" 7174 "$what"
	done
	wait_for 5 is_counter "$DEV_A" port_rcv_errors $((before + 2))
	spawn_stop server
	is_counter "$DEV_A" port_rcv_errors $((before + 2)) && all_agree
}

# node_exporter of Debian 12 gives up on all devices if it cannot read these files of each.
names_there() {
	local dev file
	for dev in "$DEV_A" "$DEV_B"; do
		for file in fw_ver board_id hca_type ports/1/state ports/1/phys_state ports/1/rate; do
			grep -q . "$SYS/$dev/$file" || { echo "$dev has no $file"; return 1; }
		done
		[ "$(cat "$SYS/$dev/board_id")" = kiwarp ] || return 1
	done
}

# The sample that prints counters for node_exporter prints all of them, of both devices.
sample() {
	local dev name
	/host/packaging/samples/metrics.py >"$T_DIR/metrics" || return 1
	for dev in "$DEV_A" "$DEV_B"; do
		for name in tx_bytes conn_established wc_flushed; do
			grep -x "rdma_$name{device=\"$dev\",port=\"1\"} $(value "$dev" $name)" "$T_DIR/metrics" ||
				{ grep "$name" "$T_DIR/metrics"; return 1; }
		done
	done
	diff <(sed -n 's/^# TYPE rdma_\(.*\) counter$/\1/p' "$T_DIR/metrics" | sort) \
		<(find "$SYS/$DEV_A/ports/1/hw_counters/" -type f ! -name lifespan -printf '%f\n' | sort)
}

# readers: reads all files
readers() {
	local n
	for ((n = 0; n < 20; n++)); do
		cat $SYS/*/ports/1/counters/* $SYS/*/board_id
	done >/dev/null 2>&1
	return 0
}

while_going() {
	local n reader
	readers &
	reader=$!
	for ((n = 0; n < 5; n++)); do
		if ! rdma_del a || ! rdma_add a; then break; fi
	done
	wait "$reader"
	[ "$n" = 5 ] && wait_for 5 rdma_is_active a && all_agree
}

load_kiwarp || bail "no module"
topo_up || bail "no network"
rdma_up || bail "no devices"
t_run "files of a new device" all_agree
t_run "the files that identify a device" names_there
t_run "data in units of four bytes" data_counted
t_run "errors" errors_counted
t_run "the sample for node_exporter" sample
t_run "readers while a device goes" while_going
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
