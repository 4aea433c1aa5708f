// Tests the sums of campaigns and their map.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stateText, summed, sumsOf, toneOf, transfersOf, type CampaignRow } from '../src/lib/campaigns';
import { arcOf, mapOf } from '../src/lib/map';

const row = (more: Partial<CampaignRow>): CampaignRow => ({ Number: 1, State: 'running', DataRegion: 'eu-west-1', Region: 'us-west-2', ...more });

test('bytes move between regions, and rows that share a copy count once', () => {
  const rows = [
    row({ Data: 's3://a/', CopyTo: 's3://c/', BytesTotal: 100, BytesCopied: 40 }),
    row({ Data: 's3://a/', CopyTo: 's3://c/', BytesTotal: 100, BytesCopied: 40 }),
    row({ Data: 's3://b/', CopyTo: 's3://d/', BytesTotal: 10, BytesCopied: 99 }),
    row({ Region: 'eu-west-1', BytesTotal: 7 }),
    row({ BytesTotal: 0 }),
    row({ DataRegion: '', BytesTotal: 5 }),
  ];
  const expected = [{ from: 'eu-west-1', to: 'us-west-2', bytesTotal: 110, bytesCopied: 50, rows: 3 }];
  assert.deepEqual(transfersOf(rows), expected);
  assert.deepEqual(summed([expected, expected]), [{ ...expected[0], bytesTotal: 220, bytesCopied: 100, rows: 6 }]);
  assert.equal(expected[0]!.bytesTotal, 110, 'the lists are unchanged');
});

test('sums of regions', () => {
  const sums = sumsOf([{ Region: 'a', Completed: 2, Failed: 1, Cost: 1, CopyCost: 0.5 }, { Region: 'b', Copying: 1, Waiting: 3, BytesTotal: 9, BytesCopied: 4 }]);
  assert.deepEqual(sums, { rows: 7, completed: 2, failed: 1, running: 1, cost: 1.5, bytesTotal: 9, bytesCopied: 4 });
});

test('states have a tone and a text', () => {
  assert.equal(toneOf('InProgress'), 'run');
  assert.equal(toneOf('constructor'), 'idle');
  assert.equal(stateText('InProgress'), 'In progress');
  assert.equal(stateText('waiting'), 'Waiting');
});

test('regions lie west to east and north to south', () => {
  const map = mapOf(['us-west-2', 'eu-west-1', 'ap-southeast-2'], []);
  const at = new Map(map.places.map((place) => [place.region, place]));
  assert.ok(at.get('us-west-2')!.x < at.get('eu-west-1')!.x && at.get('eu-west-1')!.x < at.get('ap-southeast-2')!.x);
  assert.ok(at.get('eu-west-1')!.y < at.get('ap-southeast-2')!.y);
  for (const { x, y } of map.places) assert.ok(x > 0 && x < map.width && y > 0 && y < map.height);
  for (const { y } of map.parallels) assert.ok(y >= 0 && y <= map.height);
});

test('regions of unknown places, none, and one are drawn inside the map', () => {
  const map = mapOf(['dublin', 'eu-west-1', 'constructor'], []);
  assert.deepEqual(map.places.filter((place) => !place.known).map((place) => place.region), ['constructor', 'dublin']);
  for (const { x, y } of map.places) assert.ok(x > 0 && x < map.width && y > 0 && y < map.height);
  assert.equal(mapOf([], []).places.length, 0);
  assert.ok(Number.isFinite(mapOf(['eu-west-1'], []).height));
});

test('labels of near regions do not cover each other', () => {
  const map = mapOf(['eu-west-1', 'eu-west-2', 'eu-west-3', 'eu-central-1', 'us-west-2', 'ap-northeast-1'], []);
  const texts = map.places.map((place) => `${Math.round(place.label.x)} ${Math.round(place.label.y)}`);
  assert.equal(new Set(texts).size, texts.length);
});

test('an arc and the way back are two curves, and the widest has the most bytes', () => {
  const one = { from: 'a', to: 'b', bytesTotal: 100, bytesCopied: 0, rows: 1 };
  const there = arcOf(one, { x: 0, y: 0 }, { x: 100, y: 0 }, 400);
  const back = arcOf(one, { x: 100, y: 0 }, { x: 0, y: 0 }, 400);
  assert.equal(there.path, 'M0.0 0.0Q50.0 -22.0 100.0 0.0');
  assert.equal(back.path, 'M100.0 0.0Q50.0 22.0 0.0 0.0');
  assert.equal(there.width, 4.25);
  assert.ok(!arcOf({ ...one, bytesTotal: 0 }, { x: 5, y: 5 }, { x: 5, y: 5 }, 0).path.includes('NaN'));
  const map = mapOf([], [{ ...one, from: 'eu-west-1', to: 'us-west-2' }, { ...one, from: 'eu-west-1', to: 'eu-west-1' }]);
  assert.equal(map.arcs.length, 1);
});
