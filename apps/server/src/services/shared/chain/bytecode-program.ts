import { readCode } from '../../../code-analysis/bytecode/reach.ts';
import { serveTasks } from '../../../threads/serve-tasks.ts';

serveTasks(readCode);
