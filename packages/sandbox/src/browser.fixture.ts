import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import chromium from '@sparticuz/chromium';
import { type Browser, chromium as playwright } from 'playwright-core';

/** Makes the package unpack the libraries that a bare machine lacks. */
const WITH_LIBRARIES = { AWS_LAMBDA_JS_RUNTIME: 'nodejs22.x' };
/** What the package looks for: there is a browser where it exists. */
const EXECUTABLE = 'chromium';
const UNPACK =
  "const { default: chromium } = await import('@sparticuz/chromium'); await chromium.executablePath();";

/** A real Chromium, which the package contains. It sends no requests except those of the page. */
export async function launchBrowser(): Promise<Browser> {
  await unpackBrowser(tmpdir());
  Object.assign(process.env, WITH_LIBRARIES);
  return playwright.launch({
    executablePath: await chromium.executablePath(),
    args: [
      ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
      ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
    ],
    timeout: 60_000,
    headless: true,
  });
}

/**
 * Unpacks the browser where the package looks for it. The package writes 200 MB in place, and another process that starts it meanwhile
 * finds half a program; so it is unpacked beside, and put there when it is whole, the executable last.
 *
 * @param folder for temporary files
 */
export async function unpackBrowser(folder: string): Promise<void> {
  if (existsSync(join(folder, EXECUTABLE))) return;
  const own = mkdtempSync(join(folder, `${EXECUTABLE}-`));
  try {
    await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', UNPACK], {
      cwd: import.meta.dirname,
      env: { ...process.env, ...WITH_LIBRARIES, TMPDIR: own },
      timeout: 120_000,
    });
    const names = readdirSync(own).filter((name) => name !== EXECUTABLE);
    for (const name of [...names, EXECUTABLE]) putThere(join(own, name), join(folder, name));
  } finally {
    rmSync(own, { recursive: true, force: true });
  }
}

/** Moves a file or a folder, unless another process has put its own there first. */
function putThere(from: string, to: string): void {
  try {
    if (!existsSync(to)) renameSync(from, to);
  } catch (error) {
    if (!existsSync(to)) throw error;
  }
}
