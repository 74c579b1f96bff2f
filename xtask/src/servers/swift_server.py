"""Runs a server of Swift whose `swift.conf` lies elsewhere than in /etc: FOLDER PROGRAM CONF. Its
policies are read when it is imported, long before it has been told of a folder."""

import runpy
import sys

from swift.common.utils import set_swift_dir

set_swift_dir(sys.argv[1])
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name='__main__')
