import { serveTasks } from '@farebox/core/threads/serve-tasks';
import { draw } from './draw.ts';

serveTasks(draw);
