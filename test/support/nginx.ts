import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ProxyOptions, type ReverseProxy, startProxy } from './proxy.ts';

// Debian installs it outside of the PATH of users.
const NGINX = '/usr/sbin/nginx';

export const isNginxInstalled = (): boolean => spawnSync(NGINX, ['-v']).status === 0;

/** Starts nginx, which speaks HTTP/2 to clients over TLS, HTTP/2 to the server for gRPC, and HTTP/1.1 for the rest. */
export async function startNginx({ server, isServerTls, cert, key }: ProxyOptions): Promise<ReverseProxy> {
  return startProxy(async ([port = 0, tlsPort = 0]) => {
    const directory = mkdtempSync(join(tmpdir(), 'wharf-nginx-'));
    const tls = isServerTls ? 's' : '';
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (name) => `${name}_temp_path ${directory}/${name};`,
    );
    writeFileSync(
      join(directory, 'nginx.conf'),
      `
daemon off;
pid ${directory}/pid;
error_log stderr;
events {}
http {
  access_log off;
  ${temporary.join('\n  ')}
  client_max_body_size 0;
  proxy_request_buffering off;
  # The workers of a root process may not write to the directory.
  proxy_max_temp_file_size 0;
  proxy_http_version 1.1;
  map $content_type $is_grpc { default 0; ~^application/grpc 1; }
  server {
    listen 127.0.0.1:${port};
    listen 127.0.0.1:${tlsPort} ssl http2;
    ssl_certificate ${cert};
    ssl_certificate_key ${key};
    proxy_set_header Host $http_host;
    location / {
      error_page 418 = @grpc;
      if ($is_grpc) { return 418; }
      proxy_pass http${tls}://${server};
    }
    location @grpc { grpc_pass grpc${tls}://${server}; }
  }
}
`,
    );
    const child = spawn(NGINX, ['-p', directory, '-c', join(directory, 'nginx.conf')], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    return { child, remove: () => rmSync(directory, { recursive: true, force: true }) };
  });
}
