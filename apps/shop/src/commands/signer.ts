/** `npm run signer`: holds a key that signs transactions, and signs for the server, which then needs none. Ends with SIGTERM or Ctrl-C. */
import { readConfig } from '@farebox/core/config';
import { heldKey } from '@farebox/core/rails/x402/held-key';
import { SIGNER } from '@farebox/core/relayer/signer-declared';
import { startSigner } from '@farebox/core/relayer/signer-process';
import { runCommand } from '@farebox/process/run-command';
import { StartError } from '@farebox/process/start-error';

const USAGE = 'SIGNER_KEY_FILE=… SIGNER_SOCKET=… npm run signer';

await runCommand(USAGE, async () => {
  const { signer } = readConfig(process.env, [SIGNER], { all: false });
  const { socket } = signer.settings;
  const key = keyIn(signer.secrets.reveal().key);
  const { close } = await startSigner(key, socket);
  const { address } = key;
  process.stdout.write(`Signs for ${address}. Name it to the server as signer:${socket}@${address}\n`);
  await new Promise<void>((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve());
  });
  await close();
  return 0;
});

function keyIn(text: string) {
  try {
    return heldKey(text);
  } catch (error) {
    throw new StartError(`SIGNER_KEY: ${error instanceof Error ? error.message : 'no private key'}`);
  }
}
