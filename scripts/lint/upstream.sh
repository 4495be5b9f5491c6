# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# The check that the driver is ready for a kernel tree, for check.sh, whose $root and $work it
# uses. The series of scripts/release/upstream.sh is applied to Linux 6.12, or to the source that
# KIW_UPSTREAM names (source.sh: newest), and compiled there, for User Mode Linux: as modules with
# the KUnit suites built in, and the other way round. The tree has links to the unpacked source,
# except for what the patches change. It is kept, together with what was compiled, so only what
# changed since then is compiled again.

upstream_on=${KIW_UPSTREAM:-6.12}
# Folders that the patches change something in; each comes behind the one that it is in.
upstream_folders=(Documentation drivers drivers/infiniband drivers/infiniband/sw
	drivers/infiniband/ulp include include/uapi include/uapi/rdma)
# Files of the kernel that the patches change
upstream_files=(MAINTAINERS drivers/infiniband/Kconfig drivers/infiniband/sw/Makefile
	drivers/infiniband/ulp/Makefile)
# What the patches add and make compiles
upstream_new=(drivers/infiniband/sw/kiwarp drivers/infiniband/ulp/kiwarp_ip)

# upstream_links SOURCE TREE - TREE looks like SOURCE; its upstream_folders can be changed
upstream_links() {
	local folder path name

	for folder in . "${upstream_folders[@]}"; do
		mkdir -p "$2/$folder"
		for path in "$1/$folder"/*; do
			name=${path#"$1/"}
			name=${name#./}
			[[ " ${upstream_folders[*]} " == *" $name "* ]] || ln -s "$path" "$2/$name"
		done
	done
}

# upstream_apply SOURCE DIR - DIR gets what the series changes and adds, applied without fuzz
upstream_apply() {
	local file patch rc=0

	"$root/scripts/release/upstream.sh" "$1" "$work/series" || return
	for file in "${upstream_files[@]}"; do
		install -D -m 644 "$1/$file" "$2/$file"
	done
	for patch in "$work/series"/[0-9]*.patch; do
		[[ $patch != */0000-* ]] || continue
		patch -d "$2" -p1 -N -F0 -s -r - -i "$patch" >"$work/patch.out" 2>&1 ||
			{ sed "s|^|${patch##*/}: |" "$work/patch.out"; rc=1; }
	done
	return "$rc"
}

# upstream_config MODULES TESTS - on top of the configuration of the test kernel: the driver is
# MODULES (m or y), the KUnit suites are TESTS
upstream_config() {
	local name

	for name in INFINIBAND INFINIBAND_USER_ACCESS INFINIBAND_ADDR_TRANS KUNIT; do
		echo "CONFIG_$name=y"
	done
	for name in RDMA_KIWARP RDMA_KIWARP_IP; do
		printf 'CONFIG_%s=%s\nCONFIG_%s_KUNIT_TEST=%s\n' "$name" "$1" "$name" "$2"
	done
}

# upstream_make BUILD ARGUMENT... - the kernel's make, with an output folder
upstream_make() {
	make -s -j "$(build_jobs)" -C "$kept/tree" ARCH="$K_ARCH" O="$1" "${@:2}"
}

# upstream_build MODULES TESTS - compiles the new folders in that configuration
upstream_build() {
	local build=$kept/build-$1 log=$work/upstream-$1.log new=() folder

	for folder in "${upstream_new[@]}"; do new+=("$folder/" "$folder/tests/"); done
	mkdir -p "$build"
	{ cat "$kernel/$K_BUILD/.config"; upstream_config "$1" "$2"; } >"$build/.config.new"
	if ! cmp -s "$build/.config.new" "$build/.config.asked"; then
		cp "$build/.config.new" "$build/.config"
		upstream_make "$build" olddefconfig >"$log" 2>&1 || { tail "$log"; return 1; }
		cp "$build/.config.new" "$build/.config.asked"
	fi
	if ! upstream_config "$1" "$2" | grep -vxFf "$build/.config" >"$work/ignored"; then
		if upstream_make "$build" prepare >"$log" 2>&1 &&
			upstream_make "$build" W=1 "${new[@]}" >"$log" 2>&1 && ! grep -qi warning "$log"; then
			return
		fi
		# What was compiled with a warning would not be compiled again.
		for folder in "${upstream_new[@]}"; do rm -rf "${build:?}/$folder"; done
		grep -E -A 5 'error|warning|\*\*\*' "$log" || tail -n 30 "$log"
	else
		sed 's/^/not in effect: /' "$work/ignored"
	fi
	return 1
}

# What is built into one kernel must not define a symbol twice.
upstream_link() {
	local folder drivers=() tests=()

	for folder in "${upstream_new[@]}"; do
		drivers+=("$kept/build-y/$folder/built-in.a")
		tests+=("$kept/build-m/$folder/tests/built-in.a")
	done
	ld -r -o "$work/upstream.o" --whole-archive "${drivers[@]}" &&
		ld -r -o "$work/upstream.o" --whole-archive "${tests[@]}"
}

check_upstream() {
	local source kernel kept key folder applied known K_BUILD='' K_ARCH=''

	[ -f "$root/${upstream_new[0]}/Kconfig" ] || return 0
	if ! source=$("$KIW_VM/source.sh" "$upstream_on") || ! kernel=$("$KIW_VM/kernel.sh" uml); then
		echo "SKIP no source of Linux: $upstream_on"
		return
	fi
	# shellcheck source=/dev/null
	. "$kernel/info"
	key=upstream-$(content_key "$source" "$(built_with "$kernel")" "$(declare -f upstream_links)")
	kept=$KIW_CACHE/$key
	upstream_apply "$source" "$work/applied" || return
	applied=$(cd "$work/applied" && find . -type f -print0 | sort -z | xargs -0 sha256sum)
	known=$(clean_with upstream "$key" "$applied")
	if [ -e "$known" ]; then
		return
	fi
	(
		flock -w 1200 9
		[ -d "$kept/tree" ] || upstream_links "$source" "$kept/tree"
		rsync -rlpc "$work/applied/" "$kept/tree"
		for folder in "${upstream_new[@]}"; do
			rsync -rlpc --delete "$work/applied/$folder/" "$kept/tree/$folder"
		done
		touch "$kept"
		upstream_build m y && upstream_build y m && upstream_link
	) 9>"$KIW_CACHE/locks/$key"
	: >"$known"
}
