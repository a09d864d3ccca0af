/** In JavaScript: the entry of every npm script asks it too, on any Node from 18 on. */
import { readFileSync } from 'node:fs';

/** Whether a process with this id runs on this machine, whoever owns it. One that ended and that nobody waited for does not. */
export function isAlive(pid) {
  // 0 is what an empty file says; to the system it means our own group, and a negative id another group.
  if (!(pid > 0)) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (error.code !== 'EPERM') return false;
  }
  return !isZombie(pid);
}

/** Its state stands behind its name, which is in parentheses (proc(5)); only Linux has the file. */
function isZombie(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).startsWith('Z');
  } catch {
    return false;
  }
}
