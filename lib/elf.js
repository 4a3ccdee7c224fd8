// Whether a file can be the addon of this processor, and is whole: what dlopen does not tell on Linux.
'use strict';

const fs = require('node:fs');

/** Of a program header in ELF64. */
const PROGRAM_HEADER_BYTES = 56;

/** e_machine in an ELF header, by process.arch. */
const ELF_MACHINES = { ia32: 3, arm: 40, x64: 62, arm64: 183, riscv64: 243, loong64: 258 };

/**
 * Of a file that is cut off dlopen ends the process by SIGBUS, and of another processor's it says that it
 * does not exist. What it maps ends where the last segment ends; section headers stand behind that.
 */
function checkElf(file) {
  const bytes = fs.readFileSync(file);
  const isLittleElf64 =
    bytes.length >= 64 && bytes.readUInt32BE(0) === 0x7f454c46 && bytes.readUInt16BE(4) === 0x201;
  if (!isLittleElf64) return; // dlopen says what it is
  const machine = bytes.readUInt16LE(18);
  const expected = ELF_MACHINES[process.arch] ?? machine;
  if (machine !== expected) {
    const arch = Object.keys(ELF_MACHINES).find((name) => ELF_MACHINES[name] === machine);
    throw new Error(`is built for ${arch ?? 'another processor'}, not for ${process.arch}`);
  }
  if (bytes.readUInt16LE(54) !== PROGRAM_HEADER_BYTES) return; // dlopen refuses it
  const numberAt = (offset) => Number(bytes.readBigUInt64LE(offset));
  const headers = numberAt(32);
  const headersEnd = headers + PROGRAM_HEADER_BYTES * bytes.readUInt16LE(56);
  const sectionsEnd = numberAt(40) + bytes.readUInt16LE(58) * bytes.readUInt16LE(60);
  let end = Math.max(headersEnd, sectionsEnd);
  if (headersEnd <= bytes.length) {
    for (let header = headers; header < headersEnd; header += PROGRAM_HEADER_BYTES) {
      end = Math.max(end, numberAt(header + 8) + numberAt(header + 32));
    }
  }
  if (bytes.length < end) throw new Error(`is truncated: ${bytes.length} of ${end} bytes`);
}

module.exports = { checkElf };
