#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Packages and manual have the version of VERSION, and all settings of policy_sysfs.c; DKMS builds
for the kernels that the tests run on."""

import re

import source

# Where the version stands
VERSIONS = {
    "debian/changelog": r"kiwarp \((\S+)\)",
    "packaging/rpm/kiwarp.spec": r"Version:\s*(\S+)",
    "packaging/arch/PKGBUILD": r"pkgver=(\S+)",
    "man/kiwarp.7": r'\.TH \S+ 7 \S+ "kiwarp (\S+)"',
    "man/kiwarp_ip.7": r'\.TH \S+ 7 \S+ "kiwarp (\S+)"',
}
POLICY = "drivers/infiniband/sw/kiwarp/policy_sysfs.c"
# Where each setting stands, once
SETTINGS = {
    "packaging/samples/eth0.conf": r"#(\w+) = ",
    "man/kiwarp.7": r"\.BR (\w+) \" = ",
}
PROGRAM = "packaging/kiwarp-link"
DKMS = "packaging/dkms.conf"
MACHINES = "scripts/release/machines.sh"
REFUSALS = "drivers/infiniband/sw/kiwarp/compat/Kbuild"
# How distributions name their kernels, after the line
ENDINGS = ["-amd64", ".0-56-amd64", ".4+deb13-cloud-amd64", ".0-45-generic", ".12-200.fc42.x86_64"]


def named_by_program(tree):
    """The words of SETTINGS="..." of kiwarp-link."""
    found = re.search(r'^SETTINGS="([^"]*)"', tree.text(PROGRAM), re.M)
    return found[1].replace("\\", "").split() if found else []


def lines_for_dkms(tree):
    """The lines of kernels, such as 6.12, that dkms.conf allows with each of ENDINGS; and those
    that it allows with some of them."""
    allows = re.compile(re.search(r'^BUILD_EXCLUSIVE_KERNEL="(.*)"', tree.text(DKMS), re.M)[1])
    lines = [f"{major}.{minor}" for major in range(2, 20) for minor in range(100)]
    return ({line for line in lines if all(allows.search(line + end) for end in ENDINGS)},
            {line for line in lines if any(allows.search(line + end) for end in ENDINGS)})


def check_dkms(tree):
    tested = re.search(r"^KERNELS=\((.*)\)", tree.text(MACHINES), re.M)[1].split()
    tested = {name for name in tested if "-" not in name}
    allowed, partly = lines_for_dkms(tree)
    for line in sorted(tested - allowed):
        yield f"{DKMS}:1: skips {line}, which {MACHINES} tests"
    for line in sorted(partly - tested):
        yield f"{DKMS}:1: builds for {line}, which {MACHINES} does not test"
    known = re.findall(r"^kiwarp-(?:oldest|newest) := (\S+)", tree.text(REFUSALS), re.M)
    for line in sorted(set(known) - allowed):
        yield f"{DKMS}:1: skips {line}, which {REFUSALS} names"


def check(tree):
    if "VERSION" not in tree.files or POLICY not in tree.files:
        return
    version = tree.text("VERSION").strip()
    for path, pattern in VERSIONS.items():
        found = re.search("^" + pattern, tree.text(path), re.M)
        if not found or found[1] != version:
            yield f"{path}:1: version {found and found[1]}, VERSION has {version}"
    settings = re.findall(r"=\s*POLICY_ATTR\((\w+)", tree.text(POLICY))
    named = {path: re.findall("^" + pattern, tree.text(path), re.M)
             for path, pattern in SETTINGS.items()}
    named[PROGRAM] = named_by_program(tree)
    for path, names in named.items():
        for name in set(settings) ^ set(names):
            where = "no setting of" if name in names else "not in"
            yield f"{path}:1: {name} is {where} {POLICY if name in names else path}"
    yield from check_dkms(tree)


if __name__ == "__main__":
    source.run(check)
