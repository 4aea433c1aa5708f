// Tests the computations of pages. `npm test` builds it with Vite and runs it with Node's test runner.
import './axis';
import './campaigns';
import './cloudwatch';
import './compare';
import './dashboard';
import './data';
import './frame_queue';
import './job_form';
import './job_list';
import './job_time';
import './log_window';
import './machines';
import './metric_reader';
import './queues';
import './timeline';
import './users';
import assert from 'node:assert/strict';
import { createHash, createHmac } from 'node:crypto';
import { test } from 'node:test';
import { ago, amount, bytes, duration, mark, number, plain } from '../src/lib/format';
import { errorLine, headline, looksBad } from '../src/lib/log';
import { cliCall, quoted, requestOf, sdkCall } from '../src/lib/repeat';
import { joined, periodOf, smooth } from '../src/lib/series';
import { hex, hmac, sha256 } from '../src/sign-in/sha256';
import { sign } from '../src/sign-in/signature';

const encode = (text: string) => new TextEncoder().encode(text);

test('SHA-256 equals that of OpenSSL for every length around a block', () => {
  for (let length = 0; length < 200; length++) {
    const input = encode('ab'.repeat(100).slice(0, length));
    assert.equal(hex(sha256(input)), createHash('sha256').update(input).digest('hex'));
  }
});

test('HMAC equals that of OpenSSL, with short and long keys', () => {
  for (const length of [0, 1, 63, 64, 65, 200]) {
    const key = encode('k'.repeat(length));
    const expected = createHmac('sha256', key).update('message').digest('hex');
    assert.equal(hex(hmac(key, encode('message'))), expected);
  }
});

test('a signature is complete and depends on secret and body', () => {
  const keys = { id: 'AKIA', secret: 'secret', token: '' };
  const at = new Date('2026-11-20T09:45:00.123Z');
  const headers = sign('127.0.0.1:4566', '/console/session', '{}', keys, at);
  assert.equal(headers['x-amz-date'], '20261120T094500Z');
  assert.match(
    headers.authorization!,
    /^AWS4-HMAC-SHA256 Credential=AKIA\/20261120\/us-east-1\/trainyard\/aws4_request, SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date, Signature=[0-9a-f]{64}$/,
  );
  assert.ok(!JSON.stringify(headers).includes('secret'));
  assert.equal(headers.host, undefined);
  const other = sign('127.0.0.1:4566', '/console/session', '{ }', keys, at);
  assert.notEqual(headers.authorization, other.authorization);
  const session = sign('h', '/p', '{}', { ...keys, token: 't' }, at);
  assert.match(session.authorization!, /x-amz-date;x-amz-security-token,/);
});

test('values are formatted for people', () => {
  assert.equal(duration(59.6), '1 min 00 s');
  assert.equal(duration(5), '5 s');
  assert.equal(duration(3723), '1 h 02 min');
  assert.equal(duration(3 * 86400 + 7200), '3 d 2 h');
  assert.equal(mark(90), '1 min 30 s');
  assert.equal(mark(600), '10 min');
  assert.equal(mark(7200), '2 h');
  assert.equal(ago(100, 90), 'just now');
  assert.equal(ago(0, 7200), '2 h ago');
  assert.equal(bytes(1536), '1.5 KiB');
  assert.equal(bytes(999), '999 B');
  assert.equal(amount('USD', '0.012345'), '0.012 USD');
  assert.equal(amount('USD', '0.000000'), '0.00 USD');
  assert.equal(number(0.1 + 0.2), '0.3');
  assert.equal(number(1e-9), '1.000e-9');
  assert.equal(number(NaN), 'NaN');
});

test('text of a job cannot move the cursor or change the writing direction', () => {
  assert.equal(plain('\u001b[31mred\u0007'), '^[[31mred^G');
  assert.equal(plain('a\tb'), 'a    b');
  assert.equal(plain('\u202eabc\u0085'), '\ufffdabc\ufffd');
  assert.equal(plain('<b>ünïcode 漢字 🚂</b>'), '<b>ünïcode 漢字 🚂</b>');
});

test('smoothing keeps a constant and begins with the first value', () => {
  assert.deepEqual(smooth([2, 2, 2], 0.9).map((value) => value.toFixed(9)), Array(3).fill('2.000000000'));
  assert.equal(smooth([5, 0], 0.9)[0]!.toFixed(9), '5.000000000');
  assert.deepEqual(smooth([1, 9], 0), [1, 9]);
});

test('a period fits the number of points', () => {
  assert.equal(periodOf(0, 600, 1400), 1);
  assert.equal(periodOf(0, 4 * 3600, 1400), 30);
  assert.equal(periodOf(0, 28 * 86400, 1400), 1740);
});

test('fresh points replace the end of the known ones', () => {
  const point = (at: number, value: number) => ({ at, value, count: 1 });
  const old = [1, 2, 3].map((at) => point(at, at));
  assert.deepEqual(
    joined(old, [point(3, 30), point(4, 4)]).map((point) => point.value),
    [1, 2, 30, 4],
  );
  assert.equal(joined(old, []).length, 3);
});

test('errors in logs are found, with the start of their traceback', () => {
  assert.ok(looksBad('RuntimeError: CUDA error'));
  assert.ok(looksBad('java.lang.NullPointerException'));
  assert.ok(!looksBad('0 errors, error_rate=0.1'));
  assert.ok(!looksBad('epoch 3 loss=0.5'));
  const line = (host: string, text: string) => ({ number: 0, host, text, at: 0, bad: looksBad(text) });
  const lines = [
    line('algo-1', 'epoch 1'),
    line('algo-2', 'Traceback (most recent call last):'),
    line('algo-1', 'epoch 2'),
    line('algo-2', 'ValueError: no'),
    line('algo-1', 'bye'),
  ];
  assert.equal(errorLine(lines), 1);
  assert.equal(errorLine(lines.slice(0, 1)), -1);
});

test('the headline of a failure is its last line', () => {
  assert.equal(headline('AlgorithmError: a\nb\nValueError: c, exit code: 1'), 'AlgorithmError: ValueError: c, exit code: 1');
  assert.equal(headline('ClientError: one line'), 'ClientError: one line');
  assert.equal(headline(), '');
});

const JOB = {
  TrainingJobName: "it's",
  TrainingJobStatus: 'Completed',
  HyperParameters: { lr: "0.1'; rm -rf /" },
  RoleArn: 'arn:aws:iam::123456789012:role/trainer',
  EnableNetworkIsolation: false,
  Environment: {},
  AlgorithmSpecification: { TrainingImage: 'trainyard/host' },
};

test('the repeated request has the members of the first one', () => {
  const request = requestOf(JOB);
  assert.deepEqual(Object.keys(request), [
    'TrainingJobName',
    'HyperParameters',
    'AlgorithmSpecification',
    'RoleArn',
  ]);
  assert.equal(request.TrainingJobName, "it's-again");
});

test('no value of a job can end the quotes in a shell command', () => {
  assert.equal(quoted("a'b"), `'a'\\''b'`);
  const call = cliCall(JOB, 'eu-west-1');
  assert.equal((call.match(/(?<!\\)'/g) ?? []).length % 2, 0);
  assert.ok(call.includes(`0.1'\\''; rm -rf /`));
  assert.ok(sdkCall(JOB, 'eu-west-1').includes(`"lr": "0.1'; rm -rf /"`));
});
