import { serveTasks } from '@farebox/core/threads/serve-tasks';
import { readPools } from './llama-pools.ts';

serveTasks(readPools);
