import { serveTasks } from '../threads/serve-tasks.ts';
import { draw } from './draw.ts';

serveTasks(draw);
