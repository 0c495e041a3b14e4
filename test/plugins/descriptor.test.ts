import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { InvalidFields } from '../../src/hypermedia/errors.ts';
import { BUILTIN_PLUGINS } from '../../src/plugins/builtin-descriptors.ts';
import { parseDescriptor, parseDescriptorFile } from '../../src/plugins/descriptor.ts';

const LEAST = {
  name: 'pl-least',
  version: '1.0',
  type: 'ds',
  dock_image: 'example/least',
  execshell: 'sh',
  selfpath: '/bin',
  selfexec: 'least',
  parameters: [],
};
const WORD = { name: 'word', type: 'str', optional: true, default: 'hello', flag: '--word', short_flag: '-w' };

/** Fields that the refusal of a descriptor names. */
function complaints(value: unknown, source?: 'file' | 'store'): readonly string[] {
  try {
    parseDescriptor(value, source);
    return [];
  } catch (error) {
    if (!(error instanceof InvalidFields)) throw error;
    return Object.keys(error.fields);
  }
}

const withParameter = (members: object) => ({ ...LEAST, parameters: [{ ...WORD, ...members }] });
const without = (name: string) => Object.fromEntries(Object.entries(LEAST).filter(([key]) => key !== name));

describe('a descriptor that is refused', () => {
  it('is no object', () => {
    for (const value of [null, 1, 'text', true, [], [LEAST]]) assert.deepEqual(complaints(value), ['fname']);
  });

  it('lacks a required member', () => {
    const required = ['name', 'version', 'dock_image', 'execshell', 'selfpath', 'selfexec', 'parameters'];
    for (const name of required) assert.deepEqual(complaints(without(name)), ['fname'], name);
    assert.deepEqual(complaints(without('type')), ['type']);
  });

  it('has a blank, null, too long or badly typed member', () => {
    const longest = {
      name: 100,
      dock_image: 500,
      execshell: 50,
      selfpath: 512,
      selfexec: 50,
      description: 2000,
      title: 400,
    };
    for (const [name, length] of Object.entries(longest)) {
      assert.deepEqual(complaints({ ...LEAST, [name]: 'x'.repeat(length) }), [], name);
      assert.deepEqual(complaints({ ...LEAST, [name]: 'x'.repeat(length + 1) }), [name]);
      for (const wrong of [null, ['x'], {}, true]) assert.deepEqual(complaints({ ...LEAST, [name]: wrong }), [name]);
    }
    for (const name of ['name', 'dock_image', 'execshell', 'selfpath', 'selfexec', 'type']) {
      assert.deepEqual(complaints({ ...LEAST, [name]: '  ' }), [name]);
    }
    assert.deepEqual(complaints({ ...LEAST, type: 'DS' }), ['type']);
    assert.deepEqual(complaints({ ...LEAST, icon: 'no url' }), ['icon']);
    assert.deepEqual(complaints({ ...LEAST, title: 'NUL \0' }), ['title']);
  });

  it('names all members of one group at once, and only the first group that fails', () => {
    assert.deepEqual(complaints({ ...LEAST, name: '', title: null, version: '1.0.0.0.0.0' }), ['name', 'title']);
    assert.deepEqual(complaints({ ...LEAST, name: '', version: 'v1' }), ['fname']);
  });

  it('has a version of another form', () => {
    for (const version of ['v1', '1.0a', '1-0', '', ' 1.0', '1.0\n', 1, 1.5, null, ['1']]) {
      assert.deepEqual(complaints({ ...LEAST, version }), ['fname'], JSON.stringify(version));
    }
    assert.deepEqual(complaints({ ...LEAST, version: '1.0.0.0.0.0' }), ['version']);
  });

  it('has a limit that is none', () => {
    const wrong = {
      min_cpu_limit: [
        '500',
        '0m',
        '1.5m',
        'm',
        ' 5m',
        '5m\n',
        '-5m',
        0,
        -1,
        0.5,
        true,
        null,
        [],
        {},
        2147483648,
        '9999999999m',
      ],
      max_memory_limit: ['1G', '1024Ki', '0Mi', '1.5Gi', 'Gi', ' 5 Mi', '200', 0, -1, 1.5, true, null, '4000000Gi'],
      min_gpu_limit: [-1, '-1', 'many', 0.5, true, null, [1]],
      min_number_of_workers: [0, '0', -3, 'x', 1.5, true, null],
    };
    for (const [name, values] of Object.entries(wrong)) {
      for (const value of values)
        assert.deepEqual(complaints({ ...LEAST, [name]: value }), ['fname'], `${name} ${JSON.stringify(value)}`);
    }
    for (const name of ['max_number_of_workers', 'max_gpu_limit']) {
      assert.deepEqual(complaints({ ...LEAST, [name]: 3_000_000_000 }), [name]);
    }
  });

  it('has a maximum below the minimum that holds', () => {
    assert.deepEqual(complaints({ ...LEAST, min_cpu_limit: '3000m', max_cpu_limit: '2000m' }), ['fname']);
    assert.deepEqual(complaints({ ...LEAST, max_cpu_limit: '500m' }), ['fname'], 'the default minimum is 1000');
    assert.deepEqual(complaints({ ...LEAST, min_gpu_limit: 2, max_gpu_limit: 1 }), ['fname']);
  });

  it('has parameters that are none', () => {
    for (const parameters of [null, {}, 'x', [1], [null], [[]]])
      assert.deepEqual(complaints({ ...LEAST, parameters }), ['fname']);
  });

  it('has a parameter of a wrong form', () => {
    const wrong = [
      { type: 'string' },
      { type: 'constructor' },
      { type: null },
      { type: ['str'] },
      { default: null },
      { default: undefined },
      { optional: 'maybe' },
      { optional: null },
      { optional: false, ui_exposed: false },
      { type: 'path' },
      { type: 'unextpath', optional: false, default: '/a' },
    ];
    for (const members of wrong)
      assert.deepEqual(complaints(withParameter(members)), ['fname'], JSON.stringify(members));
  });

  it('has a parameter with a wrong member', () => {
    const wrong: readonly [string, object][] = [
      ['name', { name: 'x'.repeat(51) }],
      ['name', { name: null }],
      ['flag', { flag: '' }],
      ['flag', { flag: 'x'.repeat(53) }],
      ['short_flag', { short_flag: 'x'.repeat(53) }],
      ['action', { action: 'x'.repeat(21) }],
      ['action', { action: 'append' }],
      ['action', { action: 'store_true' }],
      ['help', { help: null }],
      ['value', { default: 'x'.repeat(601) }],
      ['value', { default: ['x'] }],
      ['value', { type: 'int', default: 1.5 }],
      ['value', { type: 'int', default: 3_000_000_000 }],
      ['value', { type: 'int', default: true }],
      ['value', { type: 'float', default: 'x' }],
      ['value', { type: 'bool', default: 'maybe' }],
    ];
    for (const [name, members] of wrong)
      assert.deepEqual(complaints(withParameter(members)), [name], JSON.stringify(members));
  });

  it('has two parameters of one name or flag', () => {
    const other = { ...WORD, name: 'other', flag: '--other' };
    assert.deepEqual(complaints({ ...LEAST, parameters: [WORD, other] }), [], 'short flags may be the same');
    assert.deepEqual(complaints({ ...LEAST, parameters: [WORD, { ...other, name: ' word ' }] }), ['fname']);
    assert.deepEqual(complaints({ ...LEAST, parameters: [WORD, { ...other, flag: '--word' }] }), ['fname']);
  });

  it('is refused for whatever is in it, never for a failure of ours', () => {
    const members = [
      ...Object.keys(LEAST),
      'min_cpu_limit',
      'max_memory_limit',
      'min_gpu_limit',
      'title',
      'icon',
      'stars',
    ];
    const parameter = fc.record(
      Object.fromEntries(
        ['name', 'type', 'optional', 'default', 'flag', 'short_flag', 'action', 'help', 'ui_exposed'].map((name) => [
          name,
          fc.oneof(fc.constant(Object.entries(WORD).find(([key]) => key === name)?.[1] ?? true), fc.jsonValue()),
        ]),
      ),
      { requiredKeys: [] },
    );
    const descriptor = fc
      .record(Object.fromEntries(members.map((name) => [name, fc.jsonValue()])), { requiredKeys: [] })
      .chain((some) => fc.array(parameter).map((parameters) => ({ ...LEAST, parameters, ...some })));
    fc.assert(
      fc.property(
        fc.oneof(fc.jsonValue(), descriptor),
        fc.constantFrom('file' as const, 'store' as const),
        (value, source) => {
          complaints(JSON.parse(JSON.stringify(value)), source);
        },
      ),
      { numRuns: 2000 },
    );
  });

  it('is a file that is not JSON, or nested without end', () => {
    for (const text of ['', '{', 'hello', '\xff', '['.repeat(200_000)]) {
      assert.throws(() => parseDescriptorFile(Buffer.from(text, 'latin1')), InvalidFields);
    }
    const deep = `{"min_cpu_limit":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
    assert.throws(
      () => parseDescriptorFile(Buffer.from(JSON.stringify(LEAST).replace('{', `${deep.slice(0, -1)},`))),
      InvalidFields,
    );
  });
});

describe('a descriptor that is accepted', () => {
  it('needs little; the rest has defaults', () => {
    const { meta, version, parameters } = parseDescriptor({ ...LEAST, colour: 'red', stars: 12, id: 7 });
    const blank = { title: '', public_repo: '', license: '', icon: '', category: '', authors: '', documentation: '' };
    assert.deepEqual(meta, { name: 'pl-least', type: 'ds', ...blank });
    assert.deepEqual(version, {
      version: '1.0',
      dock_image: 'example/least',
      description: '',
      execshell: 'sh',
      selfpath: '/bin',
      selfexec: 'least',
      min_number_of_workers: 1,
      max_number_of_workers: 2147483647,
      min_cpu_limit: 1000,
      max_cpu_limit: 2147483647,
      min_memory_limit: 200,
      max_memory_limit: 2147483647,
      min_gpu_limit: 0,
      max_gpu_limit: 0,
    });
    assert.deepEqual(parameters, []);
  });

  it('gives limits in any of their forms', () => {
    const limits = (members: object) => parseDescriptor({ ...LEAST, ...members }).version;
    assert.equal(limits({ min_cpu_limit: '500m' }).min_cpu_limit, 500);
    assert.equal(limits({ min_cpu_limit: 500 }).min_cpu_limit, 500);
    assert.equal(limits({ min_cpu_limit: '' }).min_cpu_limit, 1000);
    assert.equal(limits({ min_memory_limit: '2Gi' }).min_memory_limit, 2048);
    assert.equal(limits({ min_number_of_workers: '3' }).min_number_of_workers, 3);
    assert.equal(limits({ min_gpu_limit: 1 }).max_gpu_limit, 2147483647);
    assert.equal(limits({ max_gpu_limit: 2 }).max_gpu_limit, 2);
  });

  it('has parameters with typed defaults, and the action that a boolean default asks for', () => {
    const read = (members: object) => parseDescriptor(withParameter(members)).parameters[0];
    assert.deepEqual(read({}), { ...WORD, type: 'string', action: 'store', help: '', ui_exposed: true });
    assert.equal(read({ default: 5 })?.default, '5');
    assert.equal(read({ default: '\ud800' })?.default, '\ufffd', 'half a surrogate pair cannot be stored');
    assert.equal(read({ type: 'int', default: '7' })?.default, 7);
    assert.equal(read({ type: 'float', default: '2.5' })?.default, 2.5);
    assert.equal(read({ type: 'bool', default: 'true' })?.action, 'store_false');
    assert.equal(read({ type: 'bool', default: false })?.action, 'store_true');
    assert.equal(read({ type: 'bool', default: true, action: 'store_true' })?.action, 'store_true');
  });

  it('uses the long names of types in a store, which tells the stars', () => {
    const stored = { ...withParameter({ type: 'string' }), stars: 5 };
    assert.equal(parseDescriptor(stored, 'store').meta.stars, 5);
    assert.deepEqual(complaints(withParameter({ type: 'str' }), 'store'), ['fname']);
  });

  it('is that of each built-in plugin', () => {
    const names = BUILTIN_PLUGINS.map(({ meta, version }) => `${meta.name} ${version.version} ${meta.type}`);
    assert.deepEqual(names, [
      'pl-dircopy 2.1.2 fs',
      'pl-dircopy 2.1.3 fs',
      'pl-tsdircopy 1.2.1 ts',
      'pl-topologicalcopy 1.0.12 ts',
    ]);
  });
});
