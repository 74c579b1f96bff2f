"""Object content, written a second time from docs/formats/data.md.

python3 data.py SEED KEY VERSION OFFSET LENGTH    prints content as hexadecimal digits
python3 data.py [--text | --shaped COMPRESS DEDUPE] SEED KEY VERSION OFFSET LENGTH    prints other content
python3 data.py trace SEED < BYTES                prints hash(key), version and offset of bytes
"""
import sys

M = (1 << 64) - 1


def mix64(x):
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & M
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & M
    return x ^ x >> 31


def unmix64(x):
    x ^= x >> 31 ^ x >> 62
    x = x * pow(0x94D049BB133111EB, -1, 1 << 64) & M
    x ^= x >> 27 ^ x >> 54
    x = x * pow(0xBF58476D1CE4E5B9, -1, 1 << 64) & M
    return x ^ x >> 30 ^ x >> 60


def rotate_left(x, bits):
    bits %= 64
    return (x << bits | x >> (64 - bits)) & M


def pad(seed):
    state = mix64(mix64(seed ^ mix64(0x70616400 + 1)))
    out = b""
    for _ in range(1024):
        state = (state + 0x9E3779B97F4A7C15) & M
        out += mix64(state).to_bytes(8, "little")
    return out


def hash_text(key):
    h = 0xCBF29CE484222325
    for byte in key.encode():
        h = (h ^ byte) * 0x100000001B3 & M
    return mix64(h)


def byte(pad_bytes, seed, key_hash, version, offset):
    block, within = divmod(offset, 8192)
    seed_mix = mix64(seed)
    first = mix64(key_hash ^ seed_mix)
    second = mix64((version << 44 | block) ^ rotate_left(seed_mix, 32) ^ first)
    words = [second, first ^ mix64(second)]
    for i in range(2, 8):
        words.append(mix64((rotate_left(first, 7 * i) + second & M) ^ i))
    turn = mix64(first ^ second) % 128 * 64
    line = b"".join(word.to_bytes(8, "little") for word in words)
    return pad_bytes[(turn + within) % 8192] ^ line[within % 64]


LETTERS = b" " * 11 + b"eeeeeetttttaaaaooooiiiinnnnssshhhrrrddlluucmwfgypbv,\n"


def shaped(random, compress, dedupe, offset):
    compress, dedupe = round(1000 * compress), round(1000 * dedupe)
    distinct = lambda units: -(-1000 * units // dedupe)
    unit, within = divmod(offset, 4096)
    shown = distinct(unit)
    if distinct(unit + 1) == shown:
        shown = shown - 256 if shown >= 256 else shown // 2
    random_bytes = 4096 if compress == 1000 else 4096000 // compress - 4
    return random(4096 * shown + (within if within < random_bytes else 0))


def trace(pad_bytes, seed, given):
    seed_mix = mix64(seed)
    for start in range(min(79, len(given) - 15)):
        for line in range(128):
            masked = given[start:start + 16], pad_bytes[64 * line:64 * line + 16]
            key = bytes(a ^ b for a, b in zip(*masked))
            second, y = int.from_bytes(key[8:], "little"), int.from_bytes(key[:8], "little")
            x = second ^ mix64(y)
            version, block = divmod(unmix64(y) ^ rotate_left(seed_mix, 32) ^ x, 1 << 44)
            key_hash = unmix64(x) ^ seed_mix
            offset = block * 8192 + (64 * line - mix64(x ^ y) % 128 * 64) % 8192 - start
            expected = (byte(pad_bytes, seed, key_hash, version, offset + i) for i in range(len(given)))
            if len(given) >= 24 and offset >= 0 and all(map(int.__eq__, expected, given)):
                return key_hash, version, offset
    return None


if __name__ == "__main__" and sys.argv[1] == "trace":
    seed = int(sys.argv[2])
    print(*(trace(pad(seed), seed, sys.stdin.buffer.read()) or ["no content of this seed"]))
elif __name__ == "__main__":
    form = sys.argv.pop(1) if sys.argv[1].startswith("--") else ""
    ratios = [float(sys.argv.pop(1)) for _ in range(2)] if form == "--shaped" else []
    seed, key, version, offset, length = sys.argv[1], sys.argv[2], *sys.argv[3:6]
    seed, version, offset, length = int(seed), int(version), int(offset), int(length)
    p, k = pad(seed), hash_text(key)
    random = lambda at: byte(p, seed, k, version, at)
    of = {"": random, "--text": lambda at: LETTERS[random(at) % 64], "--shaped": lambda at: shaped(random, *ratios, at)}
    print(bytes(of[form](offset + i) for i in range(length)).hex())
