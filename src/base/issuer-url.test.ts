import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canonicalIssuer, issuerProblem } from './issuer-url.ts';

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
