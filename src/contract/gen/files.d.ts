// Generated from contract/ by tools/generate.ts.

import type { DescFile } from "@bufbuild/protobuf";

/** v2 of the Resource Management API. */
export declare const v2Files: readonly DescFile[];

/** v1 of the Resource Management API. */
export declare const v1Files: readonly DescFile[];

/** Services that the Resource Management API does not have. */
export declare const wharfingerFiles: readonly DescFile[];

/** The OCI distribution API. */
export declare const ociFiles: readonly DescFile[];
