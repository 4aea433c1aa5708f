import assert from 'node:assert/strict';
import { test } from 'node:test';
import { coloursOf, gangsOf, racksOf, resourcesOf, type Machine, type MachineHost } from '../src/lib/machines';

function host(job: string | undefined, cpus: number, since = 100): MachineHost {
  return {
    ...(job && { JobName: job, JobRegion: 'eu-west-1', Host: 'algo-1' }),
    State: 'running',
    StateSince: since,
    Cpus: cpus,
    MemoryInBytes: cpus * 100,
    Gpus: 0,
  };
}
function machine(name: string, cpus: number | undefined, hosts: MachineHost[], topology?: string): Machine {
  return {
    Name: name,
    Cpus: cpus,
    MemoryInBytes: cpus === undefined ? undefined : cpus * 100,
    Gpus: cpus === undefined ? undefined : 0,
    CpusUsed: hosts.reduce((sum, one) => sum + one.Cpus, 0),
    MemoryUsedInBytes: hosts.reduce((sum, one) => sum + one.MemoryInBytes, 0),
    GpusUsed: 0,
    Hosts: hosts,
    ...(topology && { Topology: topology }),
  };
}

test('free capacity is known in all and in its largest piece', () => {
  const [cpus, memory, ...others] = resourcesOf([
    machine('a', 8, [host('x', 6)]),
    machine('b', 4, [host('x', 1)]),
    machine('c', 2, [host('x', 3)]), // made smaller while a job was there
    machine('gone', undefined, [host('x', 5)]),
  ]);
  assert.deepEqual(cpus, { name: 'CPUs', used: 10, total: 14, free: 5, largest: 3, machines: 2, full: false });
  assert.equal(memory!.free, 500);
  assert.deepEqual(others, [], 'no machine has a GPU');
});

test('a gang holds what all of its hosts hold; jobs that are hidden count as one', () => {
  const gangs = gangsOf([
    machine('a', 8, [host('x', 2, 50), host(undefined, 1)]),
    machine('b', 8, [host('x', 2, 40), host(undefined, 1), host('y', 8)]),
  ]);
  assert.deepEqual(
    gangs.map(({ job, hosts, machines, cpus, since }) => [job, hosts, machines.join(), cpus, since]),
    [
      ['y', 1, 'b', 8, 100],
      ['x', 2, 'a,b', 4, 40],
      ['', 2, 'a,b', 2, 100],
    ],
  );
});

test('machines of a rack are together, in the order of their numbers', () => {
  const racks = racksOf([machine('n10', 1, [], 'rack-10'), machine('n2', 1, [], 'rack-2'), machine('n1', 1, [], 'rack-10')]);
  assert.deepEqual(racks.map(({ rack, machines }) => [rack, machines.map(({ Name }) => Name)]), [
    ['rack-2', ['n2']],
    ['rack-10', ['n1', 'n10']],
  ]);
});

test('no colour is given twice before each was given once', () => {
  const jobs = Array.from({ length: 14 }, (_, i) => host(`job-${i}`, 1));
  const colours = [...coloursOf([machine('a', 99, [...jobs, host(undefined, 1)])], 7).values()];
  assert.equal(colours.length, 14, 'jobs that are hidden have none');
  for (let colour = 0; colour < 7; colour++)
    assert.equal(colours.filter((one) => one === colour).length, 2);
});
