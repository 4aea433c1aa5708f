import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  emptyForm,
  formOf,
  formOfFragment,
  fragmentOf,
  isPlainNumber,
  namesSecret,
  otherMembers,
  repeated,
  requestOfForm,
  requestWithoutSecrets,
  secretsOf,
  withoutDefaults,
  type JobForm,
} from '../src/lib/job_form';
import { problemsOf, shortText } from '../src/lib/job_problems';
import { submitOf, tomlOf } from '../src/lib/job_toml';
import { grouped, priceOf, sizeOf } from '../src/lib/offers';

const REGION = 'eu-west-1';
const BASE = emptyForm('123456789012', REGION, new Date('2026-11-27T18:00:05Z'));
const filled = (more: Partial<JobForm> = {}): JobForm => ({
  ...BASE,
  name: 'digits',
  command: 'python3 train.py --lr 0.1',
  channels: [
    { name: 'train', uri: 's3://yard/train', sharded: true, contentType: 'text/csv', rest: {} },
    { name: 'test', uri: 's3://yard/test', sharded: false, contentType: '', rest: {} },
  ],
  hyperparameters: [{ name: 'lr', value: '0.1' }],
  environment: [
    { name: 'DEBUG', value: '1' },
    { name: 'HF_TOKEN', value: 'hunter2', secret: true },
  ],
  tags: [{ name: 'team', value: 'vision' }],
  checkpoints: 's3://yard/checkpoints',
  spot: true,
  ...more,
});

test('an empty form is a request with the defaults of trainyard submit', () => {
  const request = requestOfForm(BASE, REGION);
  assert.equal(BASE.name, 'job-20261127t180005');
  assert.deepEqual(request, {
    TrainingJobName: 'job-20261127t180005',
    RoleArn: 'arn:aws:iam::123456789012:role/trainer',
    AlgorithmSpecification: { TrainingImage: 'trainyard/host', TrainingInputMode: 'File' },
    OutputDataConfig: { S3OutputPath: 's3://trainyard-eu-west-1/jobs' },
    ResourceConfig: { InstanceType: 'ml.m5.large', InstanceCount: 1, VolumeSizeInGB: 30 },
    StoppingCondition: { MaxRuntimeInSeconds: 86400 },
  });
});

test('a form becomes a request, and the request the form', () => {
  for (const form of [
    filled(),
    filled({ runs: 'image', command: '' }),
    filled({ runs: 'script', command: '', code: 's3://yard/a.tar.gz', entry: 'src/train.py' }),
    filled({ spot: false, channels: [], hyperparameters: [], tags: [], checkpoints: '' }),
  ]) {
    const request = requestOfForm(form, REGION);
    const again = formOf(request, BASE, ['HF_TOKEN']);
    assert.deepEqual(requestOfForm(again, REGION), request);
    assert.equal(again.runs, form.runs);
    assert.deepEqual(again.rest, {});
    assert.deepEqual(again.environment, form.environment);
  }
});

test('what the form has no field for is kept', () => {
  const request = {
    TrainingJobName: 'a',
    AlgorithmSpecification: {
      TrainingImage: 'i',
      TrainingInputMode: 'Pipe',
      ContainerEntrypoint: ['python3', 'x.py'],
      MetricDefinitions: [{ Name: 'loss', Regex: 'loss=(.*)' }],
    },
    ResourceConfig: { InstanceGroups: [{ InstanceGroupName: 'g' }], VolumeSizeInGB: 5, KeepAlivePeriodInSeconds: 60 },
    InputDataConfig: [
      { ChannelName: 'fs', DataSource: { FileSystemDataSource: { FileSystemId: 'fs-1' } } },
      {
        ChannelName: 'list',
        CompressionType: 'Gzip',
        DataSource: { S3DataSource: { S3DataType: 'ManifestFile', S3Uri: 's3://a/m', S3DataDistributionType: 'FullyReplicated' } },
      },
    ],
    OutputDataConfig: { S3OutputPath: 's3://a', CompressionType: 'NONE' },
    StoppingCondition: { MaxRuntimeInSeconds: 90 },
    CheckpointConfig: { S3Uri: 's3://a/c', LocalPath: '/checkpoints' },
    VpcConfig: { Subnets: ['s'] },
    RetryStrategy: { MaximumRetryAttempts: 2 },
    RoleArn: 'r',
  };
  const form = formOf(request, BASE);
  assert.deepEqual(requestOfForm(form, REGION), request);
  assert.deepEqual([form.runs, form.runtime, form.runtimeUnit], ['image', 1.5, 60]);
  assert.deepEqual(otherMembers(form), [
    'VpcConfig',
    'RetryStrategy',
    'AlgorithmSpecification.ContainerEntrypoint',
    'AlgorithmSpecification.MetricDefinitions',
    'ResourceConfig.InstanceGroups',
    'ResourceConfig.KeepAlivePeriodInSeconds',
    'OutputDataConfig.CompressionType',
    'CheckpointConfig.LocalPath',
    'InputDataConfig',
  ]);
  assert.deepEqual(withoutDefaults({ OutputDataConfig: { S3OutputPath: 's', KmsKeyId: '', CompressionType: 'GZIP' } }), {
    OutputDataConfig: { S3OutputPath: 's' },
  });
});

test('a link has the form without the values of secrets', () => {
  const fragment = fragmentOf(filled(), REGION);
  assert.match(fragment, /^#form=[A-Za-z0-9_-]+$/);
  assert.ok(!atob(fragment.slice(6).replaceAll('-', '+').replaceAll('_', '/')).includes('hunter2'));
  const again = formOfFragment(fragment, BASE)!;
  assert.deepEqual(again.environment, [
    { name: 'DEBUG', value: '1' },
    { name: 'HF_TOKEN', value: '', secret: true },
  ]);
  assert.deepEqual({ ...again, environment: [] }, { ...filled({ channels: [...filled().channels].reverse() }), environment: [] });
  assert.equal(fragmentOf(filled({ command: 'x'.repeat(20_000) }), REGION), '', 'too long');
});

test('a link of any text makes a form or none', () => {
  const link = (value: unknown) => `#form=${btoa(JSON.stringify(value))}`;
  for (const fragment of ['', '#form=', '#form=%%', '#form=bm9uZQ', '#other', `#form=${'A'.repeat(17_000)}`])
    assert.equal(formOfFragment(fragment, BASE), undefined, fragment.slice(0, 20));
  const odd = [null, 7, [], { request: [] }, { request: { Environment: 7, Tags: {}, InputDataConfig: [1, null, {}] } },
    { request: { TrainingJobName: {}, ResourceConfig: 'x', HyperParameters: { a: 1, b: [] } }, secrets: [1, {}, 'X'] },
    { request: { AlgorithmSpecification: { ContainerEntrypoint: ['sh', '-c', 7], TrainingImage: [] } } },
    { request: { __proto__: { polluted: true }, constructor: 1 } }];
  for (const value of odd) {
    const form = formOfFragment(link(value), BASE)!;
    assert.equal(typeof form.name, 'string');
    requestOfForm(form, REGION);
    tomlOf(requestOfForm(form, REGION));
  }
  assert.equal(({} as { polluted?: boolean }).polluted, undefined);
});

test('secrets are known by the names that the server refuses in templates', () => {
  for (const name of ['HF_TOKEN', 'DB_PASSWORD', 'AWS_SECRET_ACCESS_KEY', 'WANDB_API_KEY', 'wandb-api-key', 'apiKey',
    'SECRET', 'client.secret', 'SSH_PRIVATE_KEY', 'token', 'GitHubToken', 'TOKEN_'])
    assert.ok(namesSecret(name), name);
  for (const name of ['', '_', 'MAX_TOKENS', 'TOKENIZERS_PARALLELISM', 'AWS_ACCESS_KEY_ID', 'KEY', 'SORT_KEY', 'epochs',
    'PASSWORD_FILE', 'secretary'])
    assert.ok(!namesSecret(name), name);
  assert.deepEqual(secretsOf(filled()), ['HF_TOKEN']);
  assert.ok(!JSON.stringify(requestWithoutSecrets(filled(), REGION)).includes('hunter2'));
  const keyed = filled({ hyperparameters: [{ name: 'api_key', value: 'hunter2' }] });
  assert.ok(!JSON.stringify(requestWithoutSecrets(keyed, REGION)).includes('hunter2'));
  const former = formOf({ Environment: { WANDB_API_KEY: 'hunter2' } }, BASE);
  assert.deepEqual(secretsOf(former), ['WANDB_API_KEY'], 'also of a job that is repeated');
  const shown = requestOfForm(filled(), REGION, (pair) => `<${pair.name}>`);
  assert.deepEqual(shown.Environment, { DEBUG: '1', HF_TOKEN: '<HF_TOKEN>' });
  assert.deepEqual(repeated([...filled().tags, ...filled().tags, { name: '', value: '' }, { name: '', value: '' }]), ['team']);
});

test('numbers are plain if every client writes them alike', () => {
  for (const text of ['0', '3', '-7', '0.25', '-1.5', '123456789012345', '0.001']) assert.ok(isPlainNumber(text), text);
  for (const text of ['', '-0', '007', '1e-3', '0.10', '1.', '.5', '+1', '0x10', 'NaN', '1234567890123456', '0.0001', ' 1'])
    assert.ok(!isPlainNumber(text), text);
});

test('a job file has the short form', () => {
  const toml = tomlOf(requestOfForm(filled(), REGION));
  assert.equal(
    toml,
    `name = "digits"
role = "arn:aws:iam::123456789012:role/trainer"
image = "trainyard/host"
input_mode = "File"
command = "python3 train.py --lr 0.1"
instance_type = "ml.m5.large"
instance_count = 1
volume_gib = 30
output = "s3://trainyard-eu-west-1/jobs"
max_runtime_seconds = 86400
max_wait_seconds = 172800
spot = true
checkpoints = "s3://yard/checkpoints"

[channels]
test = "s3://yard/test"
train = {from = "s3://yard/train", sharded = true, content_type = "text/csv"}

[hyperparameters]
lr = 0.1

[environment]
DEBUG = 1
HF_TOKEN = "hunter2"

[tags]
team = "vision"
`,
  );
  const script = tomlOf(
    requestOfForm(filled({ runs: 'script', code: 's3://yard/a.tar.gz', hyperparameters: [{ name: 'lr', value: '1e-3' }, { name: 'n', value: '3' }] }), REGION),
  );
  assert.match(script, /\[code\]\ndirectory = "s3:\/\/yard\/a.tar.gz"\nentry = "train.py"\n\n\[hyperparameters\]\nlr = "1e-3"\nn = 3\n/);
});

test('texts cannot leave the strings and the lines of a job file', () => {
  const hostile = 'a"\n[code]\nJOB\n\\ \u007f \u0001 é 🚂';
  const request = requestOfForm(filled({ command: hostile, tags: [{ name: hostile, value: hostile }] }), REGION);
  const toml = tomlOf(request);
  assert.ok(!toml.split('\n').includes('[code]') && !toml.includes('\u007f'));
  assert.ok(submitOf(request).startsWith("cat > digits.toml <<'JOB'\n"));
  assert.ok(submitOf({ TrainingJobName: '../x' }).startsWith("cat > x.toml <<'JOB'\n"));
});

test('an answer of the server is shown at the field that it names', () => {
  const two = problemsOf(
    "2 validation errors detected: Value '-; Value 'x' at 'y' ' at 'trainingJobName' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-z]; Value null at 'roleArn' failed to satisfy constraint: Member must not be null",
  );
  assert.deepEqual(two[two.length - 1], {
    field: 'role',
    text: "Value null at 'roleArn' failed to satisfy constraint: Member must not be null",
  });
  assert.equal(shortText(two[two.length - 1]!.text), 'Member must not be null');
  const field = (text: string) => problemsOf(text)[0]!.field;
  assert.equal(field("1 validation error detected: Value 'image' at 'resourceConfig.volumeSizeInGB' failed to satisfy constraint: x"), 'volume');
  assert.equal(field('RoleArn: not a role'), 'role');
  assert.equal(field("TrainingImage 'absent': unknown image"), 'image');
  assert.equal(field("Invalid S3 URI 'x' at channel train: no scheme"), 'channels');
  assert.equal(field('Channel train: InputMode x is not supported'), 'channels');
  assert.equal(field("Invalid S3 URI 'x' at OutputDataConfig.S3OutputPath: y"), 'output');
  assert.equal(field('The instance type ml.x is not known to this server'), 'type');
  assert.equal(field('MaxRuntimeInSeconds must be at most 2419200 (28 days)'), 'runtime');
  assert.equal(field('Job name must be unique within an AWS account and region'), 'name');
  assert.equal(field('User: x is not authorized to perform: iam:PassRole on resource: y'), 'role');
  assert.equal(field('the disk is full'), '');
});

test('instance types are offered by what fits', () => {
  const offer = (InstanceType: string, Cpus: number, more: object) => ({ InstanceType, Cpus, ...more });
  const groups = grouped([
    offer('b', 8, { HostsTotal: 2, HostsFree: 0 }),
    offer('c', 2, { HostsTotal: 2, HostsFree: 1 }),
    offer('a', 1, { HostsTotal: 9, HostsFree: 9 }),
    offer('d', 64, { HostsTotal: 0, HostsFree: 0 }),
  ]);
  assert.deepEqual(
    groups.map((group) => [group.title, group.offers.map((one) => one.InstanceType)]),
    [['Fit now', ['a', 'c']], ['Fit once jobs have ended', ['b']], ['Fit no machine as it is', ['d']]],
  );
  assert.equal(sizeOf({ InstanceType: 'x', Cpus: 2, MemoryInBytes: 8 * 2 ** 30, Gpus: 1 }), '2 vCPU, 8 GiB, 1 GPU');
  assert.equal(priceOf({ InstanceType: 'x', OnDemandPerHour: 0.115, SpotPerHour: 0.0345 }, true, 'USD'), '0.0345 USD an hour');
  assert.equal(priceOf({ InstanceType: 'x' }, false, 'USD'), 'no price');
});
