import { serveTasks } from '../threads/serve-tasks.ts';
import { writeFile } from './readings-file.ts';

serveTasks(writeFile);
