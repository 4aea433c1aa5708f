// Tests what the pages of users show of IAM's answers.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callsOn, callsOnPolicies, decoded, readable, verdictOf } from '../src/lib/users';

const ANN = { UserName: 'ann', Arn: 'arn:aws:iam::123456789012:user/ann', CreateDate: 0 };

test('a policy is shown as JSON with indentation, and anything else as text', () => {
  assert.equal(readable('{"Version":"2012-10-17","Statement":[]}'), '{\n  "Version": "2012-10-17",\n  "Statement": []\n}');
  assert.equal(readable('<b>not JSON\u001b'), '<b>not JSON^[');
  assert.equal(readable('{"Sid":"\\u202eabc"}'), '{\n  "Sid": "\ufffdabc"\n}');
});

test('documents are decoded, with a percent sign that encodes nothing', () => {
  assert.equal(decoded('%7B%22a%22%3A%20%22%2B%22%7D'), '{"a": "+"}');
  assert.equal(decoded('{"a":"100%"}'), '{"a":"100%"}');
});

test('a verdict names the policies and the missing conditions', () => {
  const matched = [{ SourcePolicyId: 'own' }, { SourcePolicyId: 'own' }, { SourcePolicyId: 'team' }];
  assert.deepEqual(verdictOf({ EvalDecision: 'allowed', MatchedStatements: matched }), { tone: 'good', text: 'Allowed, by own, team.' });
  assert.deepEqual(verdictOf({ EvalDecision: 'explicitDeny', MatchedStatements: [{}] }), { tone: 'bad', text: 'Denied.' });
  assert.deepEqual(verdictOf({ EvalDecision: 'implicitDeny', MissingContextValues: ['aws:SourceIp'] }), {
    tone: 'bad',
    text: 'Not allowed: no policy allows it. Conditions that were not given: aws:SourceIp.',
  });
});

test('each change of a user is a call whose right the page requests', () => {
  assert.deepEqual(
    callsOn(ANN).map((call) => call.Operation),
    ['CreateAccessKey', 'UpdateAccessKey', 'DeleteAccessKey', 'SimulatePrincipalPolicy'],
  );
  assert.deepEqual(callsOnPolicies('DetachUserPolicy', ANN, ['arn:1', 'arn:2'])[1], {
    Service: 'iam',
    Operation: 'DetachUserPolicy',
    Input: { UserName: 'ann', PolicyArn: 'arn:2' },
  });
});
