# SPDX-License-Identifier: BSD-3-Clause
"""Holds `pinwheel hpu disas` against `riscv64-unknown-elf-objdump -d -M no-aliases`.

    check_disas.py PINWHEEL FOLDER IMAGE...

Images, and words: every 16-bit one, and random ones of 32 bits, of which half are near an
encoding that exists. objdump knows more names of CSRs than handlers may read; a number and a
name count as equal there. What is no instruction of rv32imafdc_zicsr is data to both, whatever
they call it, except where objdump is of another mind (known()).
"""

import os
import random
import re
import subprocess
import sys

WORDS = 12000
TOOL = "riscv64-unknown-elf-"
LINE = re.compile(r"^\s*([0-9a-f]{8}):\s+([0-9a-f]{4}(?:[0-9a-f]{4})?)\s+(.*)$")
DATA = re.compile(r"^\.(word|short|2byte|4byte|insn)\b|^c?\.?unimp$")


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.decode()}")
    return done.stdout.decode()


def normal(text):
    """An instruction without comments and symbols; what is data, as such."""
    text = re.sub(r"\s*(#|<).*$", "", text)
    text = re.sub(r"\s+", " ", text.strip())
    if DATA.match(text):
        return "data"
    if text.startswith("csr"):
        name, operands = text.split(" ", 1)
        operands = operands.split(",")
        text = f"{name} {operands[0]},csr,{operands[2]}"
    return text


def listing(text):
    lines = {}
    for line in text.splitlines():
        match = LINE.match(line)
        if match:
            lines[int(match[1], 16)] = (match[2], normal(match[3]))
    return lines


def known(code, ours, theirs):
    """Where the two may differ, with what the specification says."""
    if ours == "data" and re.search(r"(s[rl][la]i?) .*,0x[23][0-9a-f]$", theirs):
        return True  # shifts by 32 and more are reserved
    if ours == "data" and code == "6101":
        return True  # c.addi16sp of 0 is reserved
    if ours == "data" and theirs.endswith(",unknown"):
        return True  # rounding modes 5 and 6 are reserved
    if theirs == "data" and ours.startswith("fcvt.d."):
        return True  # exact, whatever the rounding mode
    # Fields of a fence that have no meaning yet are to be ignored.
    return theirs == "data" and ours.startswith("fence ") and int(code, 16) & 0xF00FFF80 != 0


def compare(pinwheel, image):
    ours = listing(run(pinwheel, "hpu", "disas", image))
    theirs = listing(run(TOOL + "objdump", "-d", "-M", "no-aliases", image))
    wrong = 0
    for address, (code, text) in sorted(ours.items()):
        other = theirs.get(address, ("", ""))[1]
        if other != text and not known(code, text, other):
            wrong += 1
            if wrong <= 40:
                print(f"{image}: {address:08x} {code}: ours {text!r}, objdump {theirs.get(address)}")
    if not ours:
        sys.exit(f"{image}: nothing to compare")
    print(f"{image}: {len(ours)} instructions, {wrong} differ")
    return wrong


def build(folder, name, words):
    """An image with one function that holds the words, each (bytes, value)."""
    source, image = os.path.join(folder, name + ".s"), os.path.join(folder, name + ".elf")
    with open(source, "w", encoding="ascii") as file:
        file.write(".text\n.globl words\n.type words,@function\nwords:\n")
        for size, value in words:
            file.write(f".{'half' if size == 2 else 'word'} 0x{value:x}\n")
        file.write(".size words,.-words\n")
    run(TOOL + "as", "-march=rv32imafdc_zicsr", "-mabi=ilp32", "-o", image + ".o", source)
    # Without the marks of data, objdump takes it for code.
    run(TOOL + "objcopy", "-w", "--strip-symbol=$*", image + ".o")
    run(TOOL + "ld", "-m", "elf32lriscv", "-Ttext=0x1d000000", "-e", "words", "-o", image,
        image + ".o")
    return image


def random_word(rng):
    majors = [0x37, 0x17, 0x6F, 0x67, 0x63, 0x03, 0x23, 0x13, 0x33, 0x0F, 0x73, 0x2F,
              0x07, 0x27, 0x43, 0x47, 0x4B, 0x4F, 0x53]
    word = rng.getrandbits(32) | 3
    if rng.random() < 0.9:
        word = word & ~0x7F | rng.choice(majors)
    if rng.random() < 0.5:
        word &= rng.choice([0x01FFFFFF, 0x41FFFFFF, 0x03FFFFFF, 0xF9FFFFFF, 0xFA0FFFFF, 0xD23FFFFF])
    return word & ~0x10 if word & 0x1F == 0x1F else word  # longer than 32 bits


def main():
    pinwheel, folder, images = sys.argv[1], sys.argv[2], sys.argv[3:]
    os.makedirs(folder, exist_ok=True)
    rng = random.Random(8)
    wrong = sum(compare(pinwheel, image) for image in images)
    short = [(2, n) for n in range(65536) if n & 3 != 3]
    for start in range(0, len(short), 12000):
        wrong += compare(pinwheel, build(folder, f"short{start}", short[start:start + 12000]))
    for part in range(WORDS // 6000):
        words = [(4, random_word(rng)) for _ in range(6000)]
        wrong += compare(pinwheel, build(folder, f"long{part}", words))
    sys.exit(1 if wrong else 0)


main()
