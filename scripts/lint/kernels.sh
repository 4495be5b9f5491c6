# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# The checks that build against a kernel, for check.sh, whose $root and $work they
# use. Each kernel has its copy of the tree in $work. It begins with the newest build of
# vm/build.sh or of an earlier check, and is kept as one of them if there was no warning. So only
# files that changed since then are compiled, and those of the guests' modules not once more. A tree
# in which a check found nothing is not checked again.

# Remarks of the kernel's build system about its own tree, not about our code.
build_noise='the compiler differs from the one used to build the kernel|Skipping BTF generation'

# make_copy NAME LOG ARGUMENT... - the kernel's own make, on its copy of the tree;
# paths in LOG are relative to the tree
make_copy() {
	local copy=$work/build-$1 rc=0 dir jobs K_BUILD='' K_ARCH=''

	dir=$("$KIW_VM/kernel.sh" "$1") || return
	jobs=$(build_jobs)
	# shellcheck source=/dev/null
	. "$dir/info"
	if ! [ -d "$copy" ]; then
		seed_build "$copy" "$dir" "build-$1"
		rsync -rlpc --from0 --files-from="$work/files" "$root/" "$copy"
		remove_others "$copy"
	fi
	make -s -j "$jobs" -C "$dir/$K_BUILD" ARCH="$K_ARCH" M="$copy" "${@:3}" modules \
		>"$2" 2>&1 || rc=$?
	sed -i "s|$copy/||g" "$2"
	return "$rc"
}

# known_tree CHECK NAME TREE - print the file that says that this check found nothing in the sources
# of TREE, for this kernel
known_tree() {
	local dir sources

	dir=$("$KIW_VM/kernel.sh" "$2") && cd "$3" || return
	sources=$(files_matching '\.[chS]$|(^|/)(Kbuild|Makefile|VERSION)$' | xargs -0 -r sha256sum) ||
		return
	clean_with "$1" "$(built_with "$dir")" "$(sparse --version)" "$sources"
}

# remove_others COPY - removes sources from the copy that are no longer in the tree
remove_others() {
	find "$1" -type f \( -name '*.[chS]' -o -name Kbuild -o -name Makefile \) ! -name '*.mod.c' \
		-printf '%P\0' | sort -z | comm -z -23 - "$work/files" |
		(cd "$1" && xargs -0 -r rm -f)
}

# keep_build NAME - keeps a build, with which the next one begins, here and in vm/build.sh
keep_build() {
	local kept dir

	dir=$("$KIW_VM/kernel.sh" "$1") || return
	kept=build-$1-$(content_key "$dir" lint)
	(flock -n 9 && copy_build "$work/build-$1" "$KIW_CACHE/$kept") 9>"$KIW_CACHE/locks/$kept" || true
}

check_build() {
	local log=$work/build-$1.log known

	known=$(known_tree build "$1" "$root")
	if [ -e "$known" ]; then
		return
	fi
	: >"$log"
	if ! make_copy "$1" "$log" W=1; then
		grep -E -A 5 'error|warning|\*\*\*' "$log" || tail -n 30 "$log"
		return 1
	fi
	if grep -i warning "$log" | grep -qvE "$build_noise"; then
		grep -vE "$build_noise" "$log"
		return 1
	fi
	keep_build "$1"
	# Of what was built: the tree may have changed meanwhile.
	known=$(known_tree build "$1" "$work/build-$1")
	: >"$known"
}

# Sparse looks at every source again (C=2); nothing is compiled a second time.
# An error ends its work on a file, so it counts wherever it is reported.
check_sparse() {
	local log=$work/sparse-$1.log known rc=0

	known=$(known_tree sparse "$1" "$root")
	if [ -e "$known" ]; then
		return
	fi
	: >"$log"
	make_copy "$1" "$log" W=1 C=2 CF=-D__CHECK_ENDIAN__ || rc=$?
	if grep -E '^(drivers|include|ktest|kunit)/|: error: ' "$log"; then
		return 1
	fi
	if [ "$rc" != 0 ]; then
		echo "failed with status $rc"
		tail -n 5 "$log"
		return 1
	fi
	known=$(known_tree sparse "$1" "$work/build-$1")
	: >"$known"
}
