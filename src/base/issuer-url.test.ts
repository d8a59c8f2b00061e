import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canonicalIssuer, isPrivateIssuer, issuerProblem } from './issuer-url.ts';

test('URLs of well-known issuers are valid', () => {
  const issuers = [
    'https://token.actions.githubusercontent.com',
    'https://accounts.google.com',
    'https://tenant.auth0.com/',
    'https://login.microsoftonline.com/9188040d-6c67-4c5b-b112-36a304b66dad/v2.0',
    'https://oidc.eks.eu-west-1.amazonaws.com/id/0123456789ABCDEF',
    'https://ADFS.example.com/adfs',
    'https://gitlab.example.com:8443/group',
    'https://10.0.0.1',
    'http://127.0.0.1:4000',
    'http://localhost:4000/oidc',
    'http://[::1]:4000',
  ];
  for (const issuer of issuers) assert.equal(issuerProblem(issuer), undefined, issuer);
});

test('URLs that have no discovery document, or have it at another path than the URL seems to say, are refused', () => {
  const wrong = [
    '',
    'accounts.example.com',
    'ftp://a.example',
    'https://',
    'https:///path',
    'urn:wharf',
    'HTTPS://a.example',
  ];
  wrong.push('http://a.example', 'http://10.0.0.1', 'http://localhost.example.com', 'http://127.0.0.1.example.com');
  wrong.push('https://a.example?x', 'https://a.example/?', 'https://a.example#', 'https://good.example@evil.example');
  wrong.push(
    'https://a.example/b/../c',
    'https://a.example/b/%2e%2E/c',
    'https://a.example/./b',
    'https://a.example\\b',
  );
  wrong.push(
    'https://a.example/b c',
    ' https://a.example',
    'https://a.example\n',
    'https://a.example:99999',
    'https://[::1',
  );
  wrong.push(`https://a.example/${'b'.repeat(512)}`);
  for (const issuer of wrong) assert.notEqual(issuerProblem(issuer), undefined, issuer);
});

test('the second name of Google is replaced', () => {
  assert.equal(canonicalIssuer('accounts.google.com'), 'https://accounts.google.com');
  assert.equal(canonicalIssuer('https://accounts.google.com'), 'https://accounts.google.com');
  assert.equal(canonicalIssuer('accounts.google.com/'), 'accounts.google.com/');
});

test('issuers on this machine and at private addresses are private, whatever the notation', () => {
  const hosts = [
    'localhost',
    'LOCALHOST',
    'a.localhost',
    '127.0.0.1',
    '2130706433',
    '0x7f.1',
    '10.1.2.3',
    '169.254.169.254',
  ];
  hosts.push('[::1]', '[fd00::1]', '[fe80::1]', '[::ffff:192.168.0.1]', '[::ffff:c0a8:1]', '0.0.0.0', '100.64.0.1');
  for (const host of hosts) assert.ok(isPrivateIssuer(`https://${host}/path`), host);
  for (const host of ['example.com', 'localhost.example.com', '8.8.8.8', '[2606:4700::1111]', '10.example.com']) {
    assert.ok(!isPrivateIssuer(`https://${host}`), host);
  }
  assert.ok(!isPrivateIssuer('accounts.google.com'));
});
