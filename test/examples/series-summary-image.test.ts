/** Needs a container engine on this machine; skipped without one. */
import assert from 'node:assert/strict';
import { chmod, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import Docker from 'dockerode';
import { ensureImage, ImageNotBuilt } from '../../examples/plugins/pl-series-summary/image.ts';
import { descriptor } from '../../examples/plugins/pl-series-summary/src/descriptor.ts';
import type { Summary } from '../../examples/plugins/pl-series-summary/src/summary.ts';
import { findContainerEngine } from '../../src/commands/demo/container-engine.ts';
import { exampleData, temporaryFolder } from './series-summary-runs.ts';

const engine = await findContainerEngine(process.env);

test('an engine that does not answer is an error that says so', async (context) => {
  const socketPath = join(await temporaryFolder(context), 'nobody.sock');
  await assert.rejects(ensureImage(new Docker({ socketPath })), (error) => {
    assert.ok(error instanceof ImageNotBuilt);
    assert.match(error.message, /does not answer: .*nobody\.sock/);
    return true;
  });
});

test('the image is built once and runs as the descriptor says, without rights', {
  skip: engine ? false : 'no container engine answers',
}, async (context) => {
  assert.ok(engine);
  const { docker } = engine;
  await ensureImage(docker);
  assert.equal(await ensureImage(docker), 'present');
  const outputFolder = await temporaryFolder(context);
  await chmod(outputFolder, 0o777);
  const container = await docker.createContainer({
    Image: descriptor.dock_image,
    Cmd: [descriptor.execshell, join(descriptor.selfpath, descriptor.selfexec), '-n', '1', '/incoming', '/outgoing'],
    User: '65534',
    HostConfig: {
      Binds: [`${exampleData}:/incoming:ro`, `${outputFolder}:/outgoing`],
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
    },
  });
  context.after(() => container.remove({ force: true }));
  await container.start();
  assert.equal((await container.wait()).StatusCode, 0);
  const summary: Summary = JSON.parse(await readFile(join(outputFolder, 'summary.json'), 'utf8'));
  assert.deepEqual([summary.series.length, summary.volumes.length, summary.problems.length], [4, 2, 0]);
});
