# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shellcheck shell=bash
#
# Sourced after rc: runs the guided fuzzer (scripts/fuzz/guide.py) in a test. In the environment:
#
#	KIW_INPUT="TARGET: LINE; LINE"	only this input of this target
#	KIW_TARGETS="TARGET TARGET"	only these targets
#	KIW_FUZZ			options of guide.py

FUZZ=$SELFTESTS/../../fuzz

# targets TARGET...: sets TARGETS to those that are to run.
targets() {
	local target only=${KIW_INPUT%%:*}
	TARGETS=()
	for target in "$@"; do
		case " ${only:-${KIW_TARGETS:-$target}} " in *" $target "*) TARGETS+=("$target") ;; esac
	done
	[ "${#TARGETS[@]}" -gt 0 ] || bail "none of these: $*"
}

# guided TARGET RUNS [CMD...] -- ARGUMENTS...: the corpus of TARGET, then RUNS inputs, and in a soak
# inputs for its share of the time. CMD runs the fuzzer.
guided() {
	local target=$1 runs=$2 status=0
	local -a cmd=() options
	shift 2
	while [ "$1" != -- ]; do cmd+=("$1"); shift; done
	shift
	mkdir -p /out/fuzz
	options=(--seed "$KIW_SEED" --bad "$DMESG_BAD" --out /out/fuzz --runs "$runs"
		--again "scripts/selftests/check --kernel $KIW_KERNEL ${0##*/}")
	[ -z "${KIW_SOAK:-}" ] || options+=(--seconds $((KIW_SOAK / ${#TARGETS[@]})))
	[ -z "${KIW_INPUT:-}" ] || options+=(--input "${KIW_INPUT#*: }")
	# shellcheck disable=SC2086 # options
	env "PYTHONPATH=$FUZZ:$FUZZ/..:$SELFTESTS" PYTHONDONTWRITEBYTECODE=1 "SELFTESTS=$SELFTESTS" \
		"KIW_LINK_TYPE=$KIW_LINK_TYPE" "${cmd[@]}" \
		python3 -P "$FUZZ/guide.py" "${options[@]}" ${KIW_FUZZ:-} -- "$target" "$@" \
		>"$T_DIR/guided" 2>&1 || status=1
	diag "$(grep '^{"event": "fuzz"' "$T_DIR/guided")" >>"$T_DIR/figures"
	cat "$T_DIR/guided"
	return "$status"
}

# figures: shows what the fuzzer has reached, if the test is a soak.
figures() { [ -z "${KIW_SOAK:-}" ] || cat "$T_DIR/figures"; }

# run_targets: a case for each of TARGETS, by on_target TARGET, which begins with rdma_up
run_targets() {
	local target
	for target in "${TARGETS[@]}"; do
		t_run "$target" on_target "$target"
		t_run "nothing is left" nothing_left "$DEV_A" "$DEV_B"
		rdma_down
	done
	figures
}
