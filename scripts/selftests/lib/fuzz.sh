# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shellcheck shell=bash
#
# Sourced after rc: runs the guided fuzzer (scripts/fuzz/guide.py) in a test. KIW_INPUT and
# KIW_FUZZ: see scripts/fuzz/guided.sh.

FUZZ=$SELFTESTS/../../fuzz

# guided TARGET RUNS SHARE [CMD...] -- ARGUMENTS...: the corpus of TARGET, then RUNS inputs, or in a
# soak inputs for one of SHARE parts of its time. CMD runs the fuzzer.
guided() {
	local target=$1 runs=$2 share=$3 status=0 input='' only=${KIW_INPUT%%:*}
	local -a cmd=() options
	shift 3
	while [ "$1" != -- ]; do cmd+=("$1"); shift; done
	shift
	[ -z "$only" ] || [ "$only" = "$target" ] || return 0
	[ -z "$only" ] || input=${KIW_INPUT#*: }
	mkdir -p /out/fuzz
	options=(--seed "$KIW_SEED" --bad "$DMESG_BAD" --out /out/fuzz --runs "$runs"
		--again "KIW_SOAK=1 scripts/selftests/check --kernel $KIW_KERNEL ${0##*/}")
	[ -z "${KIW_SOAK:-}" ] || options+=(--seconds $((KIW_SOAK / share)))
	[ -z "$input" ] || options+=(--input "$input")
	# shellcheck disable=SC2086 # options
	env "PYTHONPATH=$FUZZ:$FUZZ/..:$SELFTESTS" PYTHONDONTWRITEBYTECODE=1 "${cmd[@]}" \
		python3 -P "$FUZZ/guide.py" "${options[@]}" ${KIW_FUZZ:-} -- "$target" "$@" \
		>"$T_DIR/guided" 2>&1 || status=1
	diag "$(grep '^{"event": "fuzz"' "$T_DIR/guided")" >>"$T_DIR/figures"
	cat "$T_DIR/guided"
	return "$status"
}

# figures: shows what the fuzzer has reached, if the test is a soak
figures() { [ -z "${KIW_SOAK:-}" ] || cat "$T_DIR/figures"; }
