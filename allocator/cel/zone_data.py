#!/usr/bin/env python3
"""Writes zone_data.c from a folder of compiled time zones in the slim form (zic -b slim), for instance:

    zone_data.py FOLDER VERSION > zone_data.c

Only what an offset depends on is kept: abbreviations, leap seconds and most changes that change nothing are left out, and zones
that then agree share their history.
"""
import os
import re
import struct
import sys

DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_"


def read_zone(data):
    """Offset before all changes, [(second, offset)], and the rule for the time behind them."""
    def counts(at):
        return struct.unpack(">6I", data[at + 20:at + 44])

    isut, isstd, leap, time, kind, char = counts(0)
    at = 44 + time * 5 + kind * 6 + char + leap * 8 + isstd + isut  # skip the 32-bit part
    isut, isstd, leap, time, kind, char = counts(at)
    at += 44
    seconds = struct.unpack(">%dq" % time, data[at:at + 8 * time])
    at += 8 * time
    kinds = data[at:at + time]
    at += time
    offsets = [struct.unpack(">l", data[at + 6 * k:at + 6 * k + 4])[0] for k in range(kind)]
    at += kind * 6 + char + leap * 12 + isstd + isut
    rule = read_rule(data[at + 1:-1].decode())
    changes, current = [], offsets[0]
    for i, (second, k) in enumerate(zip(seconds, kinds)):
        if offsets[k] != current or (rule and i == len(seconds) - 1):  # the last one is where the rule begins
            current = offsets[k]
            changes.append((second, current))
    return offsets[0], tuple(changes), rule


def read_time(text):
    """[+-]h[:m[:s]] in seconds."""
    sign = -1 if text.startswith("-") else 1
    parts = [int(p) for p in text.lstrip("+-").split(":")] + [0, 0]
    return sign * (parts[0] * 3600 + parts[1] * 60 + parts[2])


def read_rule(text):
    """A POSIX TZ text with two offsets: (standard, other, (month, week, day, seconds) twice); else None."""
    match = re.fullmatch(r"(?:<[^>]+>|[A-Za-z]+)([-+0-9:]+)(?:<[^>]+>|[A-Za-z]+)([-+0-9:]*),([^,]+),([^,]+)", text)
    if not match:
        return None
    standard = -read_time(match[1])
    other = -read_time(match[2]) if match[2] else standard + 3600
    days = []
    for day in match[3], match[4]:
        date, _, time = day.partition("/")
        month, week, weekday = (int(n) for n in date[1:].split("."))
        days.append((month, week, weekday, read_time(time or "2")))
    return standard, other, days[0], days[1]


def main(folder, version):
    zones = {}
    for path, _, names in os.walk(folder):
        for name in names:
            full = os.path.join(path, name)
            with open(full, "rb") as file:
                data = file.read()
            if data[:4] == b"TZif":
                zones[os.path.relpath(full, folder)] = read_zone(data)
    histories = sorted(set(zones.values()), key=repr)
    rules = sorted({h[2] for h in histories if h[2]})
    steps = {}
    for first, changes, _ in histories:
        second, offset = 0, first
        for next_second, next_offset in changes:
            step = next_second - second, next_offset - offset
            steps[step] = steps.get(step, 0) + 1
            second, offset = next_second, next_offset
    steps = sorted(steps)
    assert len(steps) <= len(DIGITS) ** 2
    number = {step: DIGITS[i // 64] + DIGITS[i % 64] for i, step in enumerate(steps)}

    print("/* The time zones of the tz database, version %s, written by zone_data.py. */" % version)
    print("/* clang-format off */")
    print('#include "allocator/cel/zone_internal.h"\n')
    print('#include "allocator/base/compiler.h"\n\n#include "allocator/base/banned.h"\n')
    print("static const struct zone_step steps[] = {")
    line = "   "
    for seconds, change in steps:
        item = " {%d,%d}," % (seconds, change)
        if len(line) + len(item) > 118:
            print(line)
            line = "   "
        line += item
    print(line + "\n};\n")
    print("static const struct zone_rule rules[] = {")
    for standard, other, start, end in rules:
        print("    {%d, %d, {%d, %d, %d, %d}, {%d, %d, %d, %d}}," % (standard, other, *start, *end))
    print("};\n")
    print("static const struct zone_history histories[] = {")
    for first, changes, rule in histories:
        text, second, offset = "", 0, first
        for next_second, next_offset in changes:
            text += number[next_second - second, next_offset - offset]
            second, offset = next_second, next_offset
        chunks = [text[i:i + 108] for i in range(0, len(text), 108)] or [""]
        print("    {%d, %d," % (first, rules.index(rule) + 1 if rule else 0))
        print("\n".join('     "%s"' % chunk for chunk in chunks) + "},")
    print("};\n")
    print("static const struct zone_name names[] = {")
    for name in sorted(zones):
        print('    {"%s", %d},' % (name, histories.index(zones[name])))
    print("};\n")
    print("const struct zone_data zone_data = {steps, rules, histories, names, ARRAY_SIZE(names)};")


main(*sys.argv[1:])
