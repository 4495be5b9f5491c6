#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: rdma-core's own tests, on siw, kiwarp and kiwarp-ext
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
LIST=/host/pyverbs/expected-$CODENAME

# The suite's two ends have one address: what they say to each other goes over loopback.
netdev() {
	ip link add pv0 type veth peer name pv1 &&
		ip addr add 10.79.0.1/24 dev pv0 && ip link set pv1 up && ip link set pv0 up
}

active() { rdma link show "$1/1" | grep -q 'state ACTIVE'; }

# suite TYPE NAME LIST [--connect]: on a device of that type, with nothing else beside it; the
# results get that name.
suite() {
	local type=$1 name=$2 list=$3
	shift 3
	rdma link add pv type "$type" netdev pv0 && wait_for 10 active pv || return 1
	python3 /host/pyverbs/suite.py pv pv0 "$list" "/out/pyverbs-$name.txt" "${HOW[@]}" "$@" ||
		return 1
	rdma link delete pv
}

# compare LIST NAME...: the results of these names, of which the last are kiwarp's
compare() {
	local list=$1 name
	local -a files=()
	shift
	for name; do files+=("/out/pyverbs-$name.txt"); done
	python3 /host/pyverbs/expected.py "$list" "${files[@]}" "${HOW[@]}" >"$T_DIR/compared"
	set -- "$?" "$name"
	cat "$T_DIR/compared"
	sed "s/^kiwarp:/$2:/" "$T_DIR/compared" >>/out/pyverbs.txt
	return "$1"
}

{ load_kiwarp && load_module siw && netdev; } || bail "no devices"
for link in siw kiwarp; do
	t_run "the suite ends on $link" suite $link $link "$LIST.txt"
done
t_run "all passes on kiwarp that passes on siw; nothing that is not listed" \
	compare "$LIST.txt" siw kiwarp
t_run "the suite ends on kiwarp-ext" suite kiwarp-ext kiwarp-ext "$LIST-ext.txt"
t_run "nothing on kiwarp-ext that is not listed" compare "$LIST-ext.txt" kiwarp-ext
t_run "the suite ends on kiwarp-ext, connected" \
	suite kiwarp-ext connected "$LIST-connected.txt" --connect
t_run "nothing on kiwarp-ext, connected, that is not listed" \
	compare "$LIST-connected.txt" connected
ip link del pv0
for link in siw kiwarp; do
	t_run "unload $link" unload_module $link
done
done_testing
