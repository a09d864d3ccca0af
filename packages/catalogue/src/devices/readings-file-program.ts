import { serveTasks } from '@farebox/core/threads/serve-tasks';
import { writeFile } from './readings-file.ts';

serveTasks(writeFile);
