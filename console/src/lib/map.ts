// Computes the map of a campaign: regions at their longitudes and latitudes on a plain graticule, and
// arcs between them. The map has no coastlines.

export interface Point {
  x: number;
  y: number;
}

export interface Transfer {
  from: string;
  to: string;
  bytesTotal: number;
  bytesCopied: number;
  rows: number;
}

export interface MapPlace extends Point {
  region: string;
  known: boolean; // its longitude and latitude are
  label: Point;
  anchor: 'start' | 'middle' | 'end';
}

export interface MapArc {
  transfer: Transfer;
  path: string; // SVG's
  head: string; // points of a polygon
  width: number;
}

export interface RegionMap {
  width: number;
  height: number;
  places: MapPlace[];
  arcs: MapArc[];
  meridians: { x: number; text: string }[];
  parallels: { y: number; text: string }[];
}

// Longitude and latitude of the city or the state that AWS names for a region.
const PLACES: Record<string, readonly [number, number]> = {
  'af-south-1': [18, -34],
  'ap-east-1': [114, 22],
  'ap-east-2': [121, 25],
  'ap-northeast-1': [140, 36],
  'ap-northeast-2': [127, 37],
  'ap-northeast-3': [135, 35],
  'ap-south-1': [73, 19],
  'ap-south-2': [78, 17],
  'ap-southeast-1': [104, 1],
  'ap-southeast-2': [151, -34],
  'ap-southeast-3': [107, -6],
  'ap-southeast-4': [145, -38],
  'ap-southeast-5': [102, 3],
  'ap-southeast-6': [175, -37],
  'ap-southeast-7': [100, 14],
  'ca-central-1': [-73, 45],
  'ca-west-1': [-114, 51],
  'cn-north-1': [116, 40],
  'cn-northwest-1': [105, 37],
  'eu-central-1': [9, 50],
  'eu-central-2': [8, 47],
  'eu-north-1': [18, 59],
  'eu-south-1': [9, 45],
  'eu-south-2': [-1, 42],
  'eu-west-1': [-6, 53],
  'eu-west-2': [0, 51],
  'eu-west-3': [2, 49],
  'il-central-1': [35, 32],
  'me-central-1': [54, 24],
  'me-south-1': [51, 26],
  'mx-central-1': [-100, 21],
  'sa-east-1': [-47, -23],
  'us-east-1': [-78, 38],
  'us-east-2': [-83, 40],
  'us-gov-east-1': [-83, 40],
  'us-gov-west-1': [-120, 44],
  'us-west-1': [-122, 38],
  'us-west-2': [-120, 46],
};

const WIDTH = 960;
const MARGIN = 56; // for labels at the edges
const SPAN_MIN = 50; // degrees of longitude
const HEIGHT_MIN = 220;
const STEP = 30; // degrees between lines of the graticule; 10 in a small part of the world
const STRIP = 48; // for regions without a known place
const CHARACTER = 7.5; // the width of one in a label
const LINE = 15; // the height of a label
const WIDTH_MIN = 1.5; // of an arc
const WIDTH_MAX = 7;

function degrees(value: number, positive: string, negative: string): string {
  return value === 0 ? '0°' : `${Math.abs(value)}° ${value > 0 ? positive : negative}`;
}

interface Frame {
  west: number;
  north: number;
  east: number;
  south: number;
}

// Returns the part of the world that contains all regions, with at least SPAN_MIN degrees.
function frameOf(known: readonly (readonly [number, number])[]): Frame {
  const longitudes = known.map(([longitude]) => longitude);
  const latitudes = known.map(([, latitude]) => latitude);
  const centre = (Math.min(...longitudes) + Math.max(...longitudes)) / 2;
  const half = Math.max(SPAN_MIN, Math.max(...longitudes) - Math.min(...longitudes)) / 2;
  const middle = (Math.min(...latitudes) + Math.max(...latitudes)) / 2;
  const high = Math.max(12, (Math.max(...latitudes) - Math.min(...latitudes)) / 2 + 6);
  return { west: centre - half, east: centre + half, north: middle + high, south: middle - high };
}

function multiples(from: number, to: number, step: number): number[] {
  const found: number[] = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) found.push(at);
  return found;
}

interface Box {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

const overlaps = (a: Box, b: Box) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

// Places a label next to its point, on a side where it covers no earlier label, if there is one.
function labelled(region: string, at: Point, known: boolean, taken: Box[]): MapPlace {
  const long = region.length * CHARACTER;
  const sides = [
    { anchor: 'start', label: { x: at.x + 12, y: at.y + 5 }, left: at.x + 12 },
    { anchor: 'end', label: { x: at.x - 12, y: at.y + 5 }, left: at.x - 12 - long },
    { anchor: 'middle', label: { x: at.x, y: at.y - 13 }, left: at.x - long / 2 },
    { anchor: 'middle', label: { x: at.x, y: at.y + 24 }, left: at.x - long / 2 },
  ] as const;
  const boxes = sides.map(({ left, label }) => ({ left, right: left + long, top: label.y - LINE, bottom: label.y + 4 }));
  const free = boxes.findIndex((box) => box.left >= 0 && box.right <= WIDTH && !taken.some((other) => overlaps(box, other)));
  const chosen = Math.max(0, free);
  taken.push(boxes[chosen]!);
  const { anchor, label } = sides[chosen]!;
  return { region, ...at, known, label, anchor };
}

// Returns a curve that bends to the left of its direction, so that the reverse direction has another curve.
export function arcOf(transfer: Transfer, from: Point, to: Point, most: number): MapArc {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const length = Math.hypot(dx, dy) || 1;
  const bend = Math.min(120, 0.22 * length);
  const control = { x: (from.x + to.x) / 2 + (dy / length) * bend, y: (from.y + to.y) / 2 - (dx / length) * bend };
  const width = WIDTH_MIN + (WIDTH_MAX - WIDTH_MIN) * Math.sqrt(most > 0 ? transfer.bytesTotal / most : 0);
  // The middle of the curve has the direction of the straight line.
  const middle = { x: (from.x + to.x) / 4 + control.x / 2, y: (from.y + to.y) / 4 + control.y / 2 };
  const size = 5 + width;
  const [ux, uy] = [dx / length, dy / length];
  const corners = [
    [middle.x + ux * size, middle.y + uy * size],
    [middle.x - ux * size * 0.6 - uy * size * 0.7, middle.y - uy * size * 0.6 + ux * size * 0.7],
    [middle.x - ux * size * 0.6 + uy * size * 0.7, middle.y - uy * size * 0.6 - ux * size * 0.7],
  ];
  const text = (value: number) => value.toFixed(1);
  return {
    transfer,
    path: `M${text(from.x)} ${text(from.y)}Q${text(control.x)} ${text(control.y)} ${text(to.x)} ${text(to.y)}`,
    head: corners.map(([x, y]) => `${text(x!)},${text(y!)}`).join(' '),
    width,
  };
}

export function mapOf(regions: readonly string[], transfers: readonly Transfer[]): RegionMap {
  const all = [...new Set([...regions, ...transfers.flatMap((one) => [one.from, one.to])])].filter((name) => name).sort();
  const known = all.filter((region) => Object.hasOwn(PLACES, region));
  const unknown = all.filter((region) => !Object.hasOwn(PLACES, region));
  const frame = frameOf(known.length ? known.map((region) => PLACES[region]!) : [[0, 20]]);
  const scale = (WIDTH - 2 * MARGIN) / (frame.east - frame.west);
  const drawn = Math.max(HEIGHT_MIN, (frame.north - frame.south) * scale);
  const top = (drawn - (frame.north - frame.south) * scale) / 2; // centred
  const x = (longitude: number) => MARGIN + (longitude - frame.west) * scale;
  const y = (latitude: number) => top + (frame.north - latitude) * scale;
  const taken: Box[] = [];
  const places = known.map((region) => {
    const [longitude, latitude] = PLACES[region]!;
    return labelled(region, { x: x(longitude), y: y(latitude) }, true, taken);
  });
  unknown.forEach((region, i) => {
    const at = { x: (WIDTH * (i + 1)) / (unknown.length + 1), y: drawn + STRIP / 2 };
    places.push(labelled(region, at, false, taken));
  });
  const at = new Map(places.map((place) => [place.region, place]));
  const most = Math.max(0, ...transfers.map((one) => one.bytesTotal));
  const step = frame.east - frame.west > 120 ? STEP : 10;
  return {
    width: WIDTH,
    height: drawn + (unknown.length ? STRIP : 0),
    places,
    arcs: transfers.flatMap((one) => {
      const [from, to] = [at.get(one.from), at.get(one.to)];
      return from && to && from !== to ? [arcOf(one, from, to, most)] : [];
    }),
    meridians: multiples(frame.west - MARGIN / scale, frame.east + MARGIN / scale, step).map((longitude) => ({
      x: x(longitude),
      text: degrees(longitude > 180 ? longitude - 360 : longitude < -180 ? longitude + 360 : longitude, 'E', 'W'),
    })),
    parallels: multiples(frame.south - top / scale, frame.north + top / scale, step)
      .filter((latitude) => Math.abs(latitude) <= 90)
      .map((latitude) => ({ y: y(latitude), text: degrees(latitude, 'N', 'S') })),
  };
}
