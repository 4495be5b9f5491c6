#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# All static checks of the source tree this script lies in; `make lint` calls it.
# Prints KTAP, diagnostics below what failed, and a line of totals; exits 1
# when a check failed. The checks are functions below, named check_*; they print
# what they find and return non-zero, or print "SKIP REASON". Builds happen in copies in the cache.

set -euo pipefail

lint_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$lint_dir/../.." && pwd)
all_kernels=(uml 6.1 6.12)
diagnostic_lines=60

# shellcheck source=scripts/vm/lib.sh
. "$root/scripts/vm/lib.sh"
# shellcheck source=scripts/lint/kernels.sh
. "$lint_dir/kernels.sh"
# shellcheck source=scripts/lint/upstream.sh
. "$lint_dir/upstream.sh"

# The programs the checks call, and the packages they are in.
tools=(codespell:codespell ctags:universal-ctags gcc:gcc git:git make:make perl:perl
	python3:python3 shellcheck:shellcheck sparse:sparse)

# What checkpatch may not know about a file: pattern, message types, reason.
checkpatch_ignores=(
	"*|UNCOMMENTED_DEFINITION|docs.py asks for more: a lock's line in the structure's kernel-doc"
	"*/trace.h|COMPLEX_MACRO,MACRO_ARG_UNUSED,OPEN_ENDED_LINE,PARENTHESIS_ALIGNMENT|TRACE_EVENT() is laid out like a declaration, and its lists of names are X-macros"
	"*/proto/perr.h|COMPLEX_MACRO,MACRO_ARG_REUSE,MACRO_ARG_UNUSED|one X-macro list gives the errors' enum and table"
	"*/stats.h|COMPLEX_MACRO,MACRO_ARG_REUSE,MACRO_ARG_UNUSED|one X-macro list gives the counters' enum and names"
	"*/kiwarp_ip/compat/rtnl.h|MACRO_WITH_FLOW_CONTROL|the macro is a whole function"
	"*/kiwarp/compat/verbs.h|MACRO_ARG_PRECEDENCE,MACRO_WITH_FLOW_CONTROL|the macros are whole functions"
	"*/kiwarp/compat/probe.c|MACRO_ARG_PRECEDENCE|the name of a member"
	"*/kiwarp_ip/stats.c|MACRO_ARG_UNUSED|names of the list of counters"
	"*/verbs_dev.c|COMPLEX_MACRO,MACRO_ARG_UNUSED|a sum over the list of counters"
	"scripts/fuzz/*|MACRO_ARG_REUSE,NEW_TYPEDEFS,PREFER_DEFINED_ATTRIBUTE_MACRO,PREFER_KERNEL_TYPES|its shims make kernel types of C's"
	"scripts/verbs/*|PREFER_DEFINED_ATTRIBUTE_MACRO|programs of user space"
	"scripts/vm/*|PREFER_DEFINED_ATTRIBUTE_MACRO|likewise"
	"*/compat/*|LINUX_VERSION_CODE|comparing kernel versions is what compat is for"
)

usage() {
	cat <<-END
	usage: check.sh [--kernel K]... [--only REGEX] [--list]
	  --kernel K    build against K only: ${all_kernels[*]} (default: all)
	  --only REGEX  run the checks whose name matches
	  --list        print the names of the checks
	END
}

# --- the list of files ---------------------------------------------------------

list_files() {
	local top

	cd "$root"
	if top=$(git rev-parse --show-toplevel 2>/dev/null) && [ "$top" = "$(pwd -P)" ]; then
		git ls-files -co --exclude-standard -z
	else
		find . \( -name .git -o -path ./docs-out \) -prune -o -type f ! -name '*.o' ! -name '*.ko' \
			! -name '*.mod' ! -name '*.mod.c' ! -name '*.cmd' ! -name '*.pyc' \
			! -name Module.symvers ! -name modules.order -printf '%P\0'
	fi | sort -zu | while IFS= read -r -d '' file; do
		if [ -f "$file" ]; then
			printf '%s\0' "$file"
		fi
	done
}

# files_matching REGEX - the listed files whose path matches, separated by NUL
files_matching() {
	grep -zE "$1" "$work/files" || true
}

# files_with_shebang REGEX SUFFIX - those that end in SUFFIX or start with such a #!
files_with_shebang() {
	local file line

	while IFS= read -r -d '' file; do
		line=
		IFS= read -r line 2>/dev/null <"$root/$file" || true
		if [[ $file == *$2 || $line =~ ^#!.*$1 ]]; then
			printf '%s\0' "$file"
		fi
	done <"$work/files"
}

# kernel_scripts - print the directory of 6.12's checkpatch.pl and kernel-doc, which are
# in no header package
kernel_scripts() {
	echo "$("$KIW_VM/source.sh" 6.12)/scripts"
}

# once INPUTS FILE CMD... - run a check of one file, unless it had nothing to say about the same
# file before. INPUTS stands for whatever else the result depends on, apart from this script, which
# always counts. $KIW_LINT_CLEAN remembers what was clean.
once() {
	local clean said rc=0

	clean=$KIW_LINT_CLEAN/$({
		printf '%s\n' "$KIW_CHECK_HASH" "$@" && cat "$2"
	} | sha256sum | cut -c 1-32)
	if [ -e "$clean" ]; then
		touch "$clean"
		return
	fi
	said=$("${@:3}" 2>&1) || rc=$?
	if [ "$rc" = 0 ] && [ -z "$said" ]; then
		: >"$clean"
	else
		printf '%s\n' "$said"
	fi
	return "$rc"
}
export -f once

# clean_with INPUT... - print the file whose existence says that a check had nothing to say about
# these inputs, apart from these scripts, which always count. The check creates it.
clean_with() {
	local clean

	clean=$KIW_LINT_CLEAN/$(printf '%s\n' "$KIW_CHECK_HASH" "$@" | sha256sum | cut -c 1-32)
	if [ -e "$clean" ]; then
		touch "$clean"
	fi
	echo "$clean"
}

# hash_of FILE... - one hash of the contents of all
hash_of() {
	cat "$@" | sha256sum
}

# --- the checks ----------------------------------------------------------------

python_check() {
	python3 "$lint_dir/$1" "$root" "$work/files"
}

checkpatch_types() {
	local entry pattern types

	for entry in "${checkpatch_ignores[@]}"; do
		IFS='|' read -r pattern types _ <<<"$entry"
		# shellcheck disable=SC2053 # the right side is a pattern
		if [[ $1 == $pattern ]]; then
			printf '%s,' "$types"
		fi
	done
}

check_checkpatch() {
	local scripts inputs file types

	scripts=$(kernel_scripts)
	inputs=$(hash_of "$scripts"/{checkpatch.pl,spelling.txt,const_structs.checkpatch})
	cd "$root"
	# One process per file; HOME because checkpatch reads a .conf from there.
	files_matching '\.[ch]$' | while IFS= read -r -d '' file; do
		types=$(checkpatch_types "$file")
		printf '%s\0%s\0' "$file" "$types"
	done >"$work/checkpatch.args"
	# shellcheck disable=SC2016 # for the inner shell to expand
	HOME=$work xargs -0 -r -n 2 -P "$(nproc)" bash -c \
		'once "$1" "$2" perl "$0" --strict --no-tree --no-summary --terse --show-types \
			--ignore "$3" -f "$2"' \
		"$scripts/checkpatch.pl" "$inputs" \
		<"$work/checkpatch.args" >"$work/checkpatch.out" 2>&1 || true
	sort -V "$work/checkpatch.out"
	! [ -s "$work/checkpatch.out" ]
}

check_kernel_doc() {
	local scripts

	scripts=$(kernel_scripts)
	cd "$root"
	files_matching '\.[ch]$' | xargs -0 -r perl "$scripts/kernel-doc" -none -Wall -Werror \
		>"$work/kernel-doc.out" 2>&1 || true
	sort -V "$work/kernel-doc.out"
	! [ -s "$work/kernel-doc.out" ]
}

# kernel_kbuild MAJOR.MINOR VARIABLE... - what compat/Kbuild says about such a kernel; fails if
# it refuses it
kernel_kbuild() {
	printf 'comma := ,\ninclude %s\nall:\n' "$root/$refusing" |
		make -s -f - "VERSION=${1%.*}" "PATCHLEVEL=${1#*.}" CONFIG_INET=y CONFIG_INFINIBAND=m \
			CONFIG_INFINIBAND_USER_ACCESS=m CONFIG_INFINIBAND_VIRT_DMA=y "${@:2}" 2>&1
}

# Kernels that cannot be are refused by compat/Kbuild, which says why; usual ones are not.
check_refused() {
	local refusing=drivers/infiniband/sw/kiwarp/compat/Kbuild what why said rc=0

	[ -f "$root/$refusing" ] || return 0
	for what in 6.1 6.12 7.0 "7.99 KIWARP_NEW_KERNEL=y"; do
		# shellcheck disable=SC2086 # words
		kernel_kbuild $what || rc=1
	done
	while IFS='|' read -r what why; do
		# shellcheck disable=SC2086 # words
		if said=$(kernel_kbuild $what) ||
			[[ $said != *"kiwarp cannot be built for Linux "*": "*"$why"* ]]; then
			echo "Linux $what is not refused: $said"
			rc=1
		fi
	done <<-'END'
	2.6|needs Linux
	5.15|needs Linux
	6.0|needs Linux
	7.99|knows kernels up to
	8.0|knows kernels up to
	10.1|knows kernels up to
	6.12 CONFIG_INET=|lacks CONFIG_INET.
	6.12 CONFIG_INFINIBAND=|lacks CONFIG_INFINIBAND.
	6.12 CONFIG_INFINIBAND_VIRT_DMA=|lacks CONFIG_INFINIBAND_VIRT_DMA.
	6.12 CONFIG_HIGHMEM=y CONFIG_INFINIBAND_VIRT_DMA=|without HIGHMEM
	6.12 CONFIG_PREEMPT_RT=y|PREEMPT_RT
	6.12 CONFIG_ARM=y|caches do not alias
	6.12 CONFIG_MIPS=y|caches do not alias
	6.12 CONFIG_ARCH_HAS_CPU_CACHE_ALIASING=y|caches do not alias
	END
	return "$rc"
}

# Patches of Documentation/kernel-faults.rst, in the order in which the page names them, apply to
# 6.12 without fuzz, and checkpatch has no objection, but that it cannot look up commits.
check_patches() {
	local page=$root/Documentation/kernel-faults.rst dir=$work/patched source name patch file rc=0

	[ -f "$page" ] || return 0
	if ! source=$("$KIW_VM/source.sh" 6.12); then
		echo "SKIP no source of Linux 6.12"
		return
	fi
	# shellcheck disable=SC2016 # literal backquotes
	sed -n 's/^ *\* - ``kernel-faults\/\([^`]*\)``$/\1/p' "$page" >"$work/patches"
	diff <(sort "$work/patches") <(cd "${page%.rst}" && printf '%s\n' *.patch) || rc=1
	while IFS= read -r name; do
		patch=${page%.rst}/$name
		while IFS= read -r file; do
			[ -f "$dir/$file" ] || install -D -m 644 "$source/$file" "$dir/$file" || rc=1
		done < <(sed -n 's/^+++ b\///p' "$patch")
		patch -d "$dir" -p1 -N -F0 -r - -i "$patch" >"$work/patch.out" 2>&1 ||
			{ sed "s/^/$name: /" "$work/patch.out"; rc=1; }
		HOME=$work perl "$source/scripts/checkpatch.pl" --strict --no-tree --no-summary \
			--terse --show-types --ignore UNKNOWN_COMMIT_ID "$patch" || rc=1
	done <"$work/patches"
	return "$rc"
}

# The last commits are as CONTRIBUTING.md asks; older ones cannot be changed any more.
check_commits() {
	cd "$root"
	if [ "$(git rev-parse --show-toplevel 2>/dev/null)" != "$(pwd -P)" ]; then
		echo "SKIP no repository"
		return
	fi
	git log --no-merges -n 100 --format='%x01%h %s%n%b' | awk '
		BEGIN { RS = "\001"; FS = "\n" }
		function wrong(what) { print substr($1, 1, 100) ": " what; bad = 1 }
		NR == 1 { next }
		{
			subject = substr($1, index($1, " ") + 1)
			signed = why = 0
			for (i = 2; i <= NF; i++) {
				if ($i ~ /^Signed-off-by: .+ <.+@.+>$/) signed = 1
				else if ($i ~ /^Fixes: / && $i !~ /^Fixes: [0-9a-f]+ \(".+/) wrong("bad Fixes:")
				else if ($i !~ /^([A-Z][a-z-]+: .*)?$/) why = 1
			}
			if (length(subject) > 60) wrong("more than 60 characters")
			if (subject !~ /^kiwarp: [A-Za-z0-9_]+.*: [^ ]/) wrong("not \"kiwarp: area: do what\"")
			if (!why) wrong("no body that says why")
			if (!signed) wrong("no Signed-off-by")
		}
		END { exit bad }'
}

# What a file sources is another input of its check, and so are the settings. Here, that is any file
# that some script sources.
check_shellcheck() {
	local inputs

	cd "$root"
	files_with_shebang '(ba|da)?sh( |$)' .sh >"$work/shell"
	inputs=$(
		shellcheck --version
		[ ! -f .shellcheckrc ] || hash_of .shellcheckrc
		xargs -0 -r sed -n 's/^[[:blank:]]*# shellcheck source=//p' <"$work/shell" | sort -u |
			while IFS= read -r file; do hash_of "$file" 2>/dev/null; done
	)
	# shellcheck disable=SC2016 # for the inner shell to expand
	xargs -0 -r -n 1 -P "$(nproc)" bash -c \
		'once "$0" "$1" shellcheck -x -P SCRIPTDIR:. -f gcc "$1"' "$inputs" \
		<"$work/shell" >"$work/shellcheck.out" 2>&1 || true
	sort -V "$work/shellcheck.out"
	! [ -s "$work/shellcheck.out" ]
}

check_python() {
	cd "$root"
	files_with_shebang python .py |
		PYTHONPYCACHEPREFIX=$work/pycache xargs -0 -r python3 -m py_compile
}

check_codespell() {
	cd "$root"
	HOME=$work xargs -0 -r codespell --check-hidden -I "$lint_dir/codespell-ignore.txt" \
		<"$work/files"
}

# --- running them --------------------------------------------------------------

# Filled by `add`: names in the order of the report, their commands, and the
# group each is in: one group runs in sequence, beside the others.
names=()
commands=()
groups=()

# add GROUP NAME COMMAND... - one check
add() {
	if [[ $2 =~ $only ]]; then
		groups+=("$1")
		names+=("$2")
		commands+=("${*:3}")
	fi
}

add_all() {
	local kernel

	for kernel in "${kernels[@]}"; do
		add "$kernel" "build W=1 ($kernel)" check_build "$kernel"
		add "$kernel" "sparse ($kernel)" check_sparse "$kernel"
	done
	add force "no __force" python_check force.py
	add checkpatch "checkpatch --strict" check_checkpatch
	add kernel-doc "kernel-doc is well formed" check_kernel_doc
	add docs "kernel-doc on every function" python_check docs.py
	add names "names in the documents exist" python_check names.py
	add layers "layering of includes and calls" python_check layers.py
	add rooms "rooms are the same everywhere" python_check rooms.py
	add pictures "pictures agree with the code" python_check pictures.py
	add counters "counters are documented and tested" python_check counters.py
	add reference "the reference is complete" python_check reference.py
	add mutants "mutants have tests" python_check mutants.py
	add commands "commands of the documents are tested" python_check commands.py
	add packaging "packages are up to date" python_check packaging.py
	add sizes "sizes (report)" report_sizes
	add coverage "coverage, as recorded (report)" report_coverage
	add refused "kernels that are refused" check_refused
	add patches "patches for the kernel apply" check_patches
	add upstream "series for a kernel tree ($upstream_on)" check_upstream
	add commits "commits are well formed" check_commits
	add shellcheck "shellcheck" check_shellcheck
	add python "python compiles" check_python
	add spdx "SPDX" python_check spdx.py
	add maintainers "every file has a maintainer" python_check maintainers.py
	add codespell "codespell" check_codespell
	add text "words, paths, blanks" python_check text.py
}

report_sizes() {
	python_check sizes.py || true
}

report_coverage() {
	python_check coverage.py
}

run_one() {
	local rc=0 start=$SECONDS

	# Not in a condition: there `set -e` would not hold inside the check.
	set +e
	(set -e; eval "${commands[$1]}") >"$work/$1.out" 2>&1 </dev/null
	rc=$?
	set -e
	echo "$rc" >"$work/$1.rc"
	echo "$((SECONDS - start)) s ${names[$1]}" >"$work/$1.time"
}

# run_group GROUP - its checks, one after the other
run_group() {
	local number

	for number in "${!names[@]}"; do
		if [ "${groups[$number]}" = "$1" ]; then
			run_one "$number"
		fi
	done
}

# Prints check N when it is over.
report() {
	local number=$(($1 + 1)) lines reason

	reason=$(sed -n '1s/^SKIP //p' "$work/$1.out")
	if [ -n "$reason" ]; then
		echo "ok $number - ${names[$1]} # SKIP $reason"
		skipped=$((skipped + 1))
		return
	fi
	if [ "$(cat "$work/$1.rc" 2>/dev/null)" = 0 ]; then
		echo "ok $number - ${names[$1]}"
		passed=$((passed + 1))
		[[ ${commands[$1]} == report_* ]] || return 0
	else
		echo "not ok $number - ${names[$1]}"
		failed=$((failed + 1))
	fi
	lines=$(wc -l <"$work/$1.out")
	head -n "$diagnostic_lines" "$work/$1.out" | sed 's/^/# /'
	if [ "$lines" -gt "$diagnostic_lines" ]; then
		echo "# ... and $((lines - diagnostic_lines)) more lines"
	fi
}

# Without a tool its check fails and says so; the others still run.
install_tools() {
	local tool missing=()

	for tool in "${tools[@]}"; do
		command -v "${tool%%:*}" >/dev/null || missing+=("${tool#*:}")
	done
	[ ${#missing[@]} = 0 ] || need_packages "${missing[@]}" || true
}

parse() {
	kernels=()
	only=.
	list=false
	while [ $# -gt 0 ]; do
		case $1 in
		--kernel)
			kernels+=("${2:?--kernel needs a name}")
			shift
			;;
		--only)
			only=${2:?--only needs a pattern}
			shift
			;;
		--list)
			list=true
			;;
		-h | --help)
			usage
			exit 0
			;;
		*)
			usage >&2
			exit 2
			;;
		esac
		shift
	done
	if [ ${#kernels[@]} = 0 ]; then
		kernels=("${all_kernels[@]}")
	fi
}

main() {
	local group number passed=0 failed=0 skipped=0

	parse "$@"
	add_all
	if $list; then
		printf '%s\n' "${names[@]}"
		return
	fi
	if [ ${#names[@]} = 0 ]; then
		echo "check.sh: no check matches '$only'" >&2
		exit 2
	fi
	# The environment of a calling make must not reach the kernel's make.
	unset MAKEFLAGS MFLAGS MAKELEVEL ARCH M CC CROSS_COMPILE KCFLAGS KCPPFLAGS
	unset KIWARP_TESTS KIWARP_NEW_KERNEL KIWARP_COVER
	export LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
	# For once(), which other shells call
	export KIW_LINT_CLEAN="${KIW_LINT_CLEAN:-$KIW_CACHE/clean}" KIW_CHECK_HASH
	KIW_CHECK_HASH=$(hash_of "$lint_dir"/{check,kernels,upstream}.sh)
	mkdir -p "$KIW_LINT_CLEAN"
	find "$KIW_LINT_CLEAN" -type f -mtime +30 -delete
	prune lint
	prune upstream
	work=$(mktemp -d "$KIW_CACHE/lint-XXXXXX")
	trap 'rm -rf "$work"' EXIT
	install_tools
	list_files >"$work/files"

	echo "KTAP version 1"
	echo "1..${#names[@]}"
	while read -r group; do
		run_group "$group" &
	done < <(printf '%s\n' "${groups[@]}" | sort -u)
	wait
	for number in "${!names[@]}"; do
		report "$number"
	done
	sort -rn "$work"/*.time | head -n 5 | sed 's/^/# /'
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" = 0 ]
}

main "$@"
