#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# run.sh [bookworm|trixie]...: rdma-core's own tests against siw and kiwarp in guests with
# the rdma-core of Debian 12 and of Debian 13. Fails when a test passes on siw and not on
# kiwarp, or does not end as the list beside this file says (expected-*.txt). PYVERBS_OUT
# gets what each test said.

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
	grep -h -E '^(siw|kiwarp):' "$OUT/$root/uml/pyverbs.txt"
done
exit $STATUS
