"""The checksum that ``run.json`` and ``summary.json`` hold: CRC-64/NVME."""

from __future__ import annotations

import re

_POLYNOMIAL = 0x9A6C9329AC4BC9B5
_ALL_ONES = 0xFFFF_FFFF_FFFF_FFFF
_MARK = re.compile(rb"crc64-nvme:([0-9a-f]{16})")


def _table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
        table.append(crc)
    return tuple(table)


_TABLE = _table()


def crc64_nvme(content: bytes) -> int:
    """Return the CRC-64/NVME of all bytes."""
    crc = _ALL_ONES
    table = _TABLE
    for byte in content:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ _ALL_ONES


def is_whole(content: bytes) -> bool | None:
    """Tell whether the checksum in a file is right; ``None`` where there is none."""
    marks = list(_MARK.finditer(content))
    if not marks:
        return None
    mark = marks[-1]
    zeroed = content[: mark.start(1)] + b"0" * 16 + content[mark.end(1) :]
    return crc64_nvme(zeroed) == int(mark.group(1), 16)
