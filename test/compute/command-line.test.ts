import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  buildCommandLine,
  type ParameterAction,
  type ParameterType,
  quoteCommand,
  replacePathValues,
  type StoredParameter,
} from '../../src/compute/command-line.ts';
import { buildEnvironment } from '../../src/compute/environment.ts';
import { programName, withVersion } from '../../src/compute/image-name.ts';

const PROGRAM = { execshell: 'python3', selfpath: '/usr/local/bin', selfexec: 'thing' };

const parameter = (
  type: ParameterType,
  flag: string,
  value: StoredParameter['value'],
  action: ParameterAction = 'store',
): StoredParameter => ({ type, flag, value, action });

test('the entrypoint has the shell only if there is one', () => {
  assert.deepEqual(buildCommandLine(PROGRAM, []).entrypoint, ['python3', '/usr/local/bin/thing']);
  assert.deepEqual(buildCommandLine({ execshell: '', selfpath: '', selfexec: 'thing' }, []).entrypoint, ['thing']);
});

test('parameters are ordered by type and spelled as the protocol says', () => {
  const line = buildCommandLine(PROGRAM, [
    parameter('boolean', '--slow', false, 'store_false'),
    parameter('boolean', '--quick', true, 'store_true'),
    parameter('boolean', '--off', false, 'store_true'),
    parameter('boolean', '--on', true, 'store_false'),
    parameter('float', '--ratio', 2),
    parameter('float', '--half', -0.5),
    parameter('integer', '--count', -1),
    parameter('string', '--word', 'two words'),
    parameter('string', '--empty', ''),
    parameter('path', '--where', 'home/a'),
    parameter('unextpath', '--there', 'home/b,home/c'),
  ]);
  assert.deepEqual(line.arguments, [
    ...['--there', 'home/b,home/c', '--where', 'home/a', '--word', 'two words', '--empty', ''],
    ...['--count', '-1', '--ratio', '2.0', '--half', '-0.5', '--slow', '--quick'],
  ]);
  assert.deepEqual(line.pathFlags, ['--there', '--where']);
});

test('floats are never written like integers, and keep their value', () => {
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
      const text = buildCommandLine(PROGRAM, [parameter('float', '-f', value)]).arguments[1] ?? '';
      assert.doesNotMatch(text, /^-?\d+$/);
      assert.equal(Number(text), value === 0 ? 0 : value);
    }),
  );
});

test('only the values of path flags are replaced', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.constantFrom('--a', '--b'), fc.string())), (pairs) => {
      const replaced = replacePathValues(pairs.flat(), ['--a'], '/in');
      assert.deepEqual(
        replaced,
        pairs.flatMap(([flag, value]) => [flag, flag === '--a' ? '/in' : value]),
      );
    }),
  );
  assert.deepEqual(replacePathValues(['--a'], ['--a'], '/in'), ['--a']);
});

test('a quoted command reads back as the same words', () => {
  const words = ['sh', '-c', 'a "b" $c', "it's", '', '*', '\\', 'ü'];
  const text = execFileSync('sh', ['-c', `printf '%s\\0' ${quoteCommand(words)}`], { encoding: 'utf8' });
  assert.deepEqual(text.split('\0').slice(0, -1), words);
});

test('the environment tells of parent and workflow where there are any', () => {
  const facts = {
    jobId: 'chris-jid-2',
    instanceId: 2,
    owner: { username: 'alice', email: 'a@example.org', token: 't' },
    previous: null,
    workflow: null,
  };
  const root = {
    CHRIS_JID: 'chris-jid-2',
    CHRIS_PLG_INST_ID: '2',
    CHRIS_USER_USERNAME: 'alice',
    CHRIS_USER_EMAIL: 'a@example.org',
    CHRIS_USER_TOKEN: 't',
  };
  assert.deepEqual(buildEnvironment(facts), root);
  const instances = [
    { title: 'one', instanceId: 2 },
    { title: 'two', instanceId: 3 },
  ];
  const previous = { jobId: 'chris-jid-1', instanceId: 1 };
  assert.deepEqual(buildEnvironment({ ...facts, previous, workflow: { workflowId: 5, pipelineId: 6, instances } }), {
    ...root,
    CHRIS_PREV_PLG_INST_ID: '1',
    CHRIS_PREV_JID: 'chris-jid-1',
    CHRIS_WORKFLOW_ID: '5',
    CHRIS_PIPELINE_ID: '6',
    CHRIS_WORKFLOW_PLG_INSTANCES: 'one:2,two:3',
  });
});

test('image references give their program and their version', () => {
  for (const image of ['pl-x', 'fnndsc/pl-x:1', 'host:5000/a/pl-x', 'pl-x@sha256:00', 'host:5000/pl-x:1@sha256:00']) {
    assert.equal(programName(image), 'pl-x', image);
  }
  assert.equal(withVersion('host:5000/pl-x'), 'host:5000/pl-x:latest');
  assert.equal(withVersion('pl-x:1'), 'pl-x:1');
  assert.equal(withVersion('pl-x@sha256:00'), 'pl-x@sha256:00');
});
