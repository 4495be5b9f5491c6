#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: connections: refusal, rejection, private data, depths, many, hostile peers
# TIMEOUT: 100
# CHECK-KERNELS: uml-debug
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/verbs.sh
. "$SELFTESTS/verbs.sh"

PARAMETERS=/sys/module/${KIW_LINK_TYPE%-ext}/parameters

# Devices take a copy of the parameters when they are added.
with_parameters() {
	echo $((1000 * ${KIW_SLOW:-1})) >"$PARAMETERS/startup_ms" && echo 4 >"$PARAMETERS/max_half_open" && rdma_up
}

no_objects() {
	local kind
	for kind in qp cq mr cm_id; do
		! rdma resource show "$kind" | grep -w pid || return 1
	done
}

# --- two listeners -------------------------------------------------------------------

PORT=7020
OTHER_PORT=7021

unanswered() { spawn "$1" "$2" env PYTHONDONTWRITEBYTECODE=1 python3 "$SELFTESTS/unanswered.py" "${@:3}"; }
says() { wait_for "${3:-10}" grep -q "$2" "$T_DIR/$1.log" || { spawn_log "$1"; return 1; }; }

# One listener gets many more connections than may be unanswered, while a Request waits at another.
flood_of_another() {
	local status=0
	echo 60000 >"/sys/class/infiniband/$DEV_B/policy/startup_ms" || return 1
	unanswered slow b answer "$DEV_B" "$B4" "$PORT" "$T_DIR/answer" && says slow listens &&
		unanswered mute b ignore "$DEV_B" "$B4" "$OTHER_PORT" && says mute listens &&
		unanswered caller a call "$B4" "$PORT" 1 && says slow asked &&
		unanswered flood a call "$B4" "$OTHER_PORT" 50 && says flood called 20 || status=1
	says flood reset || status=1
	: >"$T_DIR/answer"
	says slow accepted || status=1
	says caller 'replied 1' || status=1
	spawn_stop flood
	spawn_stop caller
	spawn_stop mute
	spawn_stop slow
	return "$status"
}

{ load_kiwarp && topo_up 1500 && rdma_up; } || bail "no two hosts"
verbs_cases nobody private_data reject read_depths backlog two_hundred ports_in_use one_port \
	route_lost address_lost peer_garbage peer_closes answered_too_late callers_garbage \
	callers_reset accepted_in_vain qp_in_use nothing_left
verbs_between a b "$B6" "over IPv6: " route_lost peer_closes nothing_left
t_run "no objects are left" no_objects
rdma_down
t_run "a short deadline" with_parameters
verbs_cases peer_silent never_answered callers_many answered_twice nothing_left
t_run "no objects are left" no_objects
rdma_down
echo 64 >"$PARAMETERS/max_half_open"
t_run "room for silent callers" rdma_up
verbs_cases callers_silent nothing_left
rdma_down
echo 10000 >"$PARAMETERS/startup_ms"
echo 8 >"$PARAMETERS/max_half_open_total"
t_run "room for few that are not answered" rdma_up
verbs_cases callers_unanswered nothing_left
t_run "a Request, and a flood of Requests to another listener" flood_of_another
rdma_down
echo 4096 >"$PARAMETERS/max_half_open_total"
echo N >"$PARAMETERS/p2p"
t_run "no peer-to-peer mode" rdma_up
verbs_cases silent_until_spoken_to nothing_left
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
