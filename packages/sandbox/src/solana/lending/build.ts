/**
 * `npm run sandbox:build-solana-program`: compiles the double of the lending program and writes it beside this file. Only
 * a developer who changed its source runs it; it needs clang 14, on the path or named by CLANG. The sandbox runs what
 * it wrote and needs no compiler.
 */
import { writeFileSync } from 'node:fs';
import { compile, findClang } from './compile.ts';
import { MANIFEST_FILE, PROGRAM_FILE, sha256, sourceSha256 } from './program.ts';

const clang = findClang(process.env);
if (clang === null) {
  process.stderr.write('farebox: clang 14 was not found; install it, or name it in CLANG\n');
  process.exitCode = 1;
} else {
  const program = compile(clang.path);
  writeFileSync(PROGRAM_FILE, program);
  const manifest = { programSha256: sha256(program), sourceSha256: sourceSha256(), compiler: clang.version };
  writeFileSync(MANIFEST_FILE, `${JSON.stringify(manifest, null, 2)}\n`);
  process.stdout.write(`${PROGRAM_FILE}: ${program.length} bytes, made by ${clang.version}\n`);
}
