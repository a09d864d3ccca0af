import { serveTasks } from '../threads/serve-tasks.ts';
import { readPools } from './llama-pools.ts';

serveTasks(readPools);
