# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shellcheck shell=bash
#
# Sourced on the host. A plan has lines "KERNEL[,KERNEL]... TEST CASES SKIPPED": how many cases the
# test has on each of these kernels, and how many of them are skipped. Both are "-" where no run has
# been recorded.

# plan_rows FILE: a line for each kernel
plan_rows() {
	awk '/^[^#]/ { n = split($1, kernels, ","); for (i = 1; i <= n; i++) print kernels[i], $2, $3, $4 }' "$1"
}

# plan_of_rows: the opposite, without the head: kernels with equal numbers share a line.
plan_of_rows() {
	LC_ALL=C sort -u | awk '
		{ at = $2 " " $3 " " $4; kernels[at] = kernels[at] "," $1 }
		END { for (at in kernels) print substr(kernels[at], 2), at }' | LC_ALL=C sort -k 2,2 -k 1,1
}
