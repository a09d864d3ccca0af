/**
 * The reference library, loaded when MPP is first asked for or paid by: it takes more than half a second of processor time and 40 MB of
 * memory, which whoever sells nothing by MPP would pay at each start.
 */
import { onceLoaded } from '../../relayer/once-loaded.ts';

/** What it has for challenges, credentials and receipts. */
export const mppLibrary = onceLoaded(() => import('mppx'));

export type MppLibrary = Awaited<ReturnType<typeof mppLibrary>>;
