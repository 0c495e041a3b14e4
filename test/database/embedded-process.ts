/** A process that holds the embedded database of a folder until its standard input ends: `embedded-process.ts <folder>`. */
import { once } from 'node:events';
import { openEmbedded } from '../../src/database/embedded.ts';

const [, , folder = ''] = process.argv;
const embedded = await openEmbedded(folder, {
  asServer: false,
  onLost: (error) => {
    throw error;
  },
});
process.stdout.write(`${embedded.url}\n`);
process.stdin.resume();
await once(process.stdin, 'end');
await embedded.close();
