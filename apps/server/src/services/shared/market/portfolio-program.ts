import { planPortfolio } from '../../../quant/optimize.ts';
import { serveTasks } from '../../../threads/serve-tasks.ts';

serveTasks(planPortfolio);
