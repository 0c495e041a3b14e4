import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BuiltinEngine } from '../../src/compute/builtin.ts';
import { chooseContainerUser } from '../../src/compute/container-user.ts';
import { computeUrlProblem, engineKind } from '../../src/compute/registry.ts';
import { Bench, makeJob } from './bench.ts';

test('the scheme of an address picks the engine', () => {
  const kinds = {
    'builtin:': 'builtin',
    'process:/opt/my%20plugins': 'process',
    'process:///opt/plugins': 'process',
    'docker:': 'containers',
    'unix:///run/podman.sock': 'containers',
    'tcp://host:2375': 'containers',
    'tcp://[::1]:2375': 'containers',
    'http://localhost:30005/api/v1/': 'pfcon',
    'https://host/api/v1/': 'pfcon',
  };
  for (const [url, kind] of Object.entries(kinds)) {
    assert.equal(engineKind(url), kind, url);
    assert.equal(computeUrlProblem(url), null);
  }
  const wrong = [
    '',
    'host',
    'builtin',
    'process:',
    'process:relative',
    'process:/a%00',
    'process:/%zz',
    'unix:x',
    'tcp://host',
    'tcp://host:99999',
    'ftp://host/',
    'http://',
    'javascript:alert(1)',
  ];
  for (const url of wrong) assert.match(computeUrlProblem(url) ?? '', /https:\/\/.*process:/, url);
});

test('plugins without a program have ended at once, others are refused', async () => {
  await using bench = await Bench.open();
  const engine = new BuiltinEngine();
  const job = makeJob(bench, { image: 'localhost/fnndsc/pl-dircopy:2.1.3' });
  assert.equal((await engine.submit('plugin', job)).status, 'finishedSuccessfully');
  await new Promise<void>((resolve) => engine.watch('plugin', job, resolve));
  assert.deepEqual(await engine.collect(), []);
  const other = makeJob(bench, { image: 'fnndsc/pl-other:1' });
  await assert.rejects(engine.submit('plugin', other), { retry: false, message: /pl-dircopy.*"fnndsc\/pl-other:1"/ });
  assert.equal(await engine.inspect('plugin', other), null);
});

test('a container runs as root only where the operator or the lack of rights makes it', () => {
  const facts = { setting: '', server: { uid: 0, gid: 0 }, imageUser: '', rootless: false, podman: false };
  const choose = (more: Partial<typeof facts>) => chooseContainerUser({ ...facts, ...more });
  const ours = { uid: 1000, gid: 100 };
  assert.deepEqual(choose({}), { user: '65534:65534', owner: { uid: 65534, gid: 65534 }, keepId: false });
  for (const imageUser of ['root', '0', '0:0', 'root:root']) assert.equal(choose({ imageUser }).user, '65534:65534');
  assert.deepEqual(choose({ imageUser: 'app' }), { user: null, owner: null, keepId: false });
  assert.deepEqual(choose({ imageUser: '5:6' }), { user: null, owner: { uid: 5, gid: 6 }, keepId: false });
  assert.deepEqual(choose({ server: ours, imageUser: 'app' }), { user: '1000:100', owner: ours, keepId: false });
  assert.deepEqual(choose({ setting: 'image', server: ours }), { user: null, owner: null, keepId: false });
  assert.deepEqual(choose({ setting: '7:8' }), { user: '7:8', owner: { uid: 7, gid: 8 }, keepId: false });
  assert.deepEqual(choose({ server: ours, rootless: true, podman: true }), {
    user: '1000:100',
    owner: ours,
    keepId: true,
  });
  assert.deepEqual(choose({ server: ours, rootless: true }), { user: '0:0', owner: ours, keepId: false });
});
