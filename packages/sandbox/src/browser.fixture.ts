import chromium from '@sparticuz/chromium';
import { type Browser, chromium as playwright } from 'playwright-core';

/** A real Chromium, which the package contains. It sends no requests except those of the page. */
export async function launchBrowser(): Promise<Browser> {
  // This setting makes the package unpack the libraries that a bare machine lacks.
  process.env.AWS_LAMBDA_JS_RUNTIME = 'nodejs22.x';
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
