import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import type { Log } from '../base/log.ts';

/** A certificate chain and its key, as PEM texts. */
export interface TlsPair {
  readonly cert: string;
  readonly key: string;
}

/** A pair and the files that it was read from. */
export interface TlsFiles extends TlsPair {
  readonly certFile: string;
  readonly keyFile: string;
}

/** Returns why a server cannot use a certificate with a key, or undefined if it can. */
export function tlsPairProblem({ cert, key }: TlsPair): string | undefined {
  try {
    // OpenSSL accepts a key of another type than the certificate's, but then every handshake fails.
    if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key)))
      return 'the key belongs to another certificate';
    createSecureContext({ cert, key });
    return undefined;
  } catch {
    return 'they must be a PEM certificate and its PEM key without a password';
  }
}

export interface TlsFileWatchOptions {
  readonly tls: TlsFiles;
  readonly intervalMs: number;
  readonly log: Log;
  /** Receives each new pair. New connections must use it. */
  readonly use: (pair: TlsPair) => void;
}

export interface TlsFileWatch {
  /** The pair in use. */
  current(): TlsPair;
  /** Uses a valid pair now, and watches its files. */
  replace(files: TlsFiles): void;
  stop(): void;
}

/**
 * Reads the files again at an interval, and passes on a new pair if it is valid. It compares the contents: change
 * notifications and file times do not show how Kubernetes replaces a mounted secret, by moving a link to its directory.
 */
export function watchTlsFiles({ tls, intervalMs, log, use }: TlsFileWatchOptions): TlsFileWatch {
  let { certFile, keyFile } = tls;
  let current: TlsPair = tls;
  /** The last problem and the contents that had it. Each is logged once. */
  let reported = '';

  function report(problem: string, contents: string): void {
    if (reported === problem + contents) return;
    reported = problem + contents;
    log.warn({ certFile, keyFile, problem }, 'cannot use the changed TLS files; the server keeps its certificate');
  }

  async function check(): Promise<void> {
    let read: TlsPair;
    try {
      read = { cert: await readFile(certFile, 'utf8'), key: await readFile(keyFile, 'utf8') };
    } catch (error) {
      return report((error as Error).message, '');
    }
    if (read.cert === current.cert && read.key === current.key) return;
    // A program that renews the files may have written only one of them yet.
    const problem = tlsPairProblem(read);
    if (problem !== undefined) return report(problem, read.cert + read.key);
    replace(read);
  }

  function replace(pair: TlsPair): void {
    use(pair);
    current = pair;
    reported = '';
    log.info(
      { certFile, expires: new X509Certificate(pair.cert).validToDate.toISOString() },
      'replaced the TLS certificate',
    );
  }

  let running = false;
  const timer = setInterval(() => {
    if (running) return;
    running = true;
    void check().finally(() => {
      running = false;
    });
  }, intervalMs).unref();
  return {
    current: () => current,
    replace(files) {
      ({ certFile, keyFile } = files);
      if (files.cert !== current.cert || files.key !== current.key) replace(files);
    },
    stop: () => clearInterval(timer),
  };
}
