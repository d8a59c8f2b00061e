/** The part of OpenAPI 3.1 that the document uses; https://spec.openapis.org/oas/v3.1.1 */

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

export interface Schema {
  readonly $ref?: string;
  readonly type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean';
  readonly format?: string;
  readonly description?: string;
  readonly pattern?: string;
  readonly contentEncoding?: 'base64';
  readonly contentMediaType?: 'application/json';
  readonly contentSchema?: Schema;
  readonly const?: string;
  readonly enum?: readonly string[];
  readonly 'x-enum-descriptions'?: readonly string[];
  readonly minimum?: number;
  readonly default?: Json;
  readonly readOnly?: boolean;
  readonly writeOnly?: boolean;
  readonly deprecated?: boolean;
  readonly items?: Schema;
  readonly allOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly discriminator?: { readonly propertyName: string; readonly mapping: Readonly<Record<string, string>> };
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly propertyNames?: Schema;
  readonly additionalProperties?: Schema;
  readonly required?: readonly string[];
}

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query';
  readonly description?: string;
  readonly required?: boolean;
  readonly deprecated?: boolean;
  readonly explode?: boolean;
  readonly schema: Schema;
  readonly example?: Json;
  /** The request field that it sets, if the field has another name. */
  readonly 'x-wharf-field'?: string;
  /** The value may contain slashes, sent as they are or as %2F. */
  readonly 'x-wharf-slashes'?: boolean;
  /** The value may be omitted, together with the slash before it. */
  readonly 'x-wharf-optional'?: boolean;
}

export interface MediaType {
  readonly schema: Schema;
  readonly example?: Json;
  readonly examples?: Readonly<Record<string, { readonly summary: string; readonly value: Json }>>;
}

type Content = Readonly<Record<'application/json', MediaType>>;

export interface Response {
  readonly description: string;
  readonly content?: Content;
}

export interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly deprecated?: boolean;
  readonly parameters: readonly Parameter[];
  readonly requestBody?: { readonly required: boolean; readonly content: Content };
  readonly responses: { readonly 200: Response; readonly default: { readonly $ref: string } };
  /** Present if no token is required: empty, or with an alternative if one may be sent. */
  readonly security?: OpenApiDocument['security'];
  readonly 'x-wharf-grpc-method': string;
  readonly 'x-wharf-path-template': string;
  readonly 'x-wharf-capabilities': readonly string[];
  readonly 'x-wharf-event'?: {
    readonly type: string;
    readonly extensions: readonly string[];
    readonly audience: string;
  };
}

export type PathItem = Partial<Record<'get' | 'post' | 'put' | 'patch' | 'delete', Operation>>;

export interface Tag {
  readonly name: string;
  readonly 'x-displayName': string;
  readonly description: string;
}

export interface OpenApiDocument {
  readonly openapi: '3.1.1';
  readonly info: {
    readonly title: string;
    readonly version: string;
    readonly summary: string;
    readonly description: string;
    readonly license: { readonly name: string; readonly identifier: string };
  };
  readonly servers: readonly { readonly url: string }[];
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly tags: readonly Tag[];
  /** One group for each domain. Several viewers show it as their navigation. */
  readonly 'x-tagGroups': readonly { readonly name: string; readonly tags: readonly string[] }[];
  readonly paths: Readonly<Record<string, PathItem>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly responses: Readonly<Record<string, Response>>;
    readonly securitySchemes: Readonly<Record<string, Readonly<Record<string, string>>>>;
  };
}
