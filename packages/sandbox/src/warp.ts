/**
 * `npm run sandbox:warp -- 180d`: lets time pass for the yield of the running sandbox, and for nothing else. The clocks of
 * its chains stay, because a chain that is ahead of the world refuses every payment as expired.
 */
import { runCommand, UsageError } from '../../process/src/run-command.ts';
import { StartError } from '../../process/src/start-error.ts';
import { passTime } from './chain/lending/pass-time.ts';
import { connect } from './chain/node.ts';
import { dataDirOf } from './data-dir.ts';
import { askSolana } from './solana/ask.ts';
import { secondsAsked } from './time-asked.ts';
import { environmentOfRunningWorld } from './world.ts';

const USAGE = 'npm run sandbox:warp -- <days>d, or <hours>h';

await runCommand(USAGE, async () => {
  const words = process.argv.slice(2);
  const seconds = secondsAsked(words);
  if (seconds === null) throw new UsageError('name how much time passes, from 1h to 3650d, such as 180d');
  const environment = environmentOfRunningWorld(process.env);
  if (environment === null)
    throw new StartError(`no sandbox runs on ${dataDirOf(process.env)}; start one with npm start`);
  const { UPSTREAM_BASE_BASE_URL: base, UPSTREAM_SOLANA_BASE_URL: solana } = environment;
  if (base === undefined && solana === undefined)
    throw new StartError('the running sandbox has no chain of its own: their addresses were configured');
  if (base !== undefined) await passTime(connect(base), seconds);
  if (solana !== undefined) await askSolana(solana, 'sandbox_passInterest', seconds);
  process.stdout.write(`${words[0]} passed for the lending protocols and the vault. The clock stayed.\n`);
  return 0;
});
