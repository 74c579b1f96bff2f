"""Puts the program, its manuals and completions into the wheel."""

import os
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# What `cargo xtask dist` holds the program to.
TAG = "py3-none-manylinux_2_28_x86_64"


class Program(BuildHookInterface):
    def initialize(self, version, build_data):
        tree = Path(os.environ["PLIMSOLL_TREE"])
        build_data["tag"] = TAG
        build_data["pure_python"] = False
        build_data["shared_scripts"][str(tree / "bin/plimsoll")] = "plimsoll"
        build_data["shared_data"][str(tree / "share")] = "share"
