/** How Node is started for programs that stay. In JavaScript: the entry of every npm script reads it, on any Node from 18 on. */

const QUIET = '--disable-warning=ExperimentalWarning';

/**
 * New objects live in two spaces. Left alone they grow to 64 MB each while a program loads, and stay so. With 8 MB a server holds a
 * third less (`docs/performance-notes.md` says what it costs). With `--expose-gc` a program may have what only its
 * start needed taken away when it has started.
 */
export const STAYING = [QUIET, '--max-semi-space-size=8', '--expose-gc'];

/** For the process that starts the sandbox and plays its parts: it has one user. */
export const PLAYING = [QUIET, '--max-semi-space-size=2', '--expose-gc'];

/**
 * The environment of a process with one user: glibc keeps what was freed for each thread by itself, unless there is one heap for all of
 * them. Other systems read nothing of it.
 */
export const ONE_HEAP = { MALLOC_ARENA_MAX: '1', MALLOC_TRIM_THRESHOLD_: '131072' };

/** For a small program that waits most of the time. */
export const WAITING = [QUIET, '--max-semi-space-size=1'];
