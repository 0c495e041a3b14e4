/**
 * What a request may say about an object: declared once, read from every media type, checked field by field.
 *
 * Form values are texts; JSON and Collection+JSON bring typed values. Both are converted by the same rules (`wire.md` section 6).
 */
import type { IncomingFile } from '../storage/storage.ts';
import { InvalidFields } from './errors.ts';
import type { DataType, FieldSchema } from './resource.ts';

/** A file part of a multipart body, received and flushed. */
export interface ReceivedFile {
  readonly filename: string;
  readonly content: IncomingFile;
}

/** The members of a request body, before any check. */
export type Members = Readonly<Record<string, unknown>>;

/** A request body in the terms of its members, whatever its media type was. */
export interface Body {
  readonly members: Members;
  /** It was a form: all values are texts or files. */
  readonly isForm: boolean;
}

/** What is wrong with one value; the reader adds the field's name. */
export class Problem {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

export interface InputField<T> {
  readonly type: DataType | 'file';
  readonly required: boolean;
  readonly schema: FieldSchema & { readonly writeOnly?: boolean };
  readonly read: (value: unknown) => T | Problem;
  /** What a form says that leaves the field out (an unticked box is not sent). */
  readonly absentFromForm?: T;
  /** Whether an optional field is needed beside the other members of this body. */
  readonly requiredBeside?: (members: Members) => boolean;
}

export type RequiredField<T> = InputField<T> & { readonly required: true };
export type OptionalField<T> = InputField<T> & { readonly required: false };

export type InputFields = Readonly<Record<string, InputField<unknown>>>;

type RequiredNames<F extends InputFields> = { [K in keyof F]: F[K] extends { required: true } ? K : never }[keyof F];
type ValueOf<F> = F extends InputField<infer T> ? T : never;

/** The checked values: required ones are there, others may be. */
export type Input<F extends InputFields> = { readonly [K in RequiredNames<F>]: ValueOf<F[K]> } & {
  readonly [K in Exclude<keyof F, RequiredNames<F>>]?: ValueOf<F[K]>;
};

/** Makes fields of one kind: `text({ max: 100, required: true })`. */
interface FieldMaker<T, O> {
  (options: O & { readonly required: true }): RequiredField<T>;
  (options?: O & { readonly required?: false }): OptionalField<T>;
}

function maker<T, O extends object>(
  describe: (options: Partial<O>) => Omit<InputField<T>, 'required'>,
): FieldMaker<T, O> {
  function make(options: O & { readonly required: true }): RequiredField<T>;
  function make(options?: O & { readonly required?: false }): OptionalField<T>;
  function make(options?: O & { readonly required?: boolean }): InputField<T> {
    return { ...describe(options ?? {}), required: options?.required ?? false };
  }
  return make;
}

const NO_NULL = 'This field may not be null.';

interface TextOptions {
  readonly min?: number;
  readonly max?: number;
  /** May be empty after trimming. */
  readonly blank?: boolean;
  /** Kept as it is, white space included. */
  readonly verbatim?: boolean;
  readonly writeOnly?: boolean;
  /** A further check; gives what is wrong, or null. */
  readonly check?: (text: string) => string | null;
}

function readText(value: unknown, options: TextOptions): string | Problem {
  if (value === null) return new Problem(NO_NULL);
  if (typeof value !== 'string' && typeof value !== 'number') return new Problem('Not a valid string.');
  // half of a surrogate pair is no text: PostgreSQL would refuse it in JSON
  const given = String(value).toWellFormed();
  const text = options.verbatim ? given : given.trim();
  if (text.includes('\0')) return new Problem('Null characters are not allowed.');
  if (text === '') return options.blank ? text : new Problem('This field may not be blank.');
  const length = [...text].length;
  if (options.max !== undefined && length > options.max)
    return new Problem(`Ensure this field has no more than ${options.max} characters.`);
  if (options.min !== undefined && length < options.min)
    return new Problem(`Ensure this field has at least ${options.min} characters.`);
  const complaint = options.check?.(text);
  return complaint ? new Problem(complaint) : text;
}

function textField(type: DataType, options: TextOptions): Omit<InputField<string>, 'required'> {
  const schema = {
    ...(options.max !== undefined && { maxLength: options.max }),
    ...(options.min !== undefined && { minLength: options.min }),
    ...(options.writeOnly && { writeOnly: true }),
  };
  return { type, schema, read: (value) => readText(value, options) };
}

export const text = maker<string, TextOptions>((options) => textField('string', options));

const EMAIL =
  /^[^\s\p{Cc}@"(),:;<>[\\\]]+@[\p{L}\p{N}](?:[\p{L}\p{N}-]*[\p{L}\p{N}])?(?:\.[\p{L}\p{N}](?:[\p{L}\p{N}-]*[\p{L}\p{N}])?)+$/u;
const checkEmail = (value: string) =>
  EMAIL.test(value) ? null : 'Enter a valid email address such as name@example.org.';

export const email = maker<string, TextOptions>((options) =>
  textField('email', { max: 254, check: checkEmail, ...options }),
);

export function isHttpUrl(value: string): boolean {
  return /^https?:\/\/[^\s/]/i.test(value) && URL.canParse(value);
}

const checkUrl = (value: string) => (isHttpUrl(value) ? null : 'Enter a valid URL such as https://example.org/page.');

export const url = maker<string, TextOptions>((options) => textField('uri', { check: checkUrl, ...options }));

export interface IntegerOptions {
  readonly minimum?: number;
  readonly maximum?: number;
}

const INT_32 = { minimum: -2147483648, maximum: 2147483647 };

function toInteger(value: unknown): number {
  if (typeof value === 'number') return value;
  return typeof value === 'string' && /^\s*[+-]?\d{1,1000}(\.0*)?\s*$/.test(value) ? Number(value) : Number.NaN;
}

/** An integer of at most 32 bits unless told otherwise. */
export const integer = maker<number, IntegerOptions>((options) => {
  const range = { ...INT_32, ...options };
  const read = (value: unknown): number | Problem => {
    if (value === null) return new Problem(NO_NULL);
    const number = toInteger(value);
    if (!Number.isInteger(number)) return new Problem('A valid integer is required.');
    if (number > range.maximum) return new Problem(`Ensure this value is less than or equal to ${range.maximum}.`);
    if (number < range.minimum) return new Problem(`Ensure this value is greater than or equal to ${range.minimum}.`);
    return number;
  };
  return { type: 'integer', schema: { minimum: range.minimum, maximum: range.maximum }, read };
});

/** A finite number. */
export const number = maker<number, object>(() => ({
  type: 'number',
  schema: {},
  read: (value) => {
    if (value === null) return new Problem(NO_NULL);
    const read =
      typeof value === 'number' ? value : typeof value === 'string' && value.trim() !== '' ? Number(value) : Number.NaN;
    return Number.isFinite(read) ? read : new Problem('A valid number is required.');
  },
}));

const TRUE = new Set(['true', 't', 'yes', 'y', 'on', '1']);
const FALSE = new Set(['false', 'f', 'no', 'n', 'off', '0']);

function readBoolean(value: unknown): boolean | Problem {
  if (value === null) return new Problem(NO_NULL);
  const word = typeof value === 'object' ? '' : String(value).trim().toLowerCase();
  if (TRUE.has(word)) return true;
  if (FALSE.has(word)) return false;
  return new Problem('Must be a valid boolean: true or false.');
}

interface BooleanOptions {
  /** A form that leaves the field out says false. */
  readonly tickBox?: boolean;
}

export const boolean = maker<boolean, BooleanOptions>((options) => ({
  type: 'boolean',
  schema: {},
  read: readBoolean,
  ...(options.tickBox && { absentFromForm: false }),
}));

export function isReceivedFile(value: unknown): value is ReceivedFile {
  return typeof value === 'object' && value !== null && 'content' in value && 'filename' in value;
}

const NO_FILE =
  'The submitted data was not a file. Send it as a file part, with a file name, of a multipart/form-data body.';

/** A file part. */
export const file = maker<ReceivedFile, object>(() => ({
  type: 'file',
  schema: {},
  read: (value) => (isReceivedFile(value) ? value : new Problem(NO_FILE)),
}));

export interface Inspected {
  readonly values: Readonly<Record<string, unknown>>;
  readonly problems: Readonly<Record<string, readonly string[]>>;
}

/** Checks all members of a body at once, each by itself. */
export function inspect(fields: InputFields, body: Body): Inspected {
  const problems: Record<string, string[]> = {};
  const values: Record<string, unknown> = {};
  for (const [name, declared] of Object.entries(fields)) {
    const value = Object.hasOwn(body.members, name) ? body.members[name] : undefined;
    if (value === undefined) {
      if (body.isForm && declared.absentFromForm !== undefined) values[name] = declared.absentFromForm;
      else if (declared.required || declared.requiredBeside?.(body.members))
        problems[name] = [declared.type === 'file' ? 'No file was submitted.' : 'This field is required.'];
      continue;
    }
    const read = declared.read(value);
    if (read instanceof Problem) problems[name] = [read.text];
    else values[name] = read;
  }
  return { values, problems };
}

/** @throws {InvalidFields} with every field that is wrong */
export function readInput<F extends InputFields>(fields: F, body: Body): Input<F> {
  return accept<F>(inspect(fields, body));
}

/** The values, if nothing is wrong. @throws {InvalidFields} */
export function accept<F extends InputFields>({ values, problems }: Inspected): Input<F> {
  if (Object.keys(problems).length > 0) throw new InvalidFields(problems);
  return values as Input<F>; // every required field was found, and every value came from its own reader
}
