#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# run.sh [OPTIONS]: make mutants; the options are at the head of run.py.

set -u
HERE=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/vm/lib.sh
. "$HERE/../vm/lib.sh"

# The environment of a calling make must not reach the kernel's make.
unset MAKEFLAGS MFLAGS MAKELEVEL
need_packages build-essential git python3 rsync || die "packages missing"
prune mutants
PYTHONDONTWRITEBYTECODE=1 exec python3 "$HERE/run.py" --cache "$KIW_CACHE" "$@"
