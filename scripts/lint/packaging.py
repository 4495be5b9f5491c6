#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Packages and manual have the version of VERSION, and all settings of policy_sysfs.c."""

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


def named_by_program(tree):
    """The words of SETTINGS="..." of kiwarp-link."""
    found = re.search(r'^SETTINGS="([^"]*)"', tree.text(PROGRAM), re.M)
    return found[1].replace("\\", "").split() if found else []


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


if __name__ == "__main__":
    source.run(check)
