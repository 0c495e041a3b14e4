/** Brings a database to the form that this version of the program works with. */
import { run as _unused } from 'graphile-worker';
