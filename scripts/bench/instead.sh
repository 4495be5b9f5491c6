#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# instead.sh STACK tcp|rdma DIGESTS ROW...: runs in the guest. Sets up both ends of STACK (nfs, nvme
# or iscsi), which transfer data over the given transport, measures the ROWs with io.py, prints a
# line of JSON for each, and removes everything. DIGESTS is y or n; see stacks.sh. Both ends are in
# the initial network namespace, as some of these stacks know no other, with routes that use the
# cable (rc-ulp).
# shellcheck disable=SC2034 # variables are for stacks.sh

STACK=$1 TRANSPORT=$2 DIGESTS=$3
shift 3
# shellcheck source=scripts/bench/stacks.sh
. /host/job/stacks.sh

main() {
	local row
	_load "$KIW_LINK_TYPE" && ulp_topo_up && stack_up || return 1
	for row; do
		# shellcheck disable=SC2086 # options of fio
		on_a python3 /host/job/io.py "$TARGET" $row || return 1
	done
	stack_down && ulp_topo_down
}

exec 3>&1
main "$@" >"$T_DIR/log" 2>&1 3>&3 || { cat "$T_DIR/log" >&2; exit 1; }
