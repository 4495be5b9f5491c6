#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: rdma-core's own tests, on siw and on kiwarp
# TIMEOUT: 300
# KERNELS: uml
#
# Here without those that take longest; `make pyverbs` runs all, also with the rdma-core of
# Debian 13. Not where lockdep watches: see 140-siw.sh.
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"

HOW=()
[ -n "${KIW_PYVERBS_ALL:-}" ] || HOW=(--quick)
CODENAME=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
LIST=/host/pyverbs/expected-$CODENAME.txt
LINKS=(siw kiwarp)

# The suite's two ends have one address: what they say to each other goes over loopback.
netdev() {
	ip link add pv0 type veth peer name pv1 &&
		ip addr add 10.79.0.1/24 dev pv0 && ip link set pv1 up && ip link set pv0 up
}

active() { rdma link show "$1/1" | grep -q 'state ACTIVE'; }

# suite TYPE: on a device of that type, with nothing else beside it.
suite() {
	rdma link add "pv$1" type "$1" netdev pv0 && wait_for 10 active "pv$1" || return 1
	python3 /host/pyverbs/suite.py "pv$1" pv0 "$LIST" "/out/pyverbs-$1.txt" "${HOW[@]}" || return 1
	rdma link delete "pv$1"
}

compare() {
	python3 /host/pyverbs/expected.py "$LIST" /out/pyverbs-{siw,kiwarp}.txt "${HOW[@]}" |
		tee /out/pyverbs.txt
	return "${PIPESTATUS[0]}"
}

{ load_kiwarp && load_module siw && netdev; } || bail "no devices"
for link in "${LINKS[@]}"; do
	t_run "the suite ends on $link" suite "$link"
done
t_run "all passes on kiwarp that passes on siw; nothing that is not listed" compare
ip link del pv0
for link in "${LINKS[@]}"; do
	t_run "unload $link" unload_module "$link"
done
done_testing
