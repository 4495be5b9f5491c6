#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# run.sh [bookworm|trixie]...: rdma-core's own tests against siw, kiwarp and kiwarp-ext in guests
# with the rdma-core of Debian 12 and of Debian 13. Fails if a test passes on siw but not on kiwarp,
# or if its result is not that of the list beside this file (expected-*.txt). PYVERBS_OUT gets the
# output of each test.

set -u
HERE=$(cd "$(dirname "$0")" && pwd)
OUT=${PYVERBS_OUT:-}
STATUS=0

if [ -z "$OUT" ]; then
	OUT=$(mktemp -d "${TMPDIR:-/tmp}/kiwarp-pyverbs.XXXXXX")
	trap 'rm -rf "$OUT"' EXIT
fi
[ $# -gt 0 ] || set -- bookworm trixie
for root in "$@"; do
	echo "== $root"
	KIW_ROOT=$root KIW_PYVERBS_ALL=1 "$HERE/../selftests/check" --kernel uml \
		--out "$OUT/$root" 400-pyverbs || STATUS=1
	grep -h -E '^(siw|kiwarp|kiwarp-ext|connected):' "$OUT/$root/uml/pyverbs.txt"
done
exit $STATUS
