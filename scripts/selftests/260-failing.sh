#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: where there is no memory, calls fail in order and traffic goes on
# TIMEOUT: 60
# KERNELS: uml-debug
# DMESG-ALLOW: restrack_.*\[ib_core\]
# shellcheck source=scripts/selftests/rc
. "$(dirname "$0")/rc"

# What is allowed: a line of the stacks that the kernel shows when vmalloc() finds no memory; what
# leaks() below looks at.

FAILSLAB=/sys/kernel/debug/failslab
FAILPAGE=/sys/kernel/debug/fail_page_alloc

# set_all FILE VALUE: of both kinds of allocations.
set_all() { echo "$2" >"$FAILSLAB/$1" && echo "$2" >"$FAILPAGE/$1"; }

settings() {
	set_all verbose 0 && set_all ignore-gfp-wait 0 &&
		echo 0 >"$FAILPAGE/min-order" && echo 0 >"$FAILPAGE/ignore-gfp-highmem"
}

# failing STEP PART...: every so-manieth allocation; all when there is time.
failing() {
	local step=$1
	shift
	[ -z "${KIW_SOAK:-}" ] || step=1
	KIW_STEP=$step "$PROGRAMS/failing" "$@"
}

links() {
	failing 151 link || return 1
	LINKS_END=$SECONDS
}

is_old() { [ "$SECONDS" -gt $((LINKS_END + 6)) ]; }

# ib_uverbs does not free the nodes of its tree of methods that it was adding when it ran out of
# memory. Nothing else may be left, so look, and forget those. kmemleak says nothing of what is
# younger than 5 s.
leaks() {
	[ -w "$KMEMLEAK" ] && wait_for 10 is_old || return 1
	echo scan >"$KMEMLEAK" && _pause 1
	echo scan >"$KMEMLEAK"
	if grep '^unreferenced' "$KMEMLEAK" | grep -v '(size 576)'; then return 1; fi
	echo clear >"$KMEMLEAK"
}

# Of what cannot wait, whoever asks for it; TCP sends again.
traffic() {
	set_all ignore-gfp-wait 1 && set_all times -1 && "$PROGRAMS/failing" traffic
}

{ load_kiwarp && topo_up 1500 && rdma_up && modprobe kiwarp_ktest; } || bail "no two hosts"
ip -n b link add dummyx type dummy || bail "no dummy"
LINKS_END=$SECONDS
t_run "settings" settings
t_run "devices" links
t_run "objects of a process" failing 2 verbs
t_run "connections" failing 7 connect
t_run "kernel consumer" failing 17 kernel
t_run "traffic" traffic
ip -n b link del dummyx
t_run "unload the consumer" modprobe -r kiwarp_ktest
rdma_down
topo_down
t_run "unload" unload_kiwarp
t_run "leaks" leaks
done_testing
