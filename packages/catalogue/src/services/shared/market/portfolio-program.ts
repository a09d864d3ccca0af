import { serveTasks } from '@farebox/core/threads/serve-tasks';
import { planPortfolio } from '../../../quant/optimize.ts';

serveTasks(planPortfolio);
