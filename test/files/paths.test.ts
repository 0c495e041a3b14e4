import assert from 'node:assert/strict';
import { join, resolve } from 'node:path';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  cleanFileName,
  cleanPath,
  cleanTreePath,
  folderOf,
  isFeedFolderPath,
  joinPath,
  linkFileName,
  linkFolderName,
  nameOf,
  withRandomSuffix,
} from '../../src/files/paths.ts';
import { InvalidFields } from '../../src/hypermedia/errors.ts';
import { splitStoragePath } from '../../src/storage/paths.ts';

/** Texts that look like paths, good and bad. */
const pathLike = fc
  .array(
    fc.oneof(
      fc.constantFrom('..', '.', '', ' ', 'home', 'a', '\0', '\\', '%2e%2e', 'ü', ','),
      fc.string({ unit: 'grapheme' }),
      fc.string({ unit: 'binary' }),
    ),
    { maxLength: 8 },
  )
  .map((parts) => parts.join('/'));

function refusal(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    assert.ok(error instanceof InvalidFields, String(error));
    const texts = error.fields.path;
    assert.ok(Array.isArray(texts), JSON.stringify(error.fields));
    return String(texts[0]);
  }
  return assert.fail('it was accepted');
}

describe('cleaning a path', () => {
  const bad: [string, RegExp][] = [
    ['', /blank/],
    [' // ', /blank/],
    ['home', /must start with/],
    ['homes/a', /must start with/],
    ['SERVICES/PACS', /must start with/],
    ['/etc/passwd', /must start with/],
    ['home/a,b', /comma/],
    ['home/../x', /"\.\." is not allowed/],
    ['home/a/..', /"\.\." is not allowed/],
    ['home/./x', /"\." is not allowed/],
    ['home//x', /empty component/],
    ['home/a\0b', /control character/],
    ['home/a\nb', /control character/],
    ['home/a\u009fb', /control character/],
    ['home/\ud800', /surrogate/],
    [`home/${'ü'.repeat(128)}`, /255 bytes/],
  ];
  for (const [text, expected] of bad) {
    it(`refuses ${JSON.stringify(text).slice(0, 40)}`, () =>
      assert.match(
        refusal(() => cleanPath(text, 'path')),
        expected,
      ));
  }

  it('refuses more than 1024 characters, counted as characters', () => {
    const longest = `home/${'𝒳/'.repeat(509)}a`;
    assert.equal([...longest].length, 1024);
    assert.equal(cleanPath(longest, 'path'), longest);
    assert.match(
      refusal(() => cleanPath(`${longest}b`, 'path')),
      /1024 characters/,
    );
  });

  it('refuses a huge text at once', () => {
    assert.match(
      refusal(() => cleanPath(`home/${'/'.repeat(1_000_000)}a`, 'path')),
      /1024 characters/,
    );
  });

  it('trims white space, then slashes, and keeps inner spaces', () => {
    assert.equal(cleanPath(' \t//home/a b/c d//\n', 'path'), 'home/a b/c d');
    assert.equal(cleanTreePath('/SERVICES/PACS/', 'path'), 'SERVICES/PACS');
  });

  it('gives paths that stay below home, whatever comes', () => {
    fc.assert(
      fc.property(pathLike, (text) => {
        let path: string;
        try {
          path = cleanPath(`home/${text}`, 'path');
        } catch (error) {
          assert.ok(error instanceof InvalidFields, String(error));
          return;
        }
        assert.ok(resolve('/root', path).startsWith('/root/home/'));
        assert.equal(join('/root', path), `/root/${path}`);
        assert.deepEqual(splitStoragePath(path).join('/'), path);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('cleaning the name of an upload', () => {
  for (const name of ['', '   ', '()', '\0\n', '.', '..', ' .. ', 'a'.repeat(256), '脑'.repeat(86)]) {
    it(`refuses ${JSON.stringify(name).slice(0, 30)}`, () => void refusal(() => cleanFileName(name, 'path')));
  }

  const good: [string, string][] = [
    ['my file (1).txt', 'my_file_1.txt'],
    ['  a  b  ', 'a__b'],
    ['Größe-脑_ø.nii.gz', 'Größe-脑_ø.nii.gz'],
    ['../../x', '....x'],
    ['a\tb\0c"d\\e', 'abcde'],
    ['-rf', '-rf'],
  ];
  for (const [name, cleaned] of good)
    it(`makes ${JSON.stringify(name)} ${cleaned}`, () => assert.equal(cleanFileName(name, 'path'), cleaned));

  it('gives one plain component, and the same again', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'binary' }), pathLike), (name) => {
        let cleaned: string;
        try {
          cleaned = cleanFileName(name, 'path');
        } catch (error) {
          assert.ok(error instanceof InvalidFields, String(error));
          return;
        }
        assert.deepEqual(splitStoragePath(cleaned), [cleaned]);
        assert.equal(cleanFileName(cleaned, 'path'), cleaned);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('names made from others', () => {
  it('puts a suffix before the extension', () => {
    assert.match(withRandomSuffix('a.txt'), /^a_[A-Za-z0-9]{7}\.txt$/);
    assert.match(withRandomSuffix('a.nii.gz'), /^a\.nii_[A-Za-z0-9]{7}\.gz$/);
    assert.match(withRandomSuffix('none'), /^none_[A-Za-z0-9]{7}$/);
    assert.match(withRandomSuffix('.hidden'), /^\.hidden_[A-Za-z0-9]{7}$/);
    assert.notEqual(withRandomSuffix('a'), withRandomSuffix('a'));
  });

  it('keeps all of them within 255 bytes', () => {
    const long = fc
      .array(fc.constantFrom('a', 'ü', '脑', '𝒳', '.', '/'), { minLength: 1, maxLength: 255 })
      .map((parts) => parts.join(''));
    fc.assert(
      fc.property(long, (text) => {
        const name = text.replaceAll('/', '');
        for (const made of [withRandomSuffix(name || 'a'), linkFileName(text), linkFolderName(`x${text}`)]) {
          assert.ok(Buffer.byteLength(made) <= 255, made);
          assert.deepEqual(splitStoragePath(made), [made]);
        }
      }),
    );
  });

  it('names link files after their target, also long ones apart', () => {
    assert.equal(linkFileName('home/alice/uploads/in/a.txt'), 'home_alice_uploads_in_a.txt.chrislink');
    assert.equal(linkFolderName('home/alice/uploads/in'), 'home_alice_uploads_in');
    const long = `home/${'x/'.repeat(400)}`;
    assert.notEqual(linkFileName(`${long}a`), linkFileName(`${long}b`));
    assert.equal(linkFileName(`${long}a`), linkFileName(`${long}a`));
    assert.ok(linkFileName(`${long}a`).endsWith('.chrislink'));
  });

  it('takes paths apart and together', () => {
    assert.equal(nameOf('home/a/b'), 'b');
    assert.equal(nameOf('home'), 'home');
    assert.equal(folderOf('home/a/b'), 'home/a');
    assert.equal(folderOf('home'), '');
    assert.equal(joinPath('', 'home'), 'home');
    assert.equal(joinPath('home/a', 'b'), 'home/a/b');
  });

  it('knows the folders of feeds', () => {
    for (const path of ['home/a/feeds/feed_1', 'home/ü b/feeds/feed_0012'])
      assert.equal(isFeedFolderPath(path), true, path);
    for (const path of [
      'home/a/feeds/feed_1x',
      'home/a/feeds/feed_',
      'home/a/b/feeds/feed_1',
      'home/a/feeds/feed_1/x',
      'home/a/uploads/feed_1',
    ]) {
      assert.equal(isFeedFolderPath(path), false, path);
    }
  });
});
