#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""device_plugin.py MANIFEST: what squat/generic-device-plugin offers on this host, and what pods ask for.

Reads the arguments --device of a DaemonSet, which have to be JSON, and the resources and commands
of pods. Does with them what the plugin documents (its README and --help of April 2026): a path is a
pattern; each of its matches can be used "limit" times; the Nth matches of all paths of a group are
one device, up to the shortest list; each is offered "count" times. Prints lines

    offer RESOURCE COUNT PERMISSIONS:FILE...
    pod RESOURCE COUNT COMMAND...

Anything that the plugin would not know is an error.
"""

import glob
import json
import re
import sys

DOMAIN = "squat.ai"
NAME = re.compile(r"[a-z0-9][-a-z0-9]*[a-z0-9]$")
DEVICE = {"name", "groups"}
GROUP = {"paths", "count"}
PATH = {"path", "mountPath", "permissions", "limit", "optional", "type"}


def known(what, keys):
    if set(what) - keys:
        sys.exit(f"the plugin has no {', '.join(sorted(set(what) - keys))}")
    return what


def offers(device):
    """Lists of the files of each device, and how often it is offered"""
    known(device, DEVICE)
    if not NAME.match(device["name"]):
        sys.exit(f"the plugin refuses the name {device['name']}")
    for group in device["groups"]:
        known(group, GROUP)
        lists, matched = [], 0
        for path in group["paths"]:
            known(path, PATH)
            found = sorted(glob.glob(path["path"]))
            if found or not path.get("optional"):
                mode = path.get("permissions", "mrw")
                lists.append([f"{mode}:{name}" for name in found * (path.get("limit") or 1)])
                matched = max(matched, len(found))
        for files in list(zip(*lists))[:matched]:
            yield group.get("count") or 1, files


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        documents = re.split(r"^---$", file.read(), flags=re.M)
    for text in documents:
        # The argument after --device is a block of its own, indented.
        for argument in re.findall(r"^ *- --device\n( *)- \|\n((?:\1 +.*\n)+)", text, re.M):
            device = json.loads(argument[1])
            for count, files in offers(device):
                print("offer", f"{DOMAIN}/{device['name']}", count, *files)
        command = re.search(r"^ *command: (\[.*\])$", text, re.M)
        for resource, count in re.findall(r"^ *limits: \{(\S+): (\d+)\}$", text, re.M):
            print("pod", resource, count, *json.loads(command[1]))


if __name__ == "__main__":
    main()
