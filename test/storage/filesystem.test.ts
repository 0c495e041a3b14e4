import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { crc32 } from 'node:zlib';
import { TooLarge } from '../../src/hypermedia/errors.ts';
import { AlreadyThere, BytesMissing, StorageFull, UnsafePath } from '../../src/storage/errors.ts';
import { FilesystemStorage } from '../../src/storage/filesystem.ts';

describe('storage in a directory', () => {
  let base: string;
  let root: string;
  let storage: FilesystemStorage;

  before(async () => {
    base = await mkdtemp(join(tmpdir(), 'storage-'));
    root = join(base, 'storage');
    storage = await FilesystemStorage.open(root, 7);
  });
  after(() => rm(base, { recursive: true, force: true }));

  const put = async (path: string, content: string) => {
    const file = await storage.receive(Readable.from([Buffer.from(content)]));
    try {
      await storage.place(file, path);
    } finally {
      await storage.discard(file);
    }
  };
  const incoming = () => readdir(join(root, '.incoming'));
  const names = async (path: string, special?: (path: string) => void) =>
    (await Array.fromAsync(storage.list(path, special))).map((file) => file.path).sort();

  describe('refuses', () => {
    const bad = [
      '',
      '/',
      '/etc/passwd',
      'a//b',
      'a/',
      '../x',
      'a/../../x',
      'a/./b',
      'a/\0b',
      'a/b\n',
      'a/\u0085',
      `a/${'é'.repeat(128)}`,
      '\ud800',
      '.incoming/7-x',
    ];
    for (const path of bad) {
      it(`the path ${JSON.stringify(path).slice(0, 40)} in every operation`, async () => {
        const file = await storage.receive(Readable.from([Buffer.from('x')]));
        await assert.rejects(storage.place(file, path), UnsafePath);
        await assert.rejects(storage.read(path), UnsafePath);
        await assert.rejects(storage.size(path), UnsafePath);
        await assert.rejects(storage.exists(path), UnsafePath);
        await assert.rejects(storage.move('a', path), UnsafePath);
        await assert.rejects(storage.move(path, 'a'), UnsafePath);
        await assert.rejects(storage.copy('a', path), UnsafePath);
        await assert.rejects(storage.copy(path, 'a'), UnsafePath);
        await assert.rejects(storage.remove(path), UnsafePath);
        await assert.rejects(storage.makeFolder(path), UnsafePath);
        await assert.rejects(names(path), UnsafePath);
        await assert.rejects(storage.takeBack(file.key, path), UnsafePath);
        assert.throws(() => storage.localPath(path), UnsafePath);
        await storage.discard(file);
        assert.deepEqual(await incoming(), []);
      });
    }

    it('to go through symbolic links that a program has planted, and leaves what they point to alone', async () => {
      const outside = join(base, 'outside');
      await mkdir(outside);
      await writeFile(join(outside, 'secret'), 'secret');
      await storage.makeFolder('planted');
      await symlink(outside, join(root, 'planted/folder'));
      await symlink(join(outside, 'secret'), join(root, 'planted/file'));
      await symlink('loop', join(root, 'planted/loop'));
      await symlink(join(base, 'nowhere'), join(root, 'planted/dangling'));
      await put('ordinary', 'ordinary');

      for (const path of ['planted/folder/secret', 'planted/folder/new', 'planted/loop/x']) {
        await assert.rejects(storage.read(path), UnsafePath, path);
        await assert.rejects(storage.size(path), UnsafePath, path);
        await assert.rejects(put(path, 'x'), UnsafePath, path);
        await assert.rejects(storage.move('ordinary', path), UnsafePath, path);
        await assert.rejects(storage.move(path, 'elsewhere'), UnsafePath, path);
        await assert.rejects(storage.copy('ordinary', path), UnsafePath, path);
        await assert.rejects(storage.copy(path, 'elsewhere'), UnsafePath, path);
        await assert.rejects(storage.remove(path), UnsafePath, path);
      }
      for (const path of ['planted/file', 'planted/loop', 'planted/dangling']) {
        await assert.rejects(storage.read(path), UnsafePath, path);
        await assert.rejects(storage.copy(path, 'elsewhere'), UnsafePath, path);
        await assert.rejects(storage.move(path, 'elsewhere'), UnsafePath, path);
        await assert.rejects(put(path, 'x'), AlreadyThere, path);
        assert.equal(await storage.size(path), null);
      }
      await assert.rejects(put('planted/dangling/x', 'x'), UnsafePath);
      await assert.rejects(storage.makeFolder('planted/folder/new'), UnsafePath);
      await assert.rejects(names('planted/folder'), UnsafePath);
      assert.throws(() => storage.localPath('planted/folder/secret'), UnsafePath);
      assert.throws(() => storage.localPath('planted/file'), UnsafePath);

      const special: string[] = [];
      assert.deepEqual(await names('planted', (path) => special.push(path)), []);
      assert.deepEqual(special.sort(), ['planted/dangling', 'planted/file', 'planted/folder', 'planted/loop']);
      await storage.remove('planted');
      assert.deepEqual(await readdir(outside), ['secret']);
      assert.equal(await readFile(join(outside, 'secret'), 'utf8'), 'secret');
      assert.equal(await storage.exists('planted'), false);
    });

    it('pipes and folders as files, without waiting for them', async () => {
      await storage.makeFolder('odd/folder');
      execFileSync('mkfifo', [join(root, 'odd/pipe')]);
      await assert.rejects(storage.read('odd/pipe'), UnsafePath);
      await assert.rejects(storage.read('odd/folder'), UnsafePath);
      assert.equal(await storage.size('odd/folder'), null);
      const special: string[] = [];
      assert.deepEqual(await names('odd', (path) => special.push(path)), []);
      assert.deepEqual(special, ['odd/pipe']);
      await storage.remove('odd');
      assert.equal(await storage.exists('odd'), false);
    });
  });

  describe('receiving', () => {
    it('leaves nothing behind when the source fails', async () => {
      const source = new PassThrough();
      source.write(randomBytes(100_000));
      const received = storage.receive(source);
      setImmediate(() => source.destroy(new Error('the client went away')));
      await assert.rejects(received, /the client went away/);
      assert.deepEqual(await incoming(), []);
    });

    it('leaves nothing behind when the source ends early without an error', async () => {
      const source = new PassThrough();
      source.write('half');
      const received = storage.receive(source);
      setImmediate(() => source.destroy());
      await assert.rejects(received, { code: 'ERR_STREAM_PREMATURE_CLOSE' });
      assert.deepEqual(await incoming(), []);
    });

    it('refuses more than the limit and stops reading', async () => {
      const source = Readable.from([Buffer.alloc(600), Buffer.alloc(401), Buffer.alloc(10)]);
      await assert.rejects(storage.receive(source, { maxBytes: 1000 }), TooLarge);
      assert.equal(source.destroyed, true);
      assert.deepEqual(await incoming(), []);
      const whole = await storage.receive(Readable.from([Buffer.alloc(1000)]), { maxBytes: 1000 });
      assert.equal(whole.sizeBytes, 1000);
      await storage.discard(whole);
    });

    it('says so when the disk is full', async (t) => {
      const small = join(base, 'small');
      await mkdir(small);
      if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', small]).status !== 0)
        return t.skip('may not mount a small disk here');
      try {
        const full = await FilesystemStorage.open(join(small, 'storage'), 7);
        await assert.rejects(full.receive(Readable.from([Buffer.alloc(700_000), Buffer.alloc(700_000)])), StorageFull);
        assert.deepEqual(await readdir(join(small, 'storage/.incoming')), []);
        await full.discard(await full.receive(Readable.from([Buffer.alloc(700_000)])));
      } finally {
        execFileSync('umount', [small]);
      }
    });

    it('measures what comes', async () => {
      const bytes = randomBytes(5_000_000);
      const file = await storage.receive(
        Readable.from([bytes.subarray(0, 3), bytes.subarray(3, 4_000_000), bytes.subarray(4_000_000)]),
      );
      assert.equal(file.sizeBytes, bytes.length);
      assert.deepEqual(file.sha256, createHash('sha256').update(bytes).digest());
      assert.equal(file.crc32, crc32(bytes));
      assert.deepEqual(await storage.readIncoming(file), bytes);
      await storage.place(file, 'measured/file');
      assert.deepEqual(await buffer(await storage.read('measured/file')), bytes);
      assert.deepEqual(await incoming(), []);
    });

    it('takes an empty file', async () => {
      const file = await storage.receive(Readable.from([]));
      assert.equal(file.sizeBytes, 0);
      assert.equal(file.sha256.toString('hex'), createHash('sha256').digest('hex'));
      await storage.place(file, 'measured/empty');
      assert.equal(await text(await storage.read('measured/empty')), '');
    });
  });

  describe('placing', () => {
    it('never overwrites', async () => {
      await put('taken/a', 'first');
      await assert.rejects(put('taken/a', 'second'), AlreadyThere);
      await assert.rejects(put('taken', 'second'), AlreadyThere);
      await assert.rejects(put('taken/a/b', 'second'), UnsafePath);
      assert.equal(await text(await storage.read('taken/a')), 'first');
    });

    it('lets one of many win', async () => {
      const outcomes = await Promise.allSettled(Array.from({ length: 10 }, (_, i) => put('race/deep/er/x', String(i))));
      const winners = outcomes.flatMap((outcome, i) => (outcome.status === 'fulfilled' ? [i] : []));
      assert.equal(winners.length, 1);
      assert.equal(await text(await storage.read('race/deep/er/x')), String(winners[0]));
    });

    it('takes back its own bytes only', async () => {
      await put('mine/other', 'other');
      const file = await storage.receive(Readable.from([Buffer.from('mine')]));
      await storage.placeTentatively(file, 'mine/a');
      await storage.placeTentatively(file, 'mine/a');
      await assert.rejects(storage.placeTentatively(file, 'mine/other'), AlreadyThere);
      await storage.takeBack(file.key, 'mine/a');
      assert.equal(await storage.exists('mine/a'), false);
      await storage.takeBack(file.key, 'mine/other');
      assert.equal(await text(await storage.read('mine/other')), 'other');
      await storage.discard(file);
      assert.deepEqual(await incoming(), []);
    });
  });

  describe('reading', () => {
    it('says that bytes are missing', async () => {
      await put('file', 'x');
      await assert.rejects(storage.read('none/at/all'), BytesMissing);
      await assert.rejects(storage.read('file/below'), BytesMissing);
      assert.equal(await storage.size('none'), null);
      assert.equal(await storage.size('file'), 1);
    });

    it('gives the bytes of a range', async () => {
      await put('range', '0123456789');
      assert.equal(await text(await storage.read('range', { start: 2, end: 4 })), '234');
      assert.equal(await text(await storage.read('range', { start: 9, end: 9 })), '9');
    });
  });

  describe('moving', () => {
    it('can be repeated, and counts a missing source as done', async () => {
      await put('from/a', 'a');
      await storage.move('from', 'moved/to');
      await storage.move('from', 'moved/to');
      assert.deepEqual(await names('moved'), ['moved/to/a']);
      await storage.move('moved/to/a', 'moved/b');
      await storage.move('moved/to/a', 'moved/b');
      assert.equal(await text(await storage.read('moved/b')), 'a');
      await storage.move('never/was', 'anywhere');
      assert.equal(await storage.exists('anywhere'), false);
    });

    it('overwrites neither files nor folders', async () => {
      await put('keep/a', 'a');
      await put('keep/f/x', 'x');
      await put('keep/b', 'b');
      await put('keep/g/y', 'y');
      await assert.rejects(storage.move('keep/a', 'keep/b'), AlreadyThere);
      await assert.rejects(storage.move('keep/f', 'keep/g'), AlreadyThere);
      await assert.rejects(storage.move('keep/f', 'keep/b'), AlreadyThere);
      await assert.rejects(storage.move('keep/a', 'keep/g'), AlreadyThere);
      await assert.rejects(storage.move('keep', 'keep/f/keep'), UnsafePath);
      await assert.rejects(storage.move('keep/a', 'keep/a'), UnsafePath);
      assert.deepEqual(await names('keep'), ['keep/a', 'keep/b', 'keep/f/x', 'keep/g/y']);
    });
  });

  describe('the rest', () => {
    it('copies without reading, once', async () => {
      await put('copy/a', 'a');
      await put('copy/other', 'other');
      await storage.copy('copy/a', 'copied/a');
      await storage.copy('copy/a', 'copied/a');
      await storage.copy('copy/other', 'copied/a');
      assert.equal(await text(await storage.read('copied/a')), 'a');
      assert.equal((await stat(join(root, 'copy/a'))).ino, (await stat(join(root, 'copied/a'))).ino);
      await storage.remove('copy/a');
      assert.equal(await text(await storage.read('copied/a')), 'a');
      await assert.rejects(storage.copy('copy/none', 'copied/none'), BytesMissing);
      assert.equal(await storage.exists('copied/none'), false);
    });

    it('removes names that are not UTF-8, and lists them as special', async () => {
      await storage.makeFolder('bytes');
      await writeFile(Buffer.concat([Buffer.from(join(root, 'bytes/')), Buffer.from([0x61, 0xff])]), 'x');
      const special: string[] = [];
      assert.deepEqual(await names('bytes', (path) => special.push(path)), []);
      assert.equal(special.length, 1);
      await storage.remove('bytes');
      assert.equal(await storage.exists('bytes'), false);
    });

    it('lists names with any letters, at any depth', async () => {
      await put('names/Ärger und 脑/ü.nii.gz', 'x');
      await put('names/b', 'yy');
      assert.deepEqual(
        (await Array.fromAsync(storage.list('names'))).sort((a, b) => a.sizeBytes - b.sizeBytes),
        [
          { path: 'names/Ärger und 脑/ü.nii.gz', sizeBytes: 1 },
          { path: 'names/b', sizeBytes: 2 },
        ],
      );
      assert.deepEqual(await names('names/none'), []);
      assert.deepEqual(await names('names/b'), []);
    });

    it('forgets what dead processes left, and nothing of the living', async () => {
      const other = await FilesystemStorage.open(root, 77);
      const mine = await storage.receive(Readable.from([Buffer.from('mine')]));
      const theirs = await other.receive(Readable.from([Buffer.from('theirs')]));
      const old = await storage.receive(Readable.from([Buffer.from('old')]));
      await utimes(join(root, '.incoming', old.key), 0, 0);
      await storage.removeLeftovers([77, 8]);
      assert.deepEqual(await incoming(), [mine.key]);
      assert.equal((await other.receive(Readable.from([]))).key === theirs.key, false);
      await storage.removeLeftovers([7, 77]);
      assert.deepEqual(await incoming(), []);
    });

    it('knows where things lie on this machine', async () => {
      assert.equal(storage.localPath('home/a/x'), join(root, 'home/a/x'));
      assert.equal(storage.localPath('file/below'), join(root, 'file/below'));
    });
  });
});
