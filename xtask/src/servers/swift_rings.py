"""Writes the rings of a Swift with one device: FOLDER NAME=PORT..."""

import sys

from swift.common.ring import RingBuilder

for ring in sys.argv[2:]:
    name, port = ring.split('=')
    builder = RingBuilder(2, 1, 1)
    device = {'id': 0, 'region': 1, 'zone': 1, 'weight': 1, 'ip': '127.0.0.1', 'port': int(port)}
    builder.add_dev({**device, 'device': 'd1', 'meta': ''})
    builder.rebalance()
    builder.get_ring().save(f'{sys.argv[1]}/{name}.ring.gz')
