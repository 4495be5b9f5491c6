#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: where there is no memory, calls fail in order and traffic goes on
# TIMEOUT: 120
# KERNELS: uml-debug
# DMESG-ALLOW: restrack_.*\[ib_core\]|ref_tracker: memory allocation failure
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/verbs.sh
. "$SELFTESTS/verbs.sh"

# What is allowed: a line of the stacks that the kernel shows when vmalloc() finds no memory, and
# what it says when the tracker of a netdev's references finds none.

FAILSLAB=/sys/kernel/debug/failslab
FAILPAGE=/sys/kernel/debug/fail_page_alloc

# set_all FILE VALUE: sets FILE for both kinds of allocations.
set_all() { echo "$2" >"$FAILSLAB/$1" && echo "$2" >"$FAILPAGE/$1"; }

settings() {
	set_all verbose 0 && set_all ignore-gfp-wait 0 &&
		echo 0 >"$FAILPAGE/min-order" && echo 0 >"$FAILPAGE/ignore-gfp-highmem"
}

# failing STEP PART...: every STEPth allocation fails in turn; in a soak, every one. For work items,
# STEP stays: they have too many.
failing() {
	local step=$1
	shift
	[ -z "${KIW_SOAK:-}" ] || [ "$1" = work ] || step=1
	KIW_STEP=$step "$PROGRAMS/failing" "$@"
}

is_old() { [ "$SECONDS" -gt $(($1 + 6)) ]; }

# The objects of the other link type, which has more
ext_objects() {
	local status=0
	rdma_down
	KIW_LINK_TYPE=kiwarp-ext rdma_up && KIW_LINK_TYPE=kiwarp-ext failing 2 verbs || status=1
	rdma_down
	rdma_up && return "$status"
}

# leaks [ALLOWED]: checks for leaks. kmemleak reports none that is younger than 5 s. Clears allowed
# leaks, because the check of the next test would find them.
leaks() {
	local since=$SECONDS
	[ -w "$KMEMLEAK" ] && wait_for 10 is_old "$since" && kmemleak_check "${1:-}" &&
		echo clear >"$KMEMLEAK"
}

# Atomic allocations of all callers fail; TCP retransmits.
traffic() {
	set_all ignore-gfp-wait 1 && set_all times -1 && "$PROGRAMS/failing" traffic
}

# Messages are in flight for a while, and hold the pages that they were written to.
slow_link() {
	local host
	for host in a b; do
		tc -n "$host" qdisc "$@" || return 1
	done
}

# Slabs of a kernel with KASAN have fewer objects. If more pages were short there, TCP would lose so
# many packets that a message takes minutes.
SHORT=90
case $KIW_KERNEL in uml-debug | uml-smp) SHORT=50 ;; esac

# pages_are_short SECONDS: SHORT percent of all atomic allocations of pages fail, so that messages of
# all kinds wait for memory.
pages_are_short() {
	local status=0 many=1000000 left tries
	slow_link add dev "$NETDEV" root netem delay 2ms limit 10000 || return 1
	set_all ignore-gfp-wait 1 && echo "$many" >"$FAILPAGE/times" || status=1
	for ((left = many, tries = 0; left >= many - 100 && tries < 10; tries++)); do
		KIW_FAILING=$SHORT KIW_FAILING_FILE=$FAILPAGE/probability "$PROGRAMS/storm" 8 "$1" || status=1
		echo 0 >"$FAILPAGE/probability"
		left=$(<"$FAILPAGE/times")
	done
	echo "$((many - left)) pages were refused"
	[ "$left" -lt $((many - 100)) ] || status=1
	slow_link del dev "$NETDEV" root && set_all times -1 && return "$status"
}

# The kinds of messages that only the other link type has
pages_are_short_ext() {
	local status=0
	rdma_down
	KIW_LINK_TYPE=kiwarp-ext rdma_up && pages_are_short 2 || status=1
	rdma_down
	rdma_up && return "$status"
}

startup_is() {
	local dev
	for dev in "$DEV_A" "$DEV_B"; do
		echo "$1" >"/sys/class/infiniband/$dev/policy/startup_ms" || return 1
	done
}

# queues_of_the_kernel: the case itself lets allocations fail.
queues_of_the_kernel() {
	local ktest=/sys/kernel/debug/kiwarp_ktest
	{ echo "8 9 no-memory" >"$ktest/run"; } 8</run/netns/a 9</run/netns/b && return
	cat "$ktest/log"
	return 1
}

# work_items CASE: iw_cm ignores a request that it has no memory for, so that its caller has to
# wait for the end of the startup. In some runs the QP of a caller whose Request was accepted has no
# memory for its queues. What is left of a failure is undone for what follows.
work_items() {
	local status=0 before disagreed
	before=$(cat "/sys/class/infiniband/$DEV_A/policy/startup_ms")
	disagreed=$(counter "$DEV_A" conn_disagreed)
	startup_is $((1000 * KIW_SLOW)) && failing 16 work "$1" || status=1
	[ "$(counter "$DEV_A" conn_disagreed)" -gt "$disagreed" ] ||
		{ echo "conn_disagreed stays $disagreed"; status=1; }
	echo 0 >"$FAILSLAB/probability"
	echo N >"$FAILSLAB/task-filter"
	echo -1 >"$FAILSLAB/times"
	startup_is "$before" && nothing_left "$DEV_A" "$DEV_B" && return "$status"
}

# only_of CACHE TIMES: there is nothing in that slab cache, TIMES times (-1: until it is said
# otherwise), whoever asks; any_of CACHE says otherwise.
only_of() {
	echo 1 >"/sys/kernel/slab/$1/failslab" && echo Y >"$FAILSLAB/cache-filter" &&
		echo "$2" >"$FAILSLAB/times" && echo 100 >"$FAILSLAB/probability"
}
any_of() {
	# That takes memory, too.
	until echo 0 >"$FAILSLAB/probability"; do _pause || return; done
	echo N >"$FAILSLAB/cache-filter"
	echo 0 >"/sys/kernel/slab/$1/failslab"
}

# Of what a listener needs for a caller: the stream, which is charged to a cgroup, and larger with
# lockdep. Nothing else is asked for between the lines of the caller, which starts no process.
STREAM_CACHE=kmalloc-cg-192
[ ! -e /proc/lockdep_chains ] || STREAM_CACHE=kmalloc-cg-512
caller() {
	# shellcheck disable=SC2016 # for the inner shell to expand
	on_a bash -c "$(declare -f only_of); FAILSLAB=$FAILSLAB"'
		only_of "$1" 3 || exit 1
		exec 7<>/dev/tcp/'"$B4"'/7174 &&
			printf "MPA ID Req Frame\x40\x01\0\0" >&7 && read -r -t 20 -N 16 reply <&7
		left=$(<"$FAILSLAB/times")
		echo "reply: $reply; left to fail: $left"
		[ "$reply" = "MPA ID Rep Frame" ] && [ "$left" -lt 3 ]' caller "$STREAM_CACHE"
}

# A connection attempt is not lost if memory is short for a moment.
callers_wait() {
	local status
	spawn server b rping -s -a "$B4" && wait_listen b 7174 || return 1
	caller
	status=$?
	any_of "$STREAM_CACHE"
	spawn_stop server
	return "$status"
}

# On both hosts, because it is random which one has something to send.
tries() { echo $(($(counter "$DEV_A" tx_blocked) + $(counter "$DEV_B" tx_blocked))); }
_tries_beyond() { [ "$(tries)" -gt "$1" ]; }
pings() { grep -c '^ping data' "$T_DIR/client.log"; }
_pings_beyond() { [ "$(pings)" -gt "$1" ]; }

# TCP has nothing in flight and no memory to send more: the driver tries again at intervals, not all
# the time.
tries_again() {
	local before begin rate status=1 cache=skbuff_fclone_cache
	spawn server b rping -s -a "$B4" && wait_listen b 7174 &&
		spawn client a stdbuf -oL rping -c -v -a "$B4" &&
		wait_for 10 _pings_beyond 10 && only_of "$cache" -1 || return 1
	rate=0
	before=$(tries)
	if wait_for 10 _tries_beyond "$before"; then
		before=$(tries) begin=${EPOCHREALTIME/./}
		wait_for 10 _tries_beyond $((before + 20))
		rate=$((($(tries) - before) * 1000000 / (${EPOCHREALTIME/./} - begin)))
		[ "$rate" -gt 0 ] && [ "$rate" -lt 2000 ] && status=0
	fi
	echo "$(pings) pings, then $rate tries per second"
	any_of "$cache"
	wait_for 10 _pings_beyond "$(pings)" || status=1
	spawn_stop client
	spawn_stop server
	return "$status"
}

{ load_kiwarp && load_module kiwarp_ip && topo_up 1500 && rdma_up && modprobe kiwarp_ktest; } ||
	bail "no two hosts"
t_run "settings" settings
t_run "objects of a process" failing 2 verbs
t_run "objects of a process on kiwarp-ext" ext_objects
t_run "accepting" failing 1 accept
t_run "connections" failing 7 connect
t_run "kernel consumer" failing 17 kernel
t_run "queues of the kernel consumer" queues_of_the_kernel
t_run "interfaces of kiwarp_ip" failing 11 ip
t_run "work items" work_items once
t_run "callers wait for memory" callers_wait
verbs_cases request_unheard reply_unheard rejection_unheard stream_unwanted nothing_left
t_run "what cannot be sent is tried again after a while" tries_again
t_run "traffic" traffic
t_run "pages are short" pages_are_short 2
t_run "pages are short on kiwarp-ext" pages_are_short_ext
t_run "unload the consumer" modprobe -r kiwarp_ktest
rdma_down
t_run "unload kiwarp_ip" unload_module kiwarp_ip
t_run "unload" unload_kiwarp
t_run "leaks" leaks

# Separately, because ib_uverbs loses something then: the nodes of its tree of methods that it was
# adding when it ran out of memory (kernel-faults.rst). It has no memory for the node below them,
# so none of them is a leaf: the first octet, the shift, is not 0. Of an xarray that loses an entry,
# such as those of the driver, a leaf is lost, too.
NODES='^[^\n]*[(]size 576[)][^\n]*\n[^\n]*\n[^\n]*\n *(0[1-9a-f]|[1-9a-f][0-9a-f]) '
{ load_kiwarp && rdma_up && settings; } || bail "no devices"
ip -n b link add dummyx type dummy || bail "no dummy"
t_run "devices" failing 151 link
ip -n b link del dummyx
rdma_down
topo_down
t_run "unload after devices" unload_kiwarp
t_run "leaks of devices" leaks "$NODES"
done_testing
