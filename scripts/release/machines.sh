#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# make check-machines: runs tests on Debian's kernels for x86-64, arm64 and s390x (big endian), under
# emulation, and prints a table: for each test how many of its cases passed.
#
# machines.sh [--out DIR] [--tests "TEST..."] [KERNEL...]: these kernels only, as in vm/kernel.sh;
# other tests. --out DIR: keeps what the guests left. Fails if a case failed, or if a test that is
# for a kernel did not run there.

set -u
# shellcheck source=scripts/vm/lib.sh
. "$(dirname "$0")/../vm/lib.sh"

KERNELS=(6.1 6.12 7.2 7.3 6.1-arm64 6.12-arm64 7.3-arm64 6.1-s390x 6.12-s390x 7.3-s390x)
# The link, rping, verbs, connections, the wire peer, a kernel consumer, NFS
TESTS=(010 100 120 130 200 300 310)
WORK=
OUT=

# cell OUTPUT KERNEL TEST: of the line that check printed about it
cell() {
	awk -v kernel="$2" -v test="$3-" '$1 == kernel && index($2, test) == 1 && $5 == "passed," {
		print $4 "/" $4 + $6 + $8 ($6 ? "!" : ""); found = 1; exit
	} END { if (!found) print "-" }' "$1"
}

# row KERNEL
row() {
	local kernel=$1 rc=0 k K_RELEASE=none test
	printf '%-11s ' "$kernel"
	if ! k=$("$KIW_VM/kernel.sh" "$kernel"); then
		echo "no such kernel"
		return 1
	fi
	# shellcheck source=/dev/null
	. "$k/info"
	printf '%-24s' "$K_RELEASE"
	"$KIW_TOP/scripts/selftests/check" --kernel "$kernel" --out "$OUT/$kernel" "${TESTS[@]}" \
		>"$OUT/$kernel.log" 2>&1 || rc=1
	for test in "${TESTS[@]}"; do printf ' %8s' "$(cell "$OUT/$kernel.log" "$kernel" "$test")"; done
	echo
	return "$rc"
}

main() {
	local kernel failed=0 only=()
	while [ $# -gt 0 ]; do
		case $1 in
		--out) OUT=${2:?--out needs a directory}; shift ;;
		--tests) read -ra TESTS <<<"${2:?}"; shift ;;
		-*) die "usage: machines.sh [--out DIR] [--tests TESTS] [KERNEL...]" ;;
		*) only+=("$1") ;;
		esac
		shift
	done
	[ "${#only[@]}" = 0 ] || KERNELS=("${only[@]}")
	WORK=$(mktemp -d "${TMPDIR:-/tmp}/kiwarp-machines.XXXXXX")
	trap 'rm -rf "$WORK"' EXIT
	OUT=${OUT:-$WORK}
	mkdir -p "$OUT"
	printf '%-11s %-24s' kernel release
	printf ' %8s' "${TESTS[@]}"
	echo
	for kernel in "${KERNELS[@]}"; do
		row "$kernel" || failed=$((failed + 1))
	done
	echo "$failed of these are not as they should be"
	[ "$failed" = 0 ]
}

main "$@"
