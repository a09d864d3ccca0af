/** The page can be read without it: it copies commands, and gets a trial key. */
import { codeBlock } from './dom.js';
import { getTrialKey } from './trial-key.js';
import { offerWebTools } from './web-tools.js';

for (const block of document.querySelectorAll('.code[data-copy]')) {
  const text = block.querySelector('code').textContent;
  block.replaceChildren(...codeBlock(text, block.dataset.copy).childNodes);
}

const button = document.getElementById('get-trial');
button?.addEventListener('click', () => {
  void getTrialKey(button, document.getElementById('trial'), (key) => {
    const commands = document.querySelector('#first-call .code');
    const text = commands.querySelector('code').textContent.replace(/(_API_KEY=).*/, `$1${key}`);
    commands.replaceChildren(...codeBlock(text, commands.dataset.copy).childNodes);
  });
});
void offerWebTools();
