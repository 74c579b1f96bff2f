"""What Swift keeps in memcached, kept in the process of its proxy instead: tokens, and what is
known of accounts and containers. One process serves all requests, so nobody else has to see it."""

import time as clock


class Cache:
    def __init__(self):
        self.kept = {}

    def get(self, key, raise_on_error=False):
        value, until = self.kept.get(key, (None, 0))
        return value if not until or until > clock.time() else None

    def set(self, key, value, serialize=True, time=0, min_compress_len=0, raise_on_error=False):
        self.kept[key] = (value, clock.time() + time if time else 0)

    def incr(self, key, delta=1, time=0):
        value = max(0, int(self.get(key) or 0) + int(delta))
        self.set(key, value, time=time)
        return value

    def decr(self, key, delta=1, time=0):
        return self.incr(key, -int(delta), time)

    def delete(self, key, server_key=None):
        self.kept.pop(key, None)

    def set_multi(self, mapping, server_key=None, serialize=True, time=0, min_compress_len=0):
        for key, value in mapping.items():
            self.set(key, value, time=time)

    def get_multi(self, keys, server_key=None):
        return [self.get(key) for key in keys]


def filter_factory(global_conf, **local_conf):
    cache = Cache()

    def make(app):
        def call(env, start_response):
            env['swift.cache'] = cache
            return app(env, start_response)

        return call

    return make
