import { serveTasks } from '@farebox/core/threads/serve-tasks';
import { readCode } from '../../../code-analysis/bytecode/reach.ts';

serveTasks(readCode);
